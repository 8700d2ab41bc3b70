import { Effect } from "effect"
import { isSkipped } from "../harness/client/Browser.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { findMisfits, inBothThemes, openConsole, waitForValue } from "./ConsolePage.ts"
import { filterOf, heading, tabTo } from "./ConsoleParts.ts"
import { at, busy, dashboardAnswers, hostile, quiet } from "./DashboardAnswers.ts"

const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

withLayer(gateway)("the dashboard", (it) => {
  it.scoped.skipIf(isSkipped)("shows today and yesterday with every digit", function* () {
    const { page, problems } = yield* openConsole({ answers: dashboardAnswers(busy) })
    yield* Effect.promise(async () => {
      const tile = (label: string) => page.locator(".stat").filter({ has: page.getByText(label, { exact: true }) })
      const figure = (label: string) => tile(label).locator(".figure").innerText()
      assert.strictEqual(await figure("Requests"), "14,382")
      assert.strictEqual(await figure("Charged"), "$183.204817005")
      assert.strictEqual(await figure("Margin"), "−$0.000000001")
      assert.strictEqual(await figure("Time to first byte, p50"), "412 ms")
      assert.include(await tile("Requests").innerText(), "+100 % by this time yesterday: 7,191")
      assert.include(await tile("Charged").innerText(), "by this time yesterday: $183.204817004")
      assert.include(await tile("Cost").innerText(), "3 requests with unknown cost")
      assert.include(await tile("Margin").innerText(), "excludes 3 requests with unknown cost")
      assert.include(await tile("Cost").innerText(), "by this time yesterday: unknown")
      assert.include(await tile("Margin").innerText(), "by this time yesterday: unknown")
      assert.include(await tile("Margin").innerText(), "0 % of charges")
      assert.strictEqual(await page.getByText("$3.204000001").count(), 1)
    })
    assert.deepStrictEqual(problems, [])
  })

  it.scoped.skipIf(isSkipped)("links each tile to the view that explains it, with the same range", function* () {
    const { page, problems } = yield* openConsole({ answers: dashboardAnswers(busy) })
    yield* Effect.promise(async () => {
      const links = page.locator(".stat dt a")
      await links.first().waitFor()
      const found = await links.evaluateAll((all) => all.map((one) => [one.ariaLabel, one.getAttribute("href")]))
      assert.deepStrictEqual(found, [
        ["Requests today", "#/requests?since=today"],
        ["Charged today", "#/usage?since=today"],
        ["Cost today", "#/usage?since=today&sort=cost"],
        ["Margin today", "#/usage?since=today&sort=margin"],
        ["Errors today", "#/requests?since=today&status=error"],
        ["Rejected requests today", "#/requests?since=today&status=rejected"],
        ["Time to first byte, p50, last hour", "#/requests?since=1h&status=ok"],
        ["Time to first byte, p95, last hour", "#/requests?since=1h&status=ok"]
      ])
      await page.locator(".stat", { hasText: "p95" }).getByText("last hour; by this time yesterday").waitFor()
      await tabTo(page, "Errors today")
      const outline = await page.evaluate(
        "getComputedStyle(document.activeElement, '::after').outline + ' ' + getComputedStyle(document.activeElement, '::after').width"
      )
      const tile = page.locator(".stat", { has: page.getByRole("link", { name: "Errors today" }) })
      const width = await tile.evaluate((one) => one.clientWidth)
      assert.match(String(outline), new RegExp(`solid 2px.* ${width}px$`))
      await tile.click()
      await heading(page, "Requests").waitFor()
      await waitForValue(filterOf(page, "Status"), "error")
      await waitForValue(filterOf(page, "Time"), "today")
    })
    assert.deepStrictEqual(problems, [])
  })

  it.scoped.skipIf(isSkipped)("says in plain words which routes are paused", function* () {
    const { page } = yield* openConsole({ answers: dashboardAnswers(busy) })
    yield* Effect.promise(async () => {
      const health = page.getByRole("region", { name: "Provider health", exact: true }).last()
      await health.getByText("paused after failures").waitFor()
      await health.getByText("circuit breaker open").waitFor()
      await health.getByText("disabled", { exact: true }).waitFor()
    })
  })

  it.scoped.skipIf(isSkipped)("draws 48 hours with a tooltip and a table", function* () {
    const { page, problems } = yield* openConsole({ answers: dashboardAnswers(busy) })
    yield* Effect.promise(async () => {
      const charged = page.locator("figure").filter({ hasText: "Charged per hour" })
      const drawing = charged.getByRole("img", { name: "Charged per hour: maximum $0.000000047" })
      const box = await drawing.boundingBox()
      assert.isNotNull(box)
      await drawing.hover({ position: { x: (box?.width ?? 0) - 20, y: 50 } })
      await charged.locator(".u-legend").getByText("$0.000000047").waitFor()
      await charged.getByText("View as table").click()
      const row = charged.locator(".table tbody tr")
      await row.nth(47).waitFor()
      const rows = await row.all()
      assert.lengthOf(rows, 48)
      assert.include((await rows[0]?.innerText()) ?? "", "$0.000000047")
    })
    assert.deepStrictEqual(problems, [])
  })

  it.scoped.skipIf(isSkipped)("shows customer names and provider messages as text", function* () {
    const { page, problems } = yield* openConsole({ answers: dashboardAnswers(busy) })
    yield* Effect.promise(async () => {
      await page.getByText(hostile).nth(2).waitFor()
      assert.lengthOf(await page.getByText(hostile).all(), 3)
      assert.lengthOf(await page.locator("main img").all(), 0)
      assert.strictEqual(await page.title(), "Dashboard · Gateway")
    })
    assert.deepStrictEqual(problems, [])
  })

  it.scoped.skipIf(isSkipped)("shows empty states if nothing happens", function* () {
    const { page, problems } = yield* openConsole()
    yield* Effect.promise(async () => {
      await page.getByText("Nothing needs attention.").waitFor()
      await page.getByText("No route is paused or disabled.").waitFor()
      await page.getByRole("img", { name: "Charged per hour: maximum $0.00" }).waitFor()
    })
    assert.deepStrictEqual(problems, [])
  })

  it.scoped.skipIf(isSkipped)("refreshes every ten seconds, but not in a hidden tab", function* () {
    let asked = 0
    const answers = { "/now": () => ({ body: { ...quiet, at: at + asked++ } }) }
    const { page } = yield* openConsole({ answers })
    yield* Effect.promise(async () => {
      await page.clock.install()
      await page.reload()
      await page.locator("time").first().waitFor()
      const before = asked
      const answered = () => page.waitForResponse("**/admin/v1/now")
      const [next] = [answered()]
      await page.clock.runFor(11_000)
      await next
      assert.strictEqual(asked, before + 1)
      const setHidden = (isHidden: boolean) =>
        page.evaluate(`Object.defineProperty(document, "hidden", { configurable: true, value: ${isHidden} });
            document.dispatchEvent(new Event("visibilitychange"))`)
      await setHidden(true)
      await page.clock.runFor(60_000)
      assert.strictEqual(asked, before + 1)
      const back = answered()
      await setHidden(false)
      await back
      assert.strictEqual(asked, before + 2)
    })
  })

  it.scoped.skipIf(isSkipped)("keeps its data and shows the error when a refresh fails", function* () {
    let isBroken = false
    const error = { message: "The database is unreachable.", type: "api_error", param: null, code: null }
    const answers = {
      "/now": () => (isBroken ? { status: 503, body: { error } } : { body: busy })
    }
    const { page } = yield* openConsole({ answers })
    yield* Effect.promise(async () => {
      await page.getByText("14,382").waitFor()
      await page.clock.install()
      isBroken = true
      await page.reload()
      assert.include(await page.getByRole("alert").innerText(), error.message)
      isBroken = false
      await page.getByRole("button", { name: "Try again" }).click()
      await page.getByText("14,382").waitFor()
      assert.lengthOf(await page.getByRole("alert").all(), 0)
      isBroken = true
      await page.clock.runFor(11_000)
      await page.getByRole("alert").waitFor()
      assert.isTrue(await page.getByText("14,382").isVisible())
    })
  })

  it.scoped.skipIf(isSkipped)("is accessible and fits every width in both themes", function* () {
    const { page, problems } = yield* openConsole({ answers: dashboardAnswers(busy) })
    yield* Effect.promise(async () => {
      await page.getByText("14,382").waitFor()
      assert.deepStrictEqual(await findMisfits(page, inBothThemes(360, 900, 1440)), [])
    })
    assert.deepStrictEqual(problems, [])
  })
})
