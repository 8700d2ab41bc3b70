import { Effect } from "effect"
import type { Page } from "playwright-core"
import { vi } from "vitest"
import { formatUsd } from "../../src/console/format/Amount.ts"
import { toUsd } from "../../src/domain/Money.ts"
import { isSkipped } from "../harness/client/Browser.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, describe, withLayer } from "../harness/It.ts"
import { type Answers, type ConsoleOptions, findMisfits, inBothThemes, openConsole } from "./ConsolePage.ts"
import { hostile } from "./DashboardAnswers.ts"

const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

const names: Readonly<Record<string, ReadonlyArray<string | null>>> = {
  model: ["claude-opus-5", hostile, null],
  org: ["org_1", "org_2"],
  day: ["2026-11-20", "2026-11-22"],
  hour: ["2026-11-22T01:00Z", "2026-11-22T03:00Z"]
}

const sums = {
  requests: 1234,
  prompt_tokens: 5678,
  completion_tokens: 90,
  cache_hit_rate: 0.25,
  spend_usd: 12.000000001,
  cost_usd: 10,
  margin_usd: 2.000000001,
  cost_unknown: 0
}

const answers = (asked: Array<string> = []): Answers => ({
  "/usage": ({ search, searchParams }) => {
    asked.push(search)
    const [by = "", thenBy] = (searchParams.get("by") ?? "").split(",")
    const data = (names[by] ?? []).flatMap((value) =>
      (thenBy === undefined ? [undefined] : (names[thenBy] ?? [])).map((other) => ({
        ...sums,
        [by]: value,
        ...(by === "org" && { name: `${hostile} ${value}` }),
        ...(thenBy !== undefined && { [thenBy]: other })
      }))
    )
    return { body: { data, totals: { ...sums, spend_usd: 99.999999999 }, has_more: false, next: null } }
  }
})

const opened = (hash: string, options: ConsoleOptions = {}) => openConsole({ answers: answers(), hash, ...options })

const rows = (page: Page) => page.getByRole("region", { name: "Usage" }).locator("tbody tr")

const served = ["gemini-3.6-flash", "gpt-5.2"]

withLayer(gateway)("the console", (it) => {
  describe("the view Usage", () => {
    it.scoped.skipIf(isSkipped)("shows the totals of all rows, and links each row to its requests", function* () {
      const { page, problems } = yield* opened("#/usage?since=7d&status=200")
      yield* Effect.promise(async () => {
        await rows(page).nth(2).waitFor()
        assert.deepStrictEqual((await rows(page).first().innerText()).split("\t"), [
          "claude-opus-5",
          "1,234",
          "5,678",
          "25 %",
          "90",
          "$12.000000001",
          "$10.00",
          "$2.000000001",
          "16.7 %"
        ])
        assert.include(await page.locator("tfoot").innerText(), "$99.999999999")
        const first = rows(page).first().getByRole("link")
        assert.strictEqual(await first.getAttribute("href"), "#/requests?since=7d&status=200&model=claude-opus-5")
        assert.strictEqual(await rows(page).nth(2).getByRole("link").count(), 0)
      })
      assert.deepStrictEqual(problems, [])
    })

    it.scoped.skipIf(isSkipped)("groups, sorts and exports by its address", function* () {
      const asked: Array<string> = []
      const { page, problems, url } = yield* opened("#/usage?since=all", { answers: answers(asked) })
      yield* Effect.promise(async () => {
        await rows(page).nth(2).waitFor()
        await page.getByRole("combobox", { name: "Group by", exact: true }).selectOption("org")
        await page.getByRole("combobox", { name: "Then by" }).selectOption("model")
        await rows(page).nth(5).waitFor()
        await page.getByRole("columnheader").getByRole("link", { name: "Cost", exact: true }).click()
        await page.waitForURL(`${url}/console#/usage?since=all&by=org&and=model&sort=cost`)
        await page.locator('th[aria-sort="descending"]').getByText("Cost", { exact: true }).waitFor()
        await page.getByRole("heading", { name: "Cost per day" }).waitFor()
        const csv = await page.getByRole("link", { name: "CSV" }).getAttribute("href")
        assert.strictEqual(csv, "admin/v1/usage.csv?by=org%2Cmodel&sort=cost")
        await vi.waitFor(() =>
          assert.includeMembers(asked, ["?by=org%2Cmodel&sort=cost&limit=50", "?by=day%2Corg&sort=charge&limit=1000"])
        )
        await rows(page).first().getByText(hostile).first().waitFor()
      })
      assert.deepStrictEqual(problems, [])
    })

    it.scoped.skipIf(isSkipped)("draws the days of a long span and the hours of a short one", function* () {
      const { page, problems } = yield* opened("#/usage")
      yield* Effect.promise(async () => {
        await page.getByRole("heading", { name: "Charged per day (UTC)" }).waitFor()
        await page.clock.setFixedTime("2026-11-22T05:30Z")
        await page.getByLabel("Time").selectOption("24h")
        const chart = page.locator("figure").filter({ hasText: "Charged per hour" })
        await chart.getByText("View as table").click()
        const row = chart.locator(".table tbody tr")
        await row.nth(24).waitFor()
        assert.strictEqual(await row.count(), 25)
        assert.strictEqual(await page.title(), "Usage · Gateway")
      })
      assert.deepStrictEqual(problems, [])
    })

    it.scoped.skipIf(isSkipped)("fits every width in both themes, empty or full", function* () {
      const none = { data: [], totals: { ...sums, requests: 0 }, has_more: false, next: null }
      const empty: Answers = { "/usage": () => ({ body: none }) }
      for (const filled of [answers(), empty]) {
        const { page, problems } = yield* opened("#/usage?by=org&and=model", { answers: filled })
        yield* Effect.promise(async () => {
          await page.getByText(filled === empty ? "No requests in this period." : "6 total").waitFor()
          assert.deepStrictEqual(await findMisfits(page, inBothThemes(360, 900)), [])
        })
        assert.deepStrictEqual(problems, [])
      }
    })

    it.scoped.skipIf(isSkipped)("shows errors of the gateway", function* () {
      const message = "There is no organization acme."
      const refused: Answers = {
        "/usage": () => ({ status: 400, body: { error: { message, param: "organization" } } })
      }
      const { page } = yield* opened("#/usage?organization=acme", { answers: refused })
      yield* Effect.promise(() => page.getByRole("alert").getByText(message).first().waitFor())
    })
  })

  describe("usage of a real gateway", () => {
    it.scoped.skipIf(isSkipped)("agrees with the CSV and the ledger, and links to its requests", function* () {
      const { openai, org, spentInTheEnd } = yield* Served.customer()
      for (const model of [...served, ...served, "gpt-5.2"]) {
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
        await page.getByText("3 total").waitFor()
        await page.getByRole("heading", { name: "Requests", level: 1 }).waitFor()
      })
      assert.deepStrictEqual(problems, [])
    })
  })
})
