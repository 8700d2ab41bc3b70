import { Effect } from "effect"
import type { Page } from "playwright-core"
import type { RequestRecord } from "../../src/console/views/requests/Outcome.ts"
import { isSkipped } from "../harness/client/Browser.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { findMisfits, inBothThemes, openConsole } from "./ConsolePage.ts"
import { hostile } from "./NowAnswers.ts"
import { request, requestAnswers } from "./RequestAnswers.ts"

const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

const rowsOf = (page: Page) => page.locator(".requests tbody tr")

/** As fast as the test goes on, instead of every three seconds. */
const poll = (page: Page) => page.clock.runFor(4000)

/** Where nobody reads: the pointer rests outside the list. */
const stepAside = (page: Page) => page.mouse.move(1, 1)

const opened = (rows: Array<RequestRecord>, options: Parameters<typeof openConsole>[0] = {}) =>
  openConsole({ answers: requestAnswers(() => rows), hash: "#/requests", ...options })

const many = (count: number) => Array.from({ length: count }, (_, index) => request(index))

withLayer(gateway)("the view Requests", (it) => {
  it.scoped.skipIf(isSkipped)("lists the newest first, and pages on", function* () {
    const { page, problems } = yield* opened(many(120))
    yield* Effect.promise(async () => {
      await rowsOf(page).nth(49).waitFor()
      assert.strictEqual(await rowsOf(page).count(), 50)
      assert.include((await rowsOf(page).first().innerText()) ?? "", "$0.00388")
      await page.getByRole("button", { name: "Show more" }).click()
      await rowsOf(page).nth(99).waitFor()
      await page.getByRole("button", { name: "Show more" }).click()
      await page.getByText("120 in all").waitFor()
      const href = await rowsOf(page).last().getByRole("link").first().getAttribute("href")
      assert.strictEqual(href, `#/requests/${request(0).id}`)
    })
    assert.deepStrictEqual(problems, [])
  })

  it.scoped.skipIf(isSkipped)("grows while nobody reads, and keeps still while somebody does", function* () {
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
      await page.getByRole("button", { name: "Show 1 new" }).waitFor()
      assert.strictEqual(await first(), `#/requests/${request(61).id}`)
      await page.getByRole("button", { name: "Show 1 new" }).click()
      assert.strictEqual(await first(), `#/requests/${request(62).id}`)

      await page.getByRole("button", { name: "Live" }).click()
      await page.getByRole("button", { name: "Paused" }).waitFor()
      // The page ends its polling in a task after it has drawn.
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

  it.scoped.skipIf(isSkipped)("has its filters in the address, for itself and the CSV", function* () {
    const { page, problems, url } = yield* opened([
      request(1),
      request(2, { status: 429, code: "rate_limit_exceeded" })
    ])
    yield* Effect.promise(async () => {
      await rowsOf(page).nth(1).waitFor()
      await page.keyboard.press("f")
      await page.keyboard.press("Tab")
      await page.keyboard.type("429")
      await page.getByText("1 in all").waitFor()
      assert.include(await rowsOf(page).innerText(), "429 rate_limit_exceeded")
      await page.getByLabel("Organization", { exact: true }).fill("acme & söhne")
      await page.waitForURL(`${url}/console#/requests?status=429&organization=acme+%26+s%C3%B6hne`)
      const csv = await page.getByRole("link", { name: "CSV" }).getAttribute("href")
      assert.strictEqual(csv, "admin/v1/requests.csv?status=429&organization=acme+%26+s%C3%B6hne")
      await page.reload()
      await page.getByText("1 in all").waitFor()
      assert.strictEqual(await page.getByLabel("Organization", { exact: true }).inputValue(), "acme & söhne")
      await page.getByRole("button", { name: "Clear" }).click()
      await page.getByText("2 in all").waitFor()
      await page.getByLabel("Status").selectOption("503")
      await page.getByText("No request matches.").waitFor()
    })
    assert.deepStrictEqual(problems, [])
  })

  it.scoped.skipIf(isSkipped)("shows names as text, at every width and in both themes, to everybody", function* () {
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

  it.scoped.skipIf(isSkipped)("marks what was refunded, with what was paid in the end", function* () {
    const { page, problems } = yield* opened([
      request(1),
      request(2, { charge_usd: 0.003, refunded_usd: 0.001000001 }),
      request(3, { charge_usd: 0, refunded_usd: 0.00388, status: 500, code: "internal_error" })
    ])
    yield* Effect.promise(async () => {
      const charges = page.locator('tbody td[data-label="Charge"]')
      await charges.nth(2).waitFor()
      assert.deepStrictEqual(await charges.allInnerTexts(), ["refunded $0.00", "partly refunded $0.003", "$0.00388"])
      const title = await charges.nth(1).locator("span[title]").getAttribute("title")
      assert.strictEqual(title, "charged $0.004000001, refunded $0.001000001, paid $0.003")
      assert.deepStrictEqual(await findMisfits(page, inBothThemes(360, 1360)), [])
    })
    assert.deepStrictEqual(problems, [])
  })

  it.scoped.skipIf(isSkipped)("says that the gateway fails, keeps what it has, and goes on", function* () {
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
      assert.strictEqual(await page.getByText("No request matches.").count(), 0)
      isDown = false
      await page.getByRole("button", { name: "Try again" }).click()
      await rowsOf(page).nth(2).waitFor()
      assert.strictEqual(await page.getByRole("alert").count(), 0)
    })
  })

  it.scoped.skipIf(isSkipped)("shows what was asked for last, whichever answer comes late", function* () {
    const { page, problems } = yield* opened([request(1), request(2, { status: 429 }), request(3, { status: 503 })])
    yield* Effect.promise(async () => {
      await rowsOf(page).nth(2).waitFor()
      let answerLate = () => {}
      await page.route(/status=429/, async (route) => {
        await new Promise<void>((resolve) => void (answerLate = resolve))
        await route.fallback().catch(() => undefined)
      })
      const asked = page.waitForRequest(/status=429/)
      await page.getByLabel("Status").selectOption("429")
      await asked
      await page.getByLabel("Status").selectOption("503")
      await page.getByText("1 in all").waitFor()
      answerLate()
      await page.clock.install()
      await poll(page)
      assert.include(await rowsOf(page).innerText(), "503")
    })
    assert.deepStrictEqual(problems, [])
  })
})
