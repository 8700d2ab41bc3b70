import { Effect } from "effect"
import type { Locator, Page } from "playwright-core"
import { OrganizationScope } from "../../src/domain/OrganizationScope.ts"
import { Audit } from "../../src/services/admin/AuditLog.ts"
import { consoleInputs } from "../../src/services/admin/Organizations.ts"
import { assert } from "../harness/It.ts"

export const heading = (page: Page, name: string): Locator => page.getByRole("heading", { name, level: 1, exact: true })

export const button = (page: Page | Locator, name: string): Locator => page.getByRole("button", { name, exact: true })

/** The control of a filter that is set or pinned. */
export const filterOf = (page: Page, label: string): Locator =>
  page
    .getByRole("search")
    .locator("label")
    .filter({ has: page.locator("span", { hasText: new RegExp(`^${label}$`) }) })
    .locator("input, select")

/** Adds a filter from the menu. Returns its control, which has the focus. */
export const addFilter = async (page: Page, label: string): Promise<Locator> => {
  await button(page, "+ Filter").click()
  await page.getByRole("menuitem", { name: label, exact: true }).click()
  return filterOf(page, label)
}

/** The label of a field of keys or organizations, from its definition. */
export const inputLabel = (resource: keyof typeof consoleInputs, name: string): string =>
  consoleInputs[resource].find((input) => input.name === name)?.label ?? assert.fail(`${resource} has no ${name}.`)

/** Opens the dialog of a change, fills its fields and sends it. */
export const change = async (page: Page, name: string, fields: Readonly<Record<string, string>> = {}) => {
  await button(page, name).click()
  const dialog = page.getByRole("dialog")
  for (const [label, value] of Object.entries(fields)) await dialog.getByLabel(label, { exact: true }).fill(value)
  await dialog.locator("button.primary").click()
}

/** Presses Tab until the control with this name has the focus. */
export const tabTo = async (page: Page, name: string) => {
  const focused = "document.activeElement.ariaLabel ?? document.activeElement.textContent"
  for (let presses = 0; presses < 60; presses++) {
    await page.keyboard.press("Tab")
    if ((await page.evaluate(focused)) === name) return
  }
  assert.fail(`No Tab reaches ${name}.`)
}

/** Loses the first responses to a change that the gateway applied. Returns the idempotency keys of all requests. */
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

/** Returns the audit log of an operator, newest first. */
export const auditOf = (actor: string) =>
  Effect.gen(function* () {
    const rows = yield* (yield* Audit).list(OrganizationScope.all, { actor, limit: 20 })
    return rows.map(({ action, target, via }) => `${via} ${action} ${target}`)
  })

/** Ignores problems that the browser logs for expected statuses and for aborted requests of a closed view. */
export const without = (problems: ReadonlyArray<string>, ...statuses: ReadonlyArray<number>): ReadonlyArray<string> =>
  problems.filter(
    (text) => !text.endsWith("ERR_ABORTED") && !statuses.some((status) => text.includes(`status of ${status}`))
  )

export const narrow = { viewport: { width: 360, height: 800 } }
