import { Effect } from "effect"
import type { Page } from "playwright-core"
import type { RequestRecord } from "../../src/console/views/requests/RequestRows.ts"
import { isSkipped } from "../harness/client/Browser.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { findMisfits, inBothThemes, openConsole } from "./ConsolePage.ts"
import { addFilter, filterOf } from "./ConsoleParts.ts"
import { hostile } from "./DashboardAnswers.ts"
import { request, requestAnswers } from "./RequestAnswers.ts"

const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

const rowsOf = (page: Page) => page.locator(".requests tbody tr")

/** Polls without the delay of three seconds. */
const poll = (page: Page) => page.clock.runFor(4000)

/** Moves the pointer out of the list, so new rows appear. */
const stepAside = (page: Page) => page.mouse.move(1, 1)

const opened = (rows: Array<RequestRecord>, options: Parameters<typeof openConsole>[0] = {}) =>
  openConsole({ answers: requestAnswers(() => rows), hash: "#/requests", ...options })

const many = (count: number) => Array.from({ length: count }, (_, index) => request(index))

withLayer(gateway)("the view Requests", (it) => {
  it.scoped.skipIf(isSkipped)("lists the newest first, page by page", function* () {
    const { page, problems } = yield* opened(many(120))
    yield* Effect.promise(async () => {
      await rowsOf(page).nth(49).waitFor()
      assert.strictEqual(await rowsOf(page).count(), 50)
      assert.include((await rowsOf(page).first().innerText()) ?? "", "$0.00388")
      await page.getByRole("button", { name: "Load more" }).click()
      await rowsOf(page).nth(99).waitFor()
      await page.getByRole("button", { name: "Load more" }).click()
      await page.getByText("120 total").waitFor()
      const href = await rowsOf(page).last().getByRole("link").first().getAttribute("href")
      assert.strictEqual(href, `#/requests/${request(0).id}`)
    })
    assert.deepStrictEqual(problems, [])
  })

  it.scoped.skipIf(isSkipped)("reports a search that paused at its row limit, and continues it", function* () {
    const answers = {
      "/requests": ({ searchParams }: URL) => ({
        body: searchParams.has("after")
          ? { data: [request(1)], has_more: false, next: null, cut_short: false }
          : { data: [], has_more: true, next: request(9).id, cut_short: true }
      })
    }
    const { page, problems } = yield* openConsole({ answers, hash: "#/requests" })
    yield* Effect.promise(async () => {
      await page.getByText("0 loaded. The search paused at its row limit.").waitFor()
      await page.getByRole("button", { name: "Search older requests" }).click()
      await page.getByText("1 total").waitFor()
      assert.strictEqual(await rowsOf(page).count(), 1)
    })
    assert.deepStrictEqual(problems, [])
  })

  it.scoped.skipIf(isSkipped)("adds rows, but keeps them behind a button while the user reads the list", function* () {
    const rows = many(60)
    const { page, problems } = yield* opened(rows)
    yield* Effect.promise(async () => {
      const first = () => rowsOf(page).first().getByRole("link").first().getAttribute("href")
      await page.clock.install()
      await page.reload()
      await rowsOf(page).nth(49).waitFor()
      await stepAside(page)
      rows.push(request(60), request(61))
      await poll(page)
      await page.locator(`a[href="#/requests/${request(61).id}"]`).waitFor()
      assert.strictEqual(await first(), `#/requests/${request(61).id}`)

      await rowsOf(page).nth(3).hover()
      rows.push(request(62))
      await poll(page)
      await page.getByRole("button", { name: "Show 1 new request" }).waitFor()
      assert.strictEqual(await first(), `#/requests/${request(61).id}`)
      await page.getByRole("button", { name: "Show 1 new request" }).click()
      assert.strictEqual(await first(), `#/requests/${request(62).id}`)

      await page.getByRole("button", { name: "Live" }).click()
      await page.getByRole("button", { name: "Paused" }).waitFor()
      // The page stops polling in a task after rendering.
      await page.clock.runFor(100)
      const polls: Array<string> = []
      page.on("request", (asked) => polls.push(asked.url()))
      rows.push(request(63))
      await page.clock.runFor(10_000)
      assert.deepStrictEqual(polls, [])
      await stepAside(page)
      await page.getByRole("button", { name: "Paused" }).click()
      await stepAside(page)
      await poll(page)
      await page.locator(`a[href="#/requests/${request(63).id}"]`).waitFor()
    })
    assert.deepStrictEqual(problems, [])
  })

  it.scoped.skipIf(isSkipped)("stores its filters in the address and the CSV link", function* () {
    const { page, problems, url } = yield* opened([
      request(1),
      request(2, { status: 429, code: "rate_limit_exceeded" })
    ])
    yield* Effect.promise(async () => {
      await rowsOf(page).nth(1).waitFor()
      await page.keyboard.press("f")
      await page.keyboard.press("s")
      await page.keyboard.press("Enter")
      await page.keyboard.type("429")
      await page.getByText("1 total").waitFor()
      assert.include(await rowsOf(page).innerText(), "429 rate_limit_exceeded")
      await (await addFilter(page, "Organization")).fill("acme & söhne")
      await page.waitForURL(`${url}/console#/requests?status=429&organization=acme+%26+s%C3%B6hne`)
      const csv = await page.getByRole("link", { name: "CSV" }).getAttribute("href")
      assert.strictEqual(csv, "admin/v1/requests.csv?status=429&organization=acme+%26+s%C3%B6hne")
      await page.reload()
      await page.getByText("1 total").waitFor()
      assert.strictEqual(await filterOf(page, "Organization").inputValue(), "acme & söhne")
      await page.getByRole("button", { name: "Clear" }).click()
      await page.getByText("2 total").waitFor()
      await (await addFilter(page, "Status")).selectOption("503")
      await page.getByText("No requests match.").waitFor()
    })
    assert.deepStrictEqual(problems, [])
  })

  it.scoped.skipIf(isSkipped)("shows names as text at every width in both themes", function* () {
    const rows = [
      request(1, { org_name: hostile, key_name: hostile, model: `${hostile}${"x".repeat(10_000)}`, code: "a_code" }),
      request(2, { status: 503, code: "no_provider_available", route: null, model: null })
    ]
    const { page, problems } = yield* opened(rows)
    yield* Effect.promise(async () => {
      await page.getByText(hostile).first().waitFor()
      assert.lengthOf(await page.locator("main img").all(), 0)
      assert.deepStrictEqual(await findMisfits(page, inBothThemes(360, 900)), [])
    })
    assert.deepStrictEqual(problems, [])
  })

  it.scoped.skipIf(isSkipped)("marks refunds and shows the net charge", function* () {
    const { page, problems } = yield* opened([
      request(1),
      request(2, { charge_usd: 0.003, refunded_usd: 0.001000001 }),
      request(3, { charge_usd: 0, refunded_usd: 0.00388, status: 500, code: "internal_error" })
    ])
    yield* Effect.promise(async () => {
      const charges = page.locator('tbody td[data-label="Charge"]')
      await charges.nth(2).waitFor()
      assert.deepStrictEqual(await charges.allInnerTexts(), ["refunded $0.00", "partially refunded $0.003", "$0.00388"])
      const title = await charges.nth(1).locator("span[title]").getAttribute("title")
      assert.strictEqual(title, "Net charge $0.003: charged $0.004000001, refunded $0.001000001")
      assert.deepStrictEqual(await findMisfits(page, inBothThemes(360, 1360)), [])
    })
    assert.deepStrictEqual(problems, [])
  })

  it.scoped.skipIf(isSkipped)("shows an error of the gateway, keeps its rows, and recovers", function* () {
    let isDown = false
    const answers = requestAnswers(() => many(3))
    const down = { status: 500, body: { error: { message: "Internal error.", type: "api_error" } } }
    const flaky = { "/requests": (url: URL) => (isDown ? down : answers["/requests"]?.(url)) ?? down }
    const { page } = yield* openConsole({ answers: flaky, hash: "#/requests" })
    yield* Effect.promise(async () => {
      await page.clock.install()
      await page.reload()
      await rowsOf(page).nth(2).waitFor()
      isDown = true
      await poll(page)
      await page.getByRole("alert").getByText("Internal error.").waitFor()
      assert.strictEqual(await rowsOf(page).count(), 3)
      isDown = false
      await poll(page)
      await page.getByRole("alert").waitFor({ state: "detached" })
      isDown = true
      await page.reload()
      await page.getByRole("alert").waitFor()
      assert.strictEqual(await page.getByText("No requests match.").count(), 0)
      isDown = false
      await page.getByRole("button", { name: "Try again" }).click()
      await rowsOf(page).nth(2).waitFor()
      assert.strictEqual(await page.getByRole("alert").count(), 0)
    })
  })

  it.scoped.skipIf(isSkipped)("ignores late responses to earlier filters", function* () {
    const { page, problems } = yield* opened([request(1), request(2, { status: 429 }), request(3, { status: 503 })])
    yield* Effect.promise(async () => {
      await rowsOf(page).nth(2).waitFor()
      let answerLate = () => {}
      await page.route(/status=429/, async (route) => {
        await new Promise<void>((resolve) => void (answerLate = resolve))
        await route.fallback().catch(() => undefined)
      })
      const asked = page.waitForRequest(/status=429/)
      await (await addFilter(page, "Status")).selectOption("429")
      await asked
      await filterOf(page, "Status").selectOption("503")
      await page.getByText("1 total").waitFor()
      answerLate()
      await page.clock.install()
      await poll(page)
      assert.include(await rowsOf(page).innerText(), "503")
    })
    assert.deepStrictEqual(problems, [])
  })
})
