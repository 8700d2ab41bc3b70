import { Effect } from "effect"
import type { Page } from "playwright-core"
import type { ListedEntry } from "../../src/console/views/organizations/records.ts"
import { isSkipped } from "../harness/client/Browser.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { openConsole } from "./ConsolePage.ts"
import { at } from "./DashboardAnswers.ts"
import { request, requestAnswers, video } from "./RequestAnswers.ts"

const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

const viewport = { width: 1360, height: 900 }
const long = "a name of many words that nobody ever wanted to be this long"
const key_id = "key_01a205b1000070008000000000000001"

/** Returns rows of more than one line, tables wider than their frame, and cut cells without a tooltip. */
const findBreaks = (page: Page) =>
  page.evaluate<ReadonlyArray<string>>(`[...document.querySelectorAll("main .table.lines")].flatMap((table) => [
    ...(table.scrollWidth > table.clientWidth ? [table.ariaLabel + " is too wide"] : []),
    ...[...table.querySelectorAll("tbody tr, tfoot tr")].filter((row) => row.offsetHeight > 40).map((row) => row.innerText),
    ...[...table.querySelectorAll("td")].filter((cell) => cell.scrollWidth > cell.clientWidth && !cell.title)
      .map((cell) => cell.innerText + " is cut")
  ])`)

/** Cells whose text is cut. */
const findCut = (page: Page) =>
  page.evaluate<ReadonlyArray<string>>(`[...document.querySelectorAll("main .table.lines td")]
    .filter((cell) => [cell, ...cell.querySelectorAll("*")].some((part) => part.scrollWidth > part.clientWidth + 1 && part.clientWidth > 0))
    .map((cell) => cell.dataset.label + ": " + cell.innerText)`)

const usual = {
  org_name: "Northwind Studio",
  model: "gemini-3.6-flash",
  route: "gemini-3.6-flash@openrouter",
  charge_usd: 0.001234567,
  total_ms: 12_345,
  attempts: [
    { route: "gemini-3.6-flash@google", provider: "google", outcome: "retry", status: 503, ms: 5 },
    { route: "gemini-3.6-flash@openrouter", provider: "openrouter", outcome: "ok", status: 200, ms: 8 }
  ]
}

const entry: ListedEntry = {
  id: "1",
  at,
  org: "org_1",
  org_name: "Northwind Studio",
  kind: "charge",
  amount_usd: -0.001234567,
  ref: null,
  note: null,
  key_id,
  key_name: "production",
  hold_id: null,
  request: request(1).id,
  request_id: "req_01a205b1000070008000000000000001"
}

const rendered = {
  ...video,
  org_name: "acme",
  status: "completed",
  error: null,
  route: "veo@b",
  tried: ["veo@a", "veo@b"],
  attempts: [{ route: "veo@b", provider: "b", outcome: "ok", status: 200, ms: 8 }],
  doubts: 1,
  polls: 12,
  downloads: 2
}
const first = { ...rendered, id: "vid_2", tried: ["veo@b"], doubts: 0 }

const fact = (page: Page, name: string) =>
  page
    .locator(".facts > div")
    .filter({ has: page.getByText(name, { exact: true }) })
    .locator("dd")
    .innerText()

