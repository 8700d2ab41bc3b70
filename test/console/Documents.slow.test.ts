import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { NanoUsd } from "../../src/domain/Money.ts"
import { LedgerAdmin } from "../../src/services/ledger/LedgerAdmin.ts"
import { adminAt, hire, read } from "../harness/client/AdminClient.ts"
import { isSkipped } from "../harness/client/Browser.ts"
import { pagesOf } from "../harness/client/PdfText.ts"
import { chargeOne } from "../harness/database/Rows.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import * as FakeStripe from "../harness/stripe/FakeStripe.ts"
import * as StripeGateway from "../harness/stripe/StripeGateway.ts"
import { findMisfits, inBothThemes, openConsole } from "./ConsolePage.ts"
import { heading, without } from "./ConsoleParts.ts"

const seller = {
  SELLER_NAME: "Example Gateways Ltd",
  SELLER_ADDRESS: "1 Main Street\\nDublin 2\\nIreland",
  SELLER_TAX_ID: "IE1234567X"
}

const printed = async (page: Page, format: "A4" | "Letter") => {
  const pages = pagesOf(await page.pdf({ format }))
  assert.lengthOf(pages, 1, format)
  return pages[0]?.replace(/\s+/g, "") ?? ""
}

const assertContains = (text: string, parts: ReadonlyArray<string>) => {
  for (const part of parts) assert.include(text, part.replace(/\s+/g, ""))
}

/** Takes pictures of the page and its paper, if a directory is given. */
const look = async (page: Page, name: string) => {
  const directory = process.env["LOOKS"]
  if (directory === undefined) return
  for (const [colorScheme, width] of inBothThemes(390, 1360)) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" })
    await page.setViewportSize({ width, height: 900 })
    await page.screenshot({ path: `${directory}/${name}-${width}-${colorScheme}.png`, fullPage: true })
  }
  await page.pdf({ path: `${directory}/${name}.pdf`, format: "A4" })
}

/** An organization with charges of 15 models, a discount, and 25.50 USD that an operator entered. */
const customer = Effect.gen(function* () {
  const { url } = yield* Served.ServedGateway
  const sql = yield* SqlClient.SqlClient
  const account = yield* Served.customer({ nanoUsd: 0n })
  const { org } = account
  const admin = adminAt(url, (yield* hire("owner")).token)
  read(yield* admin(`/organizations/${org}`, { method: "PATCH", body: { discount_percent: 10 } }))
  // A change in the period would be part of the text.
  yield* sql`UPDATE audit SET at = at - interval '40 days' WHERE target = ${org}`
  const ledger = yield* LedgerAdmin
  yield* ledger.topUp({ org, amount: NanoUsd(25_500_000_000n), ref: `inv-${org}` })
  for (let index = 0; index < 15; index++) {
    const { hold } = yield* chargeOne(account, 100_000_000n + BigInt(index) * 1_234_567n)
    yield* sql`UPDATE request_log SET model = ${`vendor-model-with-a-name-${index}`}, prompt_tokens = 1234567,
      completion_tokens = 234567 WHERE id = ${hold}`
  }
  const statement = read(yield* admin(`/organizations/${org}/statement`))
  return { account, admin, org, statement, name: String(statement.organization_name) }
})

