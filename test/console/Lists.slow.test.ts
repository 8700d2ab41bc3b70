import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { openAccount } from "../harness/client/Account.ts"
import { isSkipped } from "../harness/client/Browser.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { openConsole, waitForValue } from "./ConsolePage.ts"

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

const filters = (page: Page) => page.getByRole("search")

const organizationOf = (page: Page) => filters(page).getByLabel("Organization")

const deliveriesOf = (page: Page) => filters(page).getByLabel("Deliveries")

const pageOf = (...ids: ReadonlyArray<string>) => ({ data: ids.map(delivery), has_more: false, next: null })

withLayer(gateway)("a list of the console", (it) => {
  it.scoped.skipIf(isSkipped)("has its filters in the address, so that a link shows the same", function* () {
    const { org } = yield* openAccount({})
    const { page, problems, url } = yield* openConsole({ hash: "#/webhooks" })
    yield* Effect.promise(async () => {
      await page.getByText("No delivery matches.").waitFor()
      await page.keyboard.press("f")
      assert.strictEqual(await page.evaluate("document.activeElement.type"), "search")
      await page.keyboard.insertText(org)
      await page.waitForURL(`${url}/console#/webhooks?organization=${org}`)
      await deliveriesOf(page).selectOption("failed")
      await page.waitForURL(/organization=.*&state=failed$/)
      await page.reload()
      await waitForValue(organizationOf(page), org)
      await waitForValue(deliveriesOf(page), "failed")
      await page.getByRole("button", { name: "Clear" }).click()
      await page.waitForURL(`${url}/console#/webhooks`)
      await waitForValue(organizationOf(page), "")
      await waitForValue(deliveriesOf(page), "")
    })
    assert.deepStrictEqual(problems, [])
  })

  it.scoped.skipIf(isSkipped)("forgets what is being typed when it is cleared", function* () {
    const { page, url } = yield* openConsole({ hash: "#/webhooks?state=failed" })
    yield* Effect.promise(async () => {
      await waitForValue(deliveriesOf(page), "failed")
      await page.clock.install()
      await page.reload()
      await waitForValue(deliveriesOf(page), "failed")
      await organizationOf(page).fill("half a na")
      await page.getByRole("button", { name: "Clear" }).click()
      await page.waitForURL(`${url}/console#/webhooks`)
      await waitForValue(organizationOf(page), "")
      await page.clock.runFor(2000)
      assert.strictEqual(page.url(), `${url}/console#/webhooks`)
    })
  })

  it.scoped.skipIf(isSkipped)("keeps what is typed while the answers to earlier keys come in", function* () {
    const { page } = yield* openConsole({ hash: "#/webhooks" })
    yield* Effect.promise(async () => {
      const field = organizationOf(page)
      await field.pressSequentially("a name with spaces ", { delay: 90 })
      await page.waitForURL(/organization=a\+name\+with\+spaces$/)
      await waitForValue(field, "a name with spaces ")
    })
  })

  it.scoped.skipIf(isSkipped)("never shows the late answer to an earlier filter", function* () {
    const { page } = yield* openConsole({ hash: "#/webhooks" })
    let answerLate = () => {}
    yield* Effect.promise(async () => {
      await page.route("**/admin/v1/webhooks/deliveries?*", async (route) => {
        const state = new URL(route.request().url()).searchParams.get("state")
        if (state === "pending") await new Promise<void>((resolve) => void (answerLate = resolve))
        await route.fulfill({ json: pageOf(`evt_${state}`) }).catch(() => undefined)
      })
      const asked = page.waitForRequest(/state=pending/)
      await deliveriesOf(page).selectOption("pending")
      await asked
      await deliveriesOf(page).selectOption("failed")
      await page.getByText("evt_failed").waitFor()
      answerLate()
      await deliveriesOf(page).selectOption("delivered")
      await page.getByText("evt_delivered").waitFor()
      assert.lengthOf(await page.getByText("evt_pending").all(), 0)
    })
  })

  it.scoped.skipIf(isSkipped)("goes on page by page, and again after a page that failed", function* () {
    const { org } = yield* openAccount({})
    const sql = yield* SqlClient.SqlClient
    yield* sql`
        INSERT INTO webhook_endpoints (id, org_id, url, secret)
        SELECT 'whe_' || n, ${org}, 'http://127.0.0.1:9/' || n, 's' FROM generate_series(1, 45) AS n`
    const { page } = yield* openConsole({ hash: `#/webhooks?organization=${org}` })
    yield* Effect.promise(async () => {
      const section = page.getByRole("region", { name: "Endpoints" }).first()
      const more = section.getByRole("button", { name: "Show more" })
      await section.getByText("20 so far").waitFor()
      await more.click()
      await section.getByText("40 so far").waitFor()
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
      await section.getByText("45 in all").waitFor()
      const links = await section.locator("tbody code").allInnerTexts()
      assert.strictEqual(new Set(links).size, 45)
    })
  })
})