withLayer(gateway)("the console", (it) => {
  it.scoped.skipIf(isSkipped)("shows each request on one line at 1360 pixels, with the name of its key", function* () {
    const refused = { ...usual, status: 429, code: "rate_limit_exceeded", route: null, attempts: [] }
    const answers = requestAnswers(() => [
      request(1, { ...usual, key_id }),
      request(2, refused),
      request(3, {
        org_name: long,
        model: long,
        key_id,
        key_name: long,
        code: long,
        route: long,
        charge_usd: 1234.123456789
      })
    ])
    const { page, problems } = yield* openConsole({ answers, hash: "#/requests", viewport })
    yield* Effect.promise(async () => {
      await page.getByText("3 total").waitFor()
      assert.deepStrictEqual(await findBreaks(page), [])
      assert.deepStrictEqual(
        (await findCut(page)).filter((text) => !text.includes(long)),
        []
      )
      const keys = page.locator('tbody td[data-label="Key"]')
      assert.deepStrictEqual(await keys.allInnerTexts(), [long, "production", "production"])
      assert.strictEqual(await page.locator(`td[title="${key_id}"]`).count(), 2)
    })
    assert.deepStrictEqual(problems, [])
  })

  it.scoped.skipIf(isSkipped)(
    "shows each entry of the ledger on one line at 1360 pixels, and its key by name",
    function* () {
      const data: ReadonlyArray<ListedEntry> = [
        entry,
        { ...entry, id: "2", kind: "adjustment", org_name: long, key_name: long, note: long.repeat(9), ref: long },
        { ...entry, id: "3", kind: "top_up", key_name: "", amount_usd: 1234.123456789 }
      ]
      const answers = { "/ledger": () => ({ body: { data, has_more: false, next: null } }) }
      const { page, problems } = yield* openConsole({ answers, hash: "#/ledger", viewport })
      yield* Effect.promise(async () => {
        await page.getByText("3 total").waitFor()
        assert.deepStrictEqual(await findBreaks(page), [])
        const keys = page.locator('tbody td[data-label="Key"]')
        assert.deepStrictEqual(await keys.allInnerTexts(), ["production", long, key_id])
        assert.strictEqual(await keys.first().getAttribute("title"), key_id)
      })
      assert.deepStrictEqual(problems, [])
    }
  )

  it.scoped.skipIf(isSkipped)(
    "fits usage by two dimensions at 1360 pixels, and shows the number of requests with unknown cost",
    function* () {
      const sums = {
        requests: 1_234_567,
        prompt_tokens: 1_234_567_890,
        completion_tokens: 1_234_567_890,
        cache_hit_rate: 0.25,
        spend_usd: 12_345.123456789,
        cost_usd: 12_345.123456789,
        margin_usd: -12_345.123456789,
        cost_unknown: 4321
      }
      const body = {
        data: [{ ...sums, org: "org_1", name: long, model: long }],
        totals: sums,
        has_more: false,
        next: null
      }
      const { page, problems } = yield* openConsole({
        answers: { "/usage": () => ({ body }) },
        hash: "#/usage?by=org&and=model",
        viewport
      })
      yield* Effect.promise(async () => {
        await page.getByText("Margins exclude 4,321 requests with unknown cost").waitFor()
        assert.deepStrictEqual(await findBreaks(page), [])
      })
      assert.deepStrictEqual(problems, [])
    }
  )

  it.scoped.skipIf(isSkipped)("shows the attempted routes of a video and the counts of its problems", function* () {
    const answers = {
      "/videos": () => ({ body: { data: [rendered, first], has_more: false, next: null } }),
      "/videos/vid_1": () => ({ body: rendered })
    }
    const { page, problems } = yield* openConsole({ answers, hash: "#/videos" })
    yield* Effect.promise(async () => {
      await page.getByText("2 total").waitFor()
      const routeCounts = await page.locator('tbody td[data-label="Attempted routes"]').allInnerTexts()
      assert.deepStrictEqual(routeCounts, ["2", "1"])
      await page.locator('a[href="#/videos/vid_1"]').click()
      await page.getByRole("heading", { name: "Details" }).waitFor()
      assert.strictEqual(await fact(page, "Attempted routes"), "veo@a, veo@b")
      assert.strictEqual(await fact(page, "Submissions with unknown outcome"), "1")
      assert.strictEqual(await fact(page, "Polls"), "12")
      assert.strictEqual(await fact(page, "Failed downloads"), "2")
      assert.strictEqual(await page.getByText("Failed before").count(), 0)
    })
    assert.deepStrictEqual(problems, [])
  })
})