withLayer(StripeGateway.layer(seller))("a statement in the console", (it) => {
  it.scoped.skipIf(isSkipped)(
    "is printed on one page, with seller, customer, number, period, discount and total",
    function* () {
      const { name, org, statement } = yield* customer
      const { page, problems } = yield* openConsole({ role: "read", org, hash: "#/statements" })
      yield* Effect.promise(async () => {
        await page.getByText("Dublin 2").waitFor()
        await page.getByText("Charges include a discount of 10 %.").waitFor()
        await look(page, "statement")
        assert.deepStrictEqual(await findMisfits(page, inBothThemes(390, 1360)), [])
        await page.emulateMedia({ colorScheme: "dark" })
        await page.evaluate("document.documentElement.dataset.theme = 'dark'")
        const parts = [
          "Example Gateways Ltd",
          "1 Main Street",
          "Dublin 2",
          "IE1234567X",
          name,
          org,
          statement.number,
          statement.period,
          "US dollars (USD)",
          "Charges include a discount of 10 %.",
          "vendor-model-with-a-name-14",
          "Payments and top-ups",
          "$25.50",
          `$${statement.closing_usd}`
        ]
        for (const format of ["A4", "Letter"] as const) {
          const text = await printed(page, format)
          assertContains(text, parts)
          for (const hidden of ["Overview", "Signout", "ExportCSV", "Print"]) assert.notInclude(text, hidden)
        }
        await page.emulateMedia({ media: "print" })
        const colors = await page.evaluate(
          "[document.body, document.querySelector('td')].map((node) => getComputedStyle(node)).map(({ color }) => color)"
        )
        assert.deepStrictEqual(colors, ["rgb(0, 0, 0)", "rgb(0, 0, 0)"])
        assert.strictEqual(await page.evaluate("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")
      })
      assert.deepStrictEqual(without(problems), [])
    }
  )

  it.scoped.skipIf(isSkipped)("has receipts of entered credits", function* () {
    const { name, org } = yield* customer
    const { page, problems } = yield* openConsole({ role: "read", hash: `#/statements/${org}` })
    yield* Effect.promise(async () => {
      await page.getByRole("region", { name: "Entries" }).getByRole("link", { name: "top-up" }).first().click()
      await heading(page, "Receipt").waitFor()
      await page.getByText("Entered by the seller").waitFor()
      await page.getByText("credited", { exact: true }).waitFor()
      await page.getByText("Credited at").waitFor()
      await page.getByText(`inv-${org}`).waitFor()
      assert.deepStrictEqual(await findMisfits(page, inBothThemes(390, 1360)), [])
      assertContains(await printed(page, "A4"), ["Receipt", "Example Gateways Ltd", name, org, "$25.50", `inv-${org}`])
      await page.getByRole("link", { name: "Statement", exact: true }).click()
      await heading(page, "Statement").waitFor()
    })
    assert.deepStrictEqual(without(problems), [])
  })

  it.scoped.skipIf(isSkipped)("has receipts of payments, with refunds", function* () {
    const { url } = yield* Served.ServedGateway
    const { account: stripe } = yield* StripeGateway.Stripe
    const { admin, name, org } = yield* customer
    const { id } = read(yield* admin("/checkout", { body: { organization: org, amount_usd: 20 } }), 201)
    const session = String(read(yield* admin(`/payments/${id}`)).session)
    yield* FakeStripe.deliver(url, stripe.complete(session))
    stripe.refund(stripe.intentOf(session), 500)
    for (const event of stripe.events.slice(-2)) yield* FakeStripe.deliver(url, event)
    const { receipt } = read(yield* admin(`/payments/${id}`))
    const { page, problems } = yield* openConsole({ role: "read", org, hash: `#/payments/${id}` })
    yield* Effect.promise(async () => {
      await heading(page, "Receipt").waitFor()
      await look(page, "receipt")
      assert.deepStrictEqual(await findMisfits(page, inBothThemes(390, 1360)), [])
      const parts = ["Receipt", "partially refunded", "Example Gateways Ltd", "IE1234567X", name, org, receipt.number]
      assertContains(await printed(page, "A4"), [...parts, String(id), "Stripe", "$20.00", "−$5.00", "$15.00"])
    })
    assert.deepStrictEqual(without(problems), [])
  })
})

withLayer(Served.layer(Effect.succeed({ env: { SANDBOX: "true" } })))("a statement without a seller", (it) => {
  it.scoped.skipIf(isSkipped)("names the settings, to operators only", function* () {
    const { org } = yield* customer
    const operator = yield* openConsole({ role: "read", hash: `#/statements/${org}` })
    const member = yield* openConsole({ role: "read", org, hash: "#/statements" })
    yield* Effect.promise(async () => {
      await operator.page.getByText("SELLER_TAX_ID").waitFor()
      assert.notInclude((await printed(operator.page, "A4")).toUpperCase(), "SELLER")
      await member.page.getByText("US dollars (USD)").waitFor()
      assert.strictEqual(await member.page.getByText("SELLER").count(), 0)
    })
    assert.deepStrictEqual([...without(operator.problems), ...without(member.problems)], [])
  })
})
