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
  cost_usd: 0.25,
  url: null,
  doubts: 1,
  polls: 12,
  downloads: 2
}

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

  it.scoped.skipIf(isSkipped)("shows each video and each open hold on one line at 1360 pixels", function* () {
    const model = "veo-3.1-fast-generate-001"
    const clip = {
      ...rendered,
      id: "vid_01a205b1000070008000000000000001",
      org_name: usual.org_name,
      model,
      route: `${model}@vertex`,
      charge_usd: 1.234567891
    }
    const hold = {
      id: rendered.hold_id,
      org: "org_1",
      org_name: usual.org_name,
      key_id,
      key_name: "production",
      model,
      surface: "video",
      request_id: request(1).id,
      amount_usd: 0.061665,
      state: "open",
      created_at: at,
      age_seconds: 100,
      waits_for: "request",
      detail: "A request runs on gateway-7f9c4d:4711 since 1 minute.",
      instance: "gateway-7f9c4d:4711",
      video: clip.id
    }
    const running = { ...clip, id: "vid_2", org_name: long, model: long, route: `${long}@b`, status: "in_progress" }
    const pageOf = (...data: ReadonlyArray<object>) => ({ body: { data, has_more: false, next: null } })
    const answers = {
      "/videos": () => pageOf(clip, { ...running, charge_usd: null, completed_at: null }),
      "/ledger/holds": () =>
        pageOf(hold, { ...hold, id: "2", org_name: long, model: long, key_name: long, detail: long })
    }
    const { page, problems } = yield* openConsole({ answers, hash: "#/videos", viewport })
    yield* Effect.promise(async () => {
      for (const hash of ["#/videos", "#/holds"]) {
        await page.evaluate(`location.hash = "${hash}"`)
        await page.getByText("2 total").waitFor()
        assert.deepStrictEqual(await findBreaks(page), [])
        assert.lengthOf(await page.locator("main .table.lines").all(), 1)
        if (hash === "#/holds") break
        assert.deepStrictEqual(
          (await findCut(page)).filter((text) => !text.includes(long)),
          []
        )
        assert.deepStrictEqual(await page.locator('tbody td[data-label="Route"]').allInnerTexts(), ["vertex", "b"])
      }
    })
    assert.deepStrictEqual(problems, [])
  })

  it.scoped.skipIf(isSkipped)("shows the status of the video of a request", function* () {
    const of = (index: number, video_status: "completed" | "failed" | "queued" | null) =>
      request(index, { ...usual, status: 202, surface: "video", charge_usd: 0, video_status })
    const refused = { ...of(5, "failed"), status: 400 }
    const unroutable = { ...of(6, "failed"), status: 503, code: "no_provider_available" }
    const all = [of(1, "completed"), of(2, "failed"), of(3, "queued"), of(4, null), refused, unroutable]
    const answers = requestAnswers(() => all)
    const { page, problems } = yield* openConsole({ answers, hash: "#/requests", viewport })
    yield* Effect.promise(async () => {
      await page.getByText("6 total").waitFor()
      const badges = page.locator('tbody td[data-label="Status"] .badge')
      assert.deepStrictEqual(
        await badges.evaluateAll((all) => all.map((one) => `${one.textContent} ${one.className}`)),
        [
          "503 no_provider_available badge bad",
          "400 badge warn",
          "202 badge good",
          "202 queued badge soft",
          "202 failed badge bad",
          "202 completed badge good"
        ]
      )
      const charges = await page.locator('tbody td[data-label="Charge"]').allInnerTexts()
      assert.deepStrictEqual(charges, ["$0.00", "$0.00", "$0.00", "pending", "$0.00", "$0.00"])
      assert.deepStrictEqual(await findBreaks(page), [])
    })
    assert.deepStrictEqual(problems, [])
  })

  it.scoped.skipIf(isSkipped)("shows nested values of changes, with aligned labels on narrow pages", function* () {
    const attempt = { route: "veo@b", provider: "b", outcome: "retry", status: 503, ms: 8, detail: null }
    const after = {
      model: "gemini-3.6-flash",
      prompt_tokens: 12,
      attempts: [attempt, { ...attempt, outcome: "ok", status: 200 }],
      limits: { rpm: 60, models: ["a", "b"] },
      scopes: ["chat", "image"],
      events: []
    }
    const row = { id: 1, at, actor: "root", via: "console", target: "m", org: null, org_name: null }
    const data = [{ ...row, action: "models.test", before: null, after }]
    const answers = { "/audit": () => ({ body: { data, has_more: false, next: null } }) }
    const { page, problems } = yield* openConsole({
      answers,
      hash: "#/audit",
      viewport: { width: 390, height: 900 }
    })
    yield* Effect.promise(async () => {
      await page.getByText("1 total").waitFor()
      const text = await page.locator(".difference").innerText()
      assert.notInclude(text, "[object")
      assert.deepStrictEqual(await page.locator(".difference li").allInnerTexts(), [
        "route veo@b, provider b, outcome retry, status 503, ms 8",
        "route veo@b, provider b, outcome ok, status 200, ms 8"
      ])
      assert.include(text, "rpm 60, models a, b")
      assert.include(text, "chat, image")
      const boxes = await page
        .locator(".difference dt, .difference dd")
        .evaluateAll((all) => all.map((one) => one.getBoundingClientRect()).map(({ left, width }) => ({ left, width })))
      assert.lengthOf(new Set(boxes.map(({ left }) => left)), 2)
      assert.isAbove(Math.min(...boxes.map(({ width }) => width)), 80)
    })
    assert.deepStrictEqual(problems, [])
  })

  it.scoped.skipIf(isSkipped)("shows the attempted routes of a video and the counts of its problems", function* () {
    const answers = {
      "/videos/vid_1": () => ({ body: rendered })
    }
    const { page, problems } = yield* openConsole({ answers, hash: "#/videos/vid_1" })
    yield* Effect.promise(async () => {
      await page.getByRole("heading", { name: "Details" }).waitFor()
      assert.strictEqual(await fact(page, "Attempted routes"), "veo@a, veo@b")
      assert.strictEqual(await fact(page, "Submissions with unknown outcome"), "1")
      assert.strictEqual(await fact(page, "Polls"), "12")
      assert.strictEqual(await fact(page, "Failed downloads"), "2")
      assert.strictEqual(await page.locator('td[data-label="Cost"]').innerText(), "$0.25")
      assert.strictEqual(await page.getByText("Failed before").count(), 0)
    })
    assert.deepStrictEqual(problems, [])
  })
})
