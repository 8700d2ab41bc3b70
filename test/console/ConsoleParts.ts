import { Effect } from "effect"
import type { Locator, Page } from "playwright-core"
import { OrganizationScope } from "../../src/domain/OrganizationScope.ts"
import { Audit } from "../../src/services/admin/Audit.ts"
import { assert } from "../harness/It.ts"

export const heading = (page: Page, name: string): Locator => page.getByRole("heading", { name, level: 1, exact: true })

export const button = (page: Page | Locator, name: string): Locator => page.getByRole("button", { name, exact: true })

/** Opens the dialog of a change and sends it, once its fields are filled. */
export const change = async (page: Page, name: string, fields: Readonly<Record<string, string>> = {}) => {
  await button(page, name).click()
  const dialog = page.getByRole("dialog")
  for (const [label, value] of Object.entries(fields)) await dialog.getByLabel(label, { exact: true }).fill(value)
  await dialog.locator("button.primary").click()
}

/** Presses Tab until the control of that name has the focus. */
export const tabTo = async (page: Page, name: string) => {
  const focused = "document.activeElement.ariaLabel ?? document.activeElement.textContent"
  for (let presses = 0; presses < 60; presses++) {
    await page.keyboard.press("Tab")
    if ((await page.evaluate(focused)) === name) return
  }
  assert.fail(`No Tab reaches ${name}.`)
}

/** Loses the first answers to a kind of change, which was made all the same; the idempotency keys that were sent. */
export const loseAnswers = async (page: Page, address: string, count: number): Promise<ReadonlyArray<string>> => {
  const keys: Array<string> = []
  await page.route(address, async (route) => {
    if (route.request().method() === "GET") return route.fallback()
    if (keys.push(route.request().headers()["idempotency-key"] ?? "") > count) return route.continue()
    await route.fetch()
    return route.abort("connectionreset")
  })
  return keys
}

/** What an operator did, newest first, and where it was asked for. */
export const auditOf = (actor: string) =>
  Effect.gen(function* () {
    const rows = yield* (yield* Audit).list(OrganizationScope.all, { actor, limit: 20 })
    return rows.map(({ action, target, via }) => `${via} ${action} ${target}`)
  })

/** The browser itself writes each refusal into its console, and what a view that is left waits for is given up. */
export const without = (problems: ReadonlyArray<string>, ...statuses: ReadonlyArray<number>): ReadonlyArray<string> =>
  problems.filter(
    (text) => !text.endsWith("ERR_ABORTED") && !statuses.some((status) => text.includes(`status of ${status}`))
  )

export const narrow = { viewport: { width: 360, height: 800 } }
