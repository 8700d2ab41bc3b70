import { Effect } from "effect"
import { isSkipped } from "../harness/client/Browser.ts"
import { chat, talk } from "../harness/client/HttpCalls.ts"
import { eventually, moneyOf } from "../harness/database/Money.ts"
import { holdOne } from "../harness/database/Rows.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { findMisfits, inBothThemes, openConsole } from "./ConsolePage.ts"
import { addFilter, heading, without } from "./ConsoleParts.ts"

const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

const model = "gemini-3.6-flash"

withLayer(gateway)("open holds in the console", (it) => {
  it.scoped.skipIf(isSkipped)("are linked from the dashboard and link to their organization", function* () {
    const customer = yield* Served.customer()
    const other = yield* Served.customer()
    yield* Effect.forkScoped(chat(customer, talk(model, "[sandbox delay=60000] hi")))
    yield* holdOne(other, 3_000_000_001n)
    yield* eventually(moneyOf(customer.org), ({ openHolds }) => openHolds === 1)
    const { page, problems, url } = yield* openConsole({ role: "read" })
    const rows = page.getByRole("region", { name: "Open holds" }).locator("tbody tr")
    yield* Effect.promise(async () => {
      await page.getByRole("link", { name: "View all holds" }).click()
      await heading(page, "Open holds").waitFor()
      await rows.nth(1).waitFor()
      assert.strictEqual(await rows.count(), 2)
      const running = rows.filter({ hasText: model })
      assert.match(await running.innerText(), /request[\s\S]*A request runs on/)
      assert.include(await rows.filter({ hasText: "$3.000000001" }).innerText(), "nothing")
      assert.deepStrictEqual(await findMisfits(page, inBothThemes(360, 1440)), [])
      await (await addFilter(page, "Organization")).fill(customer.org)
      await rows.nth(1).waitFor({ state: "detached" })
      assert.strictEqual(await rows.count(), 1)
      const address = await page.getByRole("link", { name: "CSV" }).getAttribute("href")
      const csv = await (await page.request.get(`${url}/${address}`)).text()
      assert.strictEqual(csv.trim().split("\n").length, 2)
      await (await addFilter(page, "Older than")).selectOption("1h")
      await page.getByText("No open holds.").waitFor()
      await page.keyboard.press("Escape")
      await page.evaluate("document.activeElement.blur()")
      await page.keyboard.press("g")
      await page.keyboard.press("h")
      await rows.nth(1).waitFor()
      await running.locator('a[href^="#/organizations/"]').click()
      await page.getByRole("region", { name: "Keys" }).first().waitFor()
      assert.match(await rows.innerText(), /request[\s\S]*A request runs on/)
      await page.getByRole("link", { name: /^\$[\d.]+ reserved$/ }).click()
      await heading(page, "Open holds").waitFor()
      await rows.first().waitFor()
      assert.strictEqual(await rows.count(), 1)
    })
    assert.deepStrictEqual(without(problems), [])
  })
})
