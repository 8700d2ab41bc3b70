import { Effect } from "effect"
import { adminAt, hire, read } from "../harness/client/AdminClient.ts"
import { isSkipped } from "../harness/client/Browser.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import * as FakeStripe from "../harness/stripe/FakeStripe.ts"
import * as StripeGateway from "../harness/stripe/StripeGateway.ts"
import { findMisfits, inBothThemes, openConsole } from "./ConsolePage.ts"
import { button, heading, without } from "./ConsoleParts.ts"

/** A payment of 20 USD, of which 5 were refunded. */
const refunded = Effect.gen(function* () {
  const { url } = yield* Served.ServedGateway
  const { account } = yield* StripeGateway.Stripe
  const { org } = yield* Served.customer({ nanoUsd: 0n })
  const admin = adminAt(url, (yield* hire("write")).token)
  const { id } = read(yield* admin("/checkout", { body: { organization: org, amount_usd: 20 } }), 201)
  const { session } = read(yield* admin(`/payments/${id}`))
  yield* FakeStripe.deliver(url, account.complete(session))
  account.refund(account.intentOf(session), 500)
  for (const event of account.events.slice(-2)) yield* FakeStripe.deliver(url, event)
  return { id, org, session: String(session) }
})

withLayer(StripeGateway.layer())("payments in the console", (it) => {
  it.scoped.skipIf(isSkipped)("are listed for operators, with what Stripe told of each", function* () {
    const { id, org, session } = yield* refunded
    const { page, problems, url } = yield* openConsole({ role: "read", hash: `#/payments?organization=${org}` })
    yield* Effect.promise(async () => {
      const row = page.getByRole("row", { name: id })
      await row.getByText("partly taken back").waitFor()
      await row.getByText("$20.00").waitFor()
      await row.getByText("$5.00").waitFor()
      await row.getByRole("link").first().click()
      await page.waitForURL(`${url}/console#/payments/${id}`)
      await page.getByText(session).waitFor()
      await page.getByRole("region", { name: "Events" }).getByText("checkout.session.completed").waitFor()
      assert.deepStrictEqual(await findMisfits(page, inBothThemes(360, 1360)), [])
    })
    assert.deepStrictEqual(without(problems), [])
  })

  it.scoped.skipIf(isSkipped)("show a member what was paid and taken back, and nothing of Stripe", function* () {
    const { id, org, session } = yield* refunded
    const { page, problems } = yield* openConsole({ role: "read", org, hash: "#/payments" })
    yield* Effect.promise(async () => {
      await page.getByText("Members with the role write can add credits.").waitFor()
      assert.strictEqual(await button(page, "Go to payment").count(), 0)
      await page.getByRole("region", { name: "Payments" }).getByRole("row").getByRole("link").click()
      await page.getByText(id).waitFor()
      await page.getByRole("region", { name: "Taken back" }).getByRole("row", { name: "refund" }).waitFor()
      assert.notInclude(await page.content(), session)
      assert.strictEqual(await page.getByRole("region", { name: "Events" }).count(), 0)
      assert.deepStrictEqual(await findMisfits(page, inBothThemes(360, 1360)), [])
    })
    assert.deepStrictEqual(without(problems), [])
  })

  it.scoped.skipIf(isSkipped)("are refused at the field where the amount is out of bounds", function* () {
    const { org } = yield* Served.customer()
    const { page, problems } = yield* openConsole({ role: "write", org, hash: "#/payments" })
    yield* Effect.promise(async () => {
      await heading(page, "Add credits").waitFor()
      const field = page.getByLabel("Amount in USD")
      await field.fill("1.50")
      await field.press("Enter")
      const problem = page.locator(".field .problem")
      assert.strictEqual(await problem.innerText(), "`amount_usd` must be from 5 to 5000 USD, in whole cents.")
      assert.strictEqual(await page.evaluate("document.activeElement.name"), "amount_usd")
    })
    assert.deepStrictEqual(without(problems, 400), [])
  })
})
