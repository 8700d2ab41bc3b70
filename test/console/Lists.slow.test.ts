import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { openAccount } from "../harness/client/Account.ts"
import { isSkipped } from "../harness/client/Browser.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { findMisfits, inBothThemes, openConsole, waitForValue } from "./ConsolePage.ts"
import { addFilter, button, filterOf } from "./ConsoleParts.ts"

const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true", FETCH_ALLOW: "127.0.0.0/8" } }))

const delivery = (id: string) => ({
  id,
  type: "video.completed",
  org: "org_1",
  org_name: "acme",
  endpoint: null,
  url: "https://example.com",
  state: "delivered",
  tries: 1,
  at: 1_795_390_000,
  next_at: null,
  status: 200,
  failure: null
})

const organizationOf = (page: Page) => filterOf(page, "Organization")

const deliveriesOf = (page: Page) => filterOf(page, "Deliveries")

const pageOf = (...ids: ReadonlyArray<string>) => ({ data: ids.map(delivery), has_more: false, next: null })

withLayer(gateway)("a list of the console", (it) => {
  it.scoped.skipIf(isSkipped)("stores its filters in the address", function* () {
    const { org } = yield* openAccount({})
    const { page, problems, url } = yield* openConsole({ hash: "#/webhooks" })
    yield* Effect.promise(async () => {
      await page.getByText("No deliveries yet.").waitFor()
      assert.strictEqual(await organizationOf(page).count(), 0)
      await page.keyboard.press("f")
      await page.keyboard.press("Enter")
      assert.strictEqual(await page.evaluate("document.activeElement.type"), "search")
      await page.keyboard.insertText(org)
      await page.waitForURL(`${url}/console#/webhooks?organization=${org}`)
      await (await addFilter(page, "Deliveries")).selectOption("failed")
      await page.waitForURL(/organization=.*&state=failed$/)
      await page.reload()
      await waitForValue(organizationOf(page), org)
      await waitForValue(deliveriesOf(page), "failed")
      await page.getByRole("button", { name: "Clear" }).click()
      await page.waitForURL(`${url}/console#/webhooks`)
      await organizationOf(page).waitFor({ state: "detached" })
      await deliveriesOf(page).waitFor({ state: "detached" })
    })
    assert.deepStrictEqual(problems, [])
  })

  it.scoped.skipIf(isSkipped)("adds, changes and removes filters with the keyboard only", function* () {
    const { page, problems, url } = yield* openConsole({ hash: "#/webhooks" })
    const focused = () => page.evaluate<string>("document.activeElement.textContent")
    yield* Effect.promise(async () => {
      await page.getByText("No deliveries yet.").waitFor()
      await page.keyboard.press("f")
      assert.strictEqual(await focused(), "Organization")
      assert.deepStrictEqual(await findMisfits(page, inBothThemes(360, 1280)), [])
      await page.keyboard.press("ArrowUp")
      assert.strictEqual(await focused(), "Endpoint")
      await page.keyboard.press("ArrowDown")
      assert.strictEqual(await focused(), "Organization")
      await page.keyboard.press("d")
      assert.strictEqual(await focused(), "Deliveries")
      await page.keyboard.press("Escape")
      assert.strictEqual(await page.getByRole("menu").count(), 0)
      assert.strictEqual(await focused(), "+ Filter")
      await page.keyboard.press("Enter")
      await page.keyboard.press("d")
      await page.keyboard.press("Enter")
      await page.keyboard.press("ArrowDown")
      await page.waitForURL(`${url}/console#/webhooks?state=pending`)
      await page.keyboard.press("ArrowDown")
      await page.waitForURL(`${url}/console#/webhooks?state=delivered`)
      assert.deepStrictEqual(await findMisfits(page, inBothThemes(360, 1280)), [])
      await page.keyboard.press("Tab")
      await page.keyboard.press("Enter")
      await page.waitForURL(`${url}/console#/webhooks`)
      await deliveriesOf(page).waitFor({ state: "detached" })
      assert.strictEqual(await focused(), "+ Filter")
    })
    assert.deepStrictEqual(problems, [])
  })

  it.scoped.skipIf(isSkipped)(
    "hides a filter that was left empty, and keeps one that was cleared while typing",
    function* () {
      const { page, url } = yield* openConsole({ hash: "#/webhooks?endpoint=whe_1" })
      yield* Effect.promise(async () => {
        const endpoint = filterOf(page, "Endpoint")
        await waitForValue(endpoint, "whe_1")
        await endpoint.fill("")
        await page.waitForURL(`${url}/console#/webhooks`)
        await endpoint.fill("whe_2")
        await (await addFilter(page, "Organization")).waitFor()
        await page.waitForURL(`${url}/console#/webhooks?endpoint=whe_2`)
        await button(page, "Clear filters").focus()
        await organizationOf(page).waitFor({ state: "detached" })
        await waitForValue(endpoint, "whe_2")
      })
    }
  )

  it.scoped.skipIf(isSkipped)("suggests organizations, keys, models and routes", function* () {
    const { org } = yield* openAccount({})
    const { page, problems } = yield* openConsole({ hash: "#/requests" })
    const suggestions = (label: string) =>
      page
        .evaluate<ReadonlyArray<string>>(
          "Array.from(document.querySelectorAll('datalist option'), ({ value }) => value)"
        )
        .then((values) => [label, values.length > 0] as const)
    yield* Effect.promise(async () => {
      for (const label of ["Organization", "Route"]) {
        await addFilter(page, label)
        await page.locator("datalist option").first().waitFor({ state: "attached" })
        assert.deepStrictEqual(await suggestions(label), [label, true])
      }
      const key = await addFilter(page, "Key")
      await key.fill("key_")
      await page.locator("datalist").waitFor({ state: "attached" })
      assert.notStrictEqual(org, "")
    })
    assert.deepStrictEqual(problems, [])
  })

  it.scoped.skipIf(isSkipped)("discards typed text when the filters are cleared", function* () {
    const { page, url } = yield* openConsole({ hash: "#/webhooks?state=failed" })
    yield* Effect.promise(async () => {
      await waitForValue(deliveriesOf(page), "failed")
      await page.clock.install()
      await page.reload()
      await waitForValue(deliveriesOf(page), "failed")
      await (await addFilter(page, "Organization")).fill("half a na")
      await page.getByRole("button", { name: "Clear" }).click()
      await page.waitForURL(`${url}/console#/webhooks`)
      await organizationOf(page).waitFor({ state: "detached" })
      await page.clock.runFor(2000)
      assert.strictEqual(page.url(), `${url}/console#/webhooks`)
    })
  })

  it.scoped.skipIf(isSkipped)("keeps typed text when responses to earlier keys arrive", function* () {
    const { page } = yield* openConsole({ hash: "#/webhooks" })
    yield* Effect.promise(async () => {
      const field = await addFilter(page, "Organization")
      await field.pressSequentially("a name with spaces ", { delay: 90 })
      await page.waitForURL(/organization=a\+name\+with\+spaces$/)
      await waitForValue(field, "a name with spaces ")
    })
  })

  it.scoped.skipIf(isSkipped)("ignores a late response to an earlier filter", function* () {
    const { page } = yield* openConsole({ hash: "#/webhooks" })
    let answerLate = () => {}
    yield* Effect.promise(async () => {
      await page.route("**/admin/v1/webhooks/deliveries?*", async (route) => {
        const state = new URL(route.request().url()).searchParams.get("state")
        if (state === "pending") await new Promise<void>((resolve) => void (answerLate = resolve))
        await route.fulfill({ json: pageOf(`evt_${state}`) }).catch(() => undefined)
      })
      const asked = page.waitForRequest(/state=pending/)
      await (await addFilter(page, "Deliveries")).selectOption("pending")
      await asked
      await deliveriesOf(page).selectOption("failed")
      await page.getByText("evt_failed").waitFor()
      answerLate()
      await deliveriesOf(page).selectOption("delivered")
      await page.getByText("evt_delivered").waitFor()
      assert.lengthOf(await page.getByText("evt_pending").all(), 0)
    })
  })

  it.scoped.skipIf(isSkipped)("loads page by page, and retries a failed page", function* () {
    const { org } = yield* openAccount({})
    const sql = yield* SqlClient.SqlClient
    yield* sql`
        INSERT INTO webhook_endpoints (id, org_id, url, secret)
        SELECT 'whe_' || n, ${org}, 'http://127.0.0.1:9/' || n, 's' FROM generate_series(1, 45) AS n`
    const { page } = yield* openConsole({ hash: `#/webhooks?organization=${org}` })
    yield* Effect.promise(async () => {
      const section = page.getByRole("region", { name: "Endpoints" }).first()
      const more = section.getByRole("button", { name: "Load more" })
      await section.getByText("20 loaded").waitFor()
      await more.click()
      await section.getByText("40 loaded").waitFor()
      let fails = true
      await page.route("**/admin/v1/webhooks?*", async (route) => {
        if (!fails) return route.fallback()
        fails = false
        return route.abort()
      })
      await more.click()
      await page.getByText("The gateway cannot be reached.").waitFor()
      assert.lengthOf(await section.locator("tbody tr").all(), 40)
      await more.click()
      await section.getByText("45 total").waitFor()
      const links = await section.locator("tbody code").allInnerTexts()
      assert.strictEqual(new Set(links).size, 45)
    })
  })
})
