import { readFile } from "node:fs/promises"
import { Effect, Layer, Redacted } from "effect"
import type { Page } from "playwright-core"
import { OrganizationScope } from "../../src/domain/OrganizationScope.ts"
import { Operators } from "../../src/services/admin/Operators.ts"
import { openAccount } from "../harness/client/Account.ts"
import { hire } from "../harness/client/AdminClient.ts"
import { isSkipped, openPage } from "../harness/client/Browser.ts"
import { chat, rateOf, talk } from "../harness/client/HttpCalls.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { freePort } from "../harness/Listening.ts"
import * as FakeStripe from "../harness/stripe/FakeStripe.ts"
import * as StripeGateway from "../harness/stripe/StripeGateway.ts"
import { findMisfits, inBothThemes, waitForTexts } from "./ConsolePage.ts"
import { button, change, heading, inputLabel, narrow } from "./ConsoleParts.ts"

/** The return address of the payment page must be known before the gateway listens. */
const gateway = Layer.unwrapScoped(
  Effect.map(freePort, (port) =>
    StripeGateway.layer({ PORT: String(port), PUBLIC_URL: `http://127.0.0.1:${port}`, DEFAULT_RPM: "600" })
  )
)

const stripeOrigin = "https://checkout.stripe.test"

const open = async (page: Page, view: string) => {
  await page.getByRole("button", { name: "Menu", exact: true }).click()
  await page.getByRole("navigation").getByRole("link", { name: view }).click()
  await page.locator("main h1").waitFor()
}

const tile = (page: Page, label: string) => page.locator(".stat", { hasText: label }).locator(".figure")

withLayer(gateway)("a customer on a phone", (it) => {
  it.scoped.skipIf(isSkipped)(
    "pays, sees the balance, makes a key, calls, sees the request and its charge, and downloads the statement",
    function* () {
      const { url } = yield* Served.ServedGateway
      const stripe = yield* StripeGateway.Stripe
      const operators = yield* Operators
      const { org } = yield* openAccount({ nanoUsd: 0n })
      const { id } = yield* hire("write", org)
      const link = Redacted.value(yield* operators.link(OrganizationScope.all, id))
      const { page, problems } = yield* openPage([url, stripeOrigin], narrow)
      const act = (what: () => Promise<unknown>) => Effect.promise(what)

      yield* act(async () => {
        await page.goto(`${url}/console#link=${link}`)
        await heading(page, "Overview").waitFor()
        assert.strictEqual(await tile(page, "Available").innerText(), "$0.00")
        await page.getByText("No failed requests in the last 7 days.").waitFor()
        const steps = page.getByRole("region", { name: "First steps" }).getByRole("link")
        await waitForTexts(steps, ["Add credits", "Create a key", "playground"])
      })

      yield* act(async () => {
        // Pay leads to the return address by a redirect from another site, as at Stripe.
        await page.route(`${stripeOrigin}/**`, (route) => {
          const form = stripe.calls.findLast(({ method }) => method === "POST")?.form
          if (route.request().method() === "POST")
            return route.fulfill({ status: 303, headers: { location: form?.get("success_url") ?? "" } })
          const body = `<a href="${form?.get("cancel_url")}">Back</a><form method="post"><button>Pay</button></form>`
          return route.fulfill({ contentType: "text/html", body })
        })
        await open(page, "Add credits")
        await page.getByText("From $5.00 to $5,000.00.").waitFor()
        await button(page, "$25").click()
        await button(page, "Continue to payment").click()
        await page.waitForURL(`${stripeOrigin}/**`)
      })
      const session = page.url().split("/").at(-1) ?? ""
      yield* act(async () => {
        await page.getByText("Back").click()
        await heading(page, "Payment").waitFor()
        await page.getByRole("status").getByText("No payment was made.").waitFor()
        assert.deepStrictEqual(await findMisfits(page, inBothThemes(360)), [])
        await button(page, "Try again").click()
        await page.waitForURL(`${stripeOrigin}/${session}`)
        await button(page, "Pay").click()
        await page.getByRole("status").getByText("Your payment is being processed.").waitFor()
      })
      yield* FakeStripe.deliver(url, stripe.account.complete(session))
      yield* act(async () => {
        await page.getByText("paid", { exact: true }).waitFor()
        await page.getByRole("status").getByText("$25.00 was added. Balance: $25.00").waitFor()
        assert.deepStrictEqual(await findMisfits(page, inBothThemes(360)), [])
        await page.getByRole("main").getByRole("link", { name: "Overview" }).click()
        await tile(page, "Available").getByText("$25.00").waitFor()
      })

      const secret = yield* Effect.promise(async () => {
        await open(page, "Keys")
        await change(page, "Create key", {
          Name: "phone",
          [inputLabel("key", "rpm")]: "60",
          [inputLabel("key", "cap_usd")]: "10"
        })
        const dialog = page.getByRole("dialog", { name: "Your new key" })
        const shown = await dialog.getByText(/^ggw_/).innerText()
        await button(dialog, "Done").click()
        await page.getByRole("row", { name: "phone" }).getByText("active").waitFor()
        return shown
      })

      const answer = yield* chat({ secret }, talk("gpt-5.2"))
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(rateOf(answer)?.limit, 60)
      const { requestId } = yield* Served.logged(answer.headers.get("x-request-id"))
      const charge = `$${answer.headers.get("x-gateway-charge-usd")}`
      yield* act(async () => {
        await open(page, "Requests")
        const row = page.getByRole("region", { name: "Requests" }).locator("tbody tr")
        assert.include(await row.innerText(), charge)
        await row.getByRole("link").click()
        await page.locator(".record-id", { hasText: requestId }).waitFor()
        const charged = page.getByRole("row", { name: "Charged" })
        assert.include(await charged.innerText(), charge)
        assert.deepStrictEqual(await findMisfits(page, inBothThemes(360)), [])
      })

      const statement = yield* Effect.promise(async () => {
        await open(page, "Statements")
        await page.getByRole("row", { name: "Payments" }).getByText("$25.00").waitFor()
        const download = page.waitForEvent("download")
        await page.getByRole("link", { name: "CSV" }).click()
        return readFile(await (await download).path(), "utf8")
      })
      assert.match(statement, /^payment,.*,25,/m)
      assert.include(statement, "gpt-5.2")
      assert.deepStrictEqual(problems, [])
    },
    120_000
  )
})
