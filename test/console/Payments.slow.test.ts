import { Effect } from "effect"
import { adminAt, hire, read } from "../harness/client/AdminClient.ts"
import { isSkipped, openPage } from "../harness/client/Browser.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import * as FakeStripe from "../harness/stripe/FakeStripe.ts"
import * as StripeGateway from "../harness/stripe/StripeGateway.ts"
import { findMisfits, inBothThemes, openConsole } from "./ConsolePage.ts"
import { button, heading, tabTo, without } from "./ConsoleParts.ts"

/** An open payment of 20 USD. */
const begun = Effect.gen(function* () {
  const { url } = yield* Served.ServedGateway
  const { account } = yield* StripeGateway.Stripe
  const { org } = yield* Served.customer({ nanoUsd: 0n })
  const admin = adminAt(url, (yield* hire("write")).token)
  const page = read(yield* admin("/checkout", { body: { organization: org, amount_usd: 20 } }), 201)
  const { session } = read(yield* admin(`/payments/${page.id}`))
  return { account, id: String(page.id), pageUrl: String(page.url), org, session: String(session), url }
})

/** A paid payment of 20 USD with a refund of 5 USD. */
const refunded = Effect.gen(function* () {
  const { account, id, org, session, url } = yield* begun
  yield* FakeStripe.deliver(url, account.complete(session))
  account.refund(account.intentOf(session), 500)
  for (const event of account.events.slice(-2)) yield* FakeStripe.deliver(url, event)
  return { id, org, session }
})

withLayer(StripeGateway.layer())("payments in the console", (it) => {
  it.scoped.skipIf(isSkipped)("are listed for operators with their Stripe events", function* () {
    const { id, org, session } = yield* refunded
    const { page, problems, url } = yield* openConsole({ role: "read", hash: `#/payments?organization=${org}` })
    yield* Effect.promise(async () => {
      const row = page.getByRole("row", { name: id })
      await row.getByText("partially refunded").waitFor()
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

  it.scoped.skipIf(isSkipped)("show a member payments and refunds, but no Stripe events", function* () {
    const { id, org, session } = yield* refunded
    const { page, problems } = yield* openConsole({ role: "read", org, hash: "#/payments" })
    yield* Effect.promise(async () => {
      await page.getByText("To add credits, you need the write role.").waitFor()
      assert.strictEqual(await button(page, "Continue to payment").count(), 0)
      await page.getByRole("region", { name: "Payments" }).getByRole("row").getByRole("link").click()
      await page.getByText(id).waitFor()
      await page.getByRole("region", { name: "Refunds and disputes" }).getByRole("row", { name: "refund" }).waitFor()
      assert.notInclude(await page.content(), session)
      assert.strictEqual(await page.getByRole("region", { name: "Events" }).count(), 0)
      assert.deepStrictEqual(await findMisfits(page, inBothThemes(360, 1360)), [])
    })
    assert.deepStrictEqual(without(problems), [])
  })

  it.scoped.skipIf(isSkipped)("show an error at the field if the amount is out of range", function* () {
    const { org } = yield* Served.customer()
    const { page, problems } = yield* openConsole({ role: "write", org, hash: "#/payments" })
    yield* Effect.promise(async () => {
      await heading(page, "Add credits").waitFor()
      const field = page.getByLabel("Amount (USD)")
      await field.fill("1.50")
      await field.press("Enter")
      const problem = page.locator(".field .problem")
      assert.strictEqual(await problem.innerText(), "`amount_usd` must be from 5 to 5000 USD, in whole cents.")
      assert.strictEqual(await page.evaluate("document.activeElement.name"), "amount_usd")
    })
    assert.deepStrictEqual(without(problems, 400), [])
  })

  it.scoped.skipIf(isSkipped)("reopen their page after the browser's Back until it is paid", function* () {
    const { account, id, org, pageUrl, session } = yield* begun
    const { page, problems } = yield* openConsole({ role: "write", org, hash: `#/payments/${id}` })
    const go = button(page, "Continue to payment")
    yield* Effect.promise(async () => {
      // A response without content keeps the browser on the page.
      await page.route(pageUrl, (route) => route.fulfill({ status: 204 }))
      await Promise.all([page.waitForRequest(pageUrl), go.click()])
      assert.isTrue(await go.isDisabled())
      await page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
      account.complete(session)
      await go.click()
      await page.getByRole("alert").getByText("Do not pay it again.").waitFor()
    })
    assert.deepStrictEqual(without(problems, 409), [`asked ${pageUrl}`])
  })

  it.scoped.skipIf(isSkipped)("show the new balance to a customer who signs in again on the return page", function* () {
    const { account, id, org, session, url } = yield* begun
    yield* FakeStripe.deliver(url, account.complete(session))
    const { token } = yield* hire("read", org)
    const { page, problems } = yield* openPage([url])
    yield* Effect.promise(async () => {
      await page.goto(`${url}/console#/payments/${id}?result=paid`)
      await page.getByLabel("Token").fill(token)
      await page.keyboard.press("Enter")
      await page.getByRole("status").getByText("$20.00 was added. Balance: $20.00").waitFor()
      await tabTo(page, "Keys")
      await page.keyboard.press("Enter")
      await heading(page, "Keys").waitFor()
    })
    assert.deepStrictEqual(without(problems, 401), [])
  })

  it.scoped.skipIf(isSkipped)("tell on the return page that nothing was paid, once the page has expired", function* () {
    const { account, id, org, session, url } = yield* begun
    const { page, problems } = yield* openConsole({ role: "read", org, hash: `#/payments/${id}?result=cancelled` })
    yield* Effect.promise(async () => {
      await page.getByText("No payment was made.").waitFor()
      assert.strictEqual(await button(page, "Try again").count(), 0)
    })
    yield* FakeStripe.deliver(url, account.expire(session))
    yield* Effect.promise(async () => {
      await page.getByText("expired", { exact: true }).waitFor()
      await page.getByText("No payment was made.").waitFor()
      await page.getByRole("link", { name: "Choose another amount" }).click()
      await heading(page, "Add credits").waitFor()
    })
    assert.deepStrictEqual(without(problems), [])
  })
})
