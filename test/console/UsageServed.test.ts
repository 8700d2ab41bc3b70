import { assert, layer as withLayer } from "@effect/vitest"
import { Effect } from "effect"
import { formatUsd } from "../../src/console/format/Amount.ts"
import { toUsd } from "../../src/domain/Money.ts"
import { isSkipped } from "../harness/client/Browser.ts"
import { openConsole } from "../harness/client/ConsolePage.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"

const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

const models = ["gemini-3.6-flash", "gpt-5.2"]

/** A view that is left cancels what it asked for. */
const isProblem = (problem: string) => !problem.includes("ERR_ABORTED")

withLayer(gateway, { excludeTestServices: true })("usage of a real gateway", (it) => {
  it.scoped.skipIf(isSkipped)("is the same on the page, in the CSV and in the ledger, and leads to its requests", () =>
    Effect.gen(function* () {
      const { openai, org, spentInTheEnd } = yield* Served.customer()
      for (const model of [...models, ...models, "gpt-5.2"]) {
        const messages = [{ role: "user" as const, content: `Hello to ${model}.` }]
        const { _request_id } = yield* Effect.promise(() => openai.chat.completions.create({ model, messages }))
        yield* Served.logged(_request_id)
      }
      const spent = formatUsd(toUsd(yield* spentInTheEnd))
      const { page, problems, url } = yield* openConsole({
        role: "read",
        hash: `#/usage?by=org&and=model&organization=${org}`
      })
      yield* Effect.promise(async () => {
        const table = page.getByRole("region", { name: "Usage" })
        await table.locator("tbody tr").nth(1).waitFor()
        const cells = (await table.locator("tbody tr").allInnerTexts()).map((row) => row.split("\t"))
        const total = (await table.locator("tfoot tr").innerText()).split("\t")
        assert.strictEqual(total[6], spent)
        assert.strictEqual(total[2], "5")

        const csv = await page.getByRole("link", { name: "CSV" }).getAttribute("href")
        const text = await (await page.request.get(`${url}/${csv}`)).text()
        const [names = [], ...lines] = text
          .trim()
          .split("\r\n")
          .map((line) => line.split(","))
        const read = (line: ReadonlyArray<string>, name: string) => line[names.indexOf(name)] ?? ""
        assert.deepStrictEqual(
          cells.map((row) => [row[1], row[2], row[6]]),
          lines.map((line) => [read(line, "model"), read(line, "requests"), formatUsd(Number(read(line, "spend_usd")))])
        )

        await page.locator("figure canvas").first().waitFor()
        const row = table.locator("tbody tr").filter({ hasText: "gpt-5.2" })
        await row.getByRole("link", { name: "3", exact: true }).click()
        await page.getByText("3 in all").waitFor()
        await page.getByRole("heading", { name: "Requests", level: 1 }).waitFor()
      })
      assert.deepStrictEqual(problems.filter(isProblem), [])
    })
  )
})
