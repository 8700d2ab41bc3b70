import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import type { Page } from "playwright-core"
import { vi } from "vitest"
import { OrganizationScope } from "../../src/domain/OrganizationScope.ts"
import { ApiKeys } from "../../src/services/access/ApiKeys.ts"
import { Organizations } from "../../src/services/admin/Organizations.ts"
import { isSkipped } from "../harness/client/Browser.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { findMisfits, inBothThemes, openConsole } from "./ConsolePage.ts"
import { addFilter, button, heading, without } from "./ConsoleParts.ts"
import { dashboardAnswers, hostile } from "./DashboardAnswers.ts"
import { request, requestAnswers, video } from "./RequestAnswers.ts"

const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

const box = (page: Page) => page.getByRole("dialog", { name: "Search" }).getByRole("combobox")
const group = (page: Page, kind: string) => page.getByRole("group", { name: kind })
const focused = (page: Page) => page.evaluate<string>("document.activeElement.textContent")
/** The active option, as screen readers announce it. */
const chosen = (page: Page) =>
  page.evaluate<string>(
    "document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))?.firstChild.textContent"
  )
const awaitChosen = (page: Page, text: string) =>
  vi.waitFor(async () => assert.strictEqual(await chosen(page), text), { timeout: 20_000 })

const named = Effect.fnUntraced(function* (name: string) {
  const customer = yield* Served.customer()
  yield* Effect.orDie((yield* Organizations).update(customer.org, { name }))
  yield* Effect.orDie((yield* ApiKeys).update(OrganizationScope.all, customer.key, { name: `key of ${name}` }))
  return customer
})

withLayer(gateway)("the search of the console", (it) => {
  it.scoped.skipIf(isSkipped)("finds organizations, keys, requests and videos by id and by name", function* () {
    const name = `Northwind ${randomUUID()}`
    const { key, openai, org, secret } = yield* named(name)
    const messages = [{ role: "user" as const, content: "Hello." }]
    const { _request_id } = yield* Effect.promise(() => openai.chat.completions.create({ model: "gpt-5.2", messages }))
    const { id: row, requestId } = yield* Served.logged(_request_id)
    const id = `vid_${"0".repeat(32)}`
    const answers = { ...dashboardAnswers(), [`/videos/${id}`]: () => ({ body: { ...video, id, org_name: name } }) }
    const { page, problems, url } = yield* openConsole({ answers, role: "read" })
    const asked: Array<string> = []
    page.on("request", (one) => asked.push(decodeURIComponent(one.url())))
    const search = async (text: string, hash: string) => {
      await page.keyboard.press("/")
      await box(page).fill(text)
      await page.keyboard.press("Enter")
      await page.waitForURL(`${url}/console${hash}`)
      await box(page).waitFor({ state: "detached" })
    }
    yield* Effect.promise(async () => {
      await search(requestId, `#/requests/${row}`)
      await page.locator(".record-id", { hasText: requestId }).waitFor()
      await search(org, `#/organizations/${org}`)
      await heading(page, name).waitFor()
      assert.strictEqual(await focused(page), name)
      await search(id, `#/videos/${id}`)
      await search(key, `#/organizations/${org}`)
      await search(name.slice(-20).toUpperCase(), `#/organizations/${org}`)
      await search(secret, `#/organizations/${org}`)
      assert.isFalse(asked.some((address) => address.includes(secret.slice(0, 16))))

      await page.keyboard.press("/")
      await box(page).fill(name)
      await group(page, "Organizations").getByRole("option", { name }).waitFor()
      await group(page, "Keys").getByRole("option", { name }).click()
      await box(page).waitFor({ state: "detached" })
      await page.keyboard.press("/")
      await box(page).fill(`${id.slice(0, -1)}1`)
      await page.getByText("No results.").waitFor()
    })
    assert.deepStrictEqual(without(problems, 404), [])
  })

  it.scoped.skipIf(isSkipped)("opens views by name, and restores the focus when it closes", function* () {
    const { page, problems, url } = yield* openConsole({ answers: requestAnswers(() => []), hash: "#/requests" })
    yield* Effect.promise(async () => {
      await page.getByText("No requests yet.").waitFor()
      await page.keyboard.press("f")
      assert.strictEqual(await page.evaluate("document.activeElement.textContent"), "Status")
      await page.keyboard.press("Escape")
      assert.strictEqual(await page.evaluate("document.activeElement.textContent"), "+ Filter")
      const errorCode = await addFilter(page, "Error code")
      for (const keys of ["Control+k", "Meta+k"]) {
        await errorCode.focus()
        await page.keyboard.press(keys)
        await box(page).waitFor()
        assert.strictEqual(await chosen(page), "Dashboard")
        await page.keyboard.press("ArrowUp")
        await awaitChosen(page, "Settings")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("ArrowDown")
        await awaitChosen(page, "Models")
        await page.keyboard.press("Escape")
        await box(page).waitFor({ state: "detached" })
        assert.strictEqual(await page.evaluate("document.activeElement.closest('label').textContent"), "Error code")
      }
      await button(page, "Search").click()
      await box(page).fill("LED")
      await awaitChosen(page, "Ledger")
      await page.keyboard.press("Enter")
      await page.waitForURL(`${url}/console#/ledger`)
      await heading(page, "Ledger").waitFor()
      assert.strictEqual(await focused(page), "Ledger")
    })
    assert.deepStrictEqual(problems, [])
  })

  it.scoped.skipIf(isSkipped)("is accessible at every width in both themes, and shows errors", function* () {
    const error = { message: "The gateway is busy; retry later." }
    const { page, problems } = yield* openConsole({
      answers: {
        ...dashboardAnswers(),
        ...requestAnswers(() => [request(1, { request_id: "r".repeat(100), org_name: hostile })]),
        "/keys": () => ({ status: 503, body: { error } }),
        "/organizations": () => ({
          body: {
            data: [{ id: "org_1", name: `re ${hostile.repeat(9)}`, suspended: true }],
            has_more: false,
            next: null
          }
        })
      }
    })
    yield* Effect.promise(async () => {
      await page.getByRole("navigation").waitFor()
      await page.keyboard.press("/")
      await box(page).fill("re")
      await page.getByRole("alert").getByText(error.message).waitFor()
      await page.getByText("3 results").waitFor()
      assert.lengthOf(await page.locator("dialog img").all(), 0)
      assert.deepStrictEqual(await findMisfits(page, inBothThemes(360, 1360)), [])
    })
    assert.deepStrictEqual(without(problems, 503), [])
  })
})
