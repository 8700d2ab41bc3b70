import { Effect } from "effect"
import type { Page } from "playwright-core"
import { vi } from "vitest"
import { isSkipped } from "../harness/client/Browser.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, describe, withLayer } from "../harness/It.ts"
import { type Answers, findMisfits, inBothThemes, openConsole, waitForValue } from "./ConsolePage.ts"

const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

/** This zone is ahead of UTC: its date is the 25th while UTC has the 24th. */
const elsewhere = { timezoneId: "Pacific/Kiritimati" }
const now = "2026-11-24T20:00:00Z"

const seconds = (time: string) => String(Date.parse(time) / 1000)

/** The requested ranges. */
const recorder = (asked: Array<string>): Answers => {
  const answer = ({ searchParams }: URL) => {
    asked.push(`${searchParams.get("since")} ${searchParams.get("until")}`)
    return { body: { data: [], has_more: false, next: null } }
  }
  return { "/requests": answer, "/videos": answer, "/audit": answer, "/ledger": answer }
}

const timeOf = (page: Page) => page.getByRole("combobox", { name: "Time", exact: true })

const opened = (asked: Array<string>, hash: string) =>
  Effect.gen(function* () {
    const console = yield* openConsole({ answers: recorder(asked), hash, ...elsewhere })
    yield* Effect.promise(async () => {
      await console.page.clock.setFixedTime(now)
      await console.page.reload()
      await timeOf(console.page).waitFor()
    })
    return console
  })

const waitForSpan = (asked: ReadonlyArray<string>, span: string) =>
  vi.waitFor(() => assert.strictEqual(asked.at(-1), span), { timeout: 20_000 })

withLayer(gateway)("a range of the console", (it) => {
  describe("by a word", () => {
    it.scoped.skipIf(isSkipped)("is a UTC day or month in every time zone, also in the CSV", function* () {
      const asked: Array<string> = []
      const { page, problems, url } = yield* opened(asked, "#/requests")
      const spans = [
        ["today", "since=today", "2026-11-24T00:00Z", undefined],
        ["yesterday", "since=yesterday&until=today", "2026-11-23T00:00Z", "2026-11-24T00:00Z"],
        ["this-month", "since=this-month", "2026-11-01T00:00Z", undefined],
        ["last-month", "since=last-month&until=this-month", "2026-10-01T00:00Z", "2026-11-01T00:00Z"]
      ] as const
      yield* Effect.promise(async () => {
        for (const [word, query, since, until] of spans) {
          await timeOf(page).selectOption(word)
          await page.waitForURL(`${url}/console#/requests?${query}`)
          await waitForSpan(asked, `${seconds(since)} ${until === undefined ? null : seconds(until)}`)
          const end = until === undefined ? "" : `&until=${seconds(until)}`
          const csv = await page.getByRole("link", { name: "CSV" }).getAttribute("href")
          assert.strictEqual(csv, `admin/v1/requests.csv?since=${seconds(since)}${end}`)
          assert.strictEqual(await page.getByLabel("From", { exact: true }).count(), 0)
        }
        await timeOf(page).selectOption("24h")
        await page.waitForURL(`${url}/console#/requests?since=24h`)
        await waitForSpan(asked, `${Date.parse(now) / 1000 - 86_400} null`)
      })
      assert.deepStrictEqual(problems, [])
    })

    it.scoped.skipIf(isSkipped)("depends on the day on which a link is opened, in every view", function* () {
      const asked: Array<string> = []
      const { page, problems, url } = yield* opened(asked, "#/videos?since=yesterday&until=today")
      const span = `${seconds("2026-11-23T00:00Z")} ${seconds("2026-11-24T00:00Z")}`
      yield* Effect.promise(async () => {
        await waitForSpan(asked, span)
        for (const view of ["audit", "ledger", "requests"]) {
          asked.length = 0
          await page.goto(`${url}/console#/${view}?since=yesterday&until=today`)
          await waitForSpan(asked, span)
          await waitForValue(timeOf(page), "yesterday")
        }
        await page.clock.setFixedTime("2026-11-25T00:00:01Z")
        await page.reload()
        await waitForSpan(asked, `${seconds("2026-11-24T00:00Z")} ${seconds("2026-11-25T00:00Z")}`)
      })
      assert.deepStrictEqual(problems, [])
    })

    it.scoped.skipIf(isSkipped)("moves to the new day if the page is open at midnight", function* () {
      const asked: Array<string> = []
      const { page } = yield* opened(asked, "#/requests?since=today")
      yield* Effect.promise(async () => {
        await waitForSpan(asked, `${seconds("2026-11-24T00:00Z")} null`)
        await page.clock.setFixedTime("2026-11-25T00:00:05Z")
        await page.getByRole("button", { name: "Live" }).click()
        await waitForSpan(asked, `${seconds("2026-11-25T00:00Z")} null`)
      })
    })

    it.scoped.skipIf(isSkipped)("without a matching preset shows its start and end at every width", function* () {
      const asked: Array<string> = []
      const { page, problems } = yield* opened(asked, "#/requests?since=yesterday")
      yield* Effect.promise(async () => {
        await waitForSpan(asked, `${seconds("2026-11-23T00:00Z")} null`)
        await waitForValue(timeOf(page), "custom")
        assert.strictEqual(await page.getByLabel("From", { exact: true }).inputValue(), "2026-11-23T14:00")
        assert.strictEqual(await page.getByLabel("To", { exact: true }).inputValue(), "")
        assert.deepStrictEqual(await findMisfits(page, inBothThemes(360)), [])
      })
      assert.deepStrictEqual(problems, [])
    })
  })
})
