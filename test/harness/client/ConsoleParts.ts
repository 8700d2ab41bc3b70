import type { Locator, Page } from "playwright-core"

export const heading = (page: Page, name: string): Locator => page.getByRole("heading", { name, level: 1, exact: true })

export const button = (page: Page | Locator, name: string): Locator => page.getByRole("button", { name, exact: true })

/** Opens the dialog of a change and sends it, once its fields are filled. */
export const change = async (page: Page, name: string, fields: Readonly<Record<string, string>> = {}) => {
  await button(page, name).click()
  const dialog = page.getByRole("dialog")
  for (const [label, value] of Object.entries(fields)) await dialog.getByLabel(label, { exact: true }).fill(value)
  await dialog.locator("button.primary").click()
}

/** The browser itself writes each refusal into its console, and what a view that is left waits for is given up. */
export const without = (problems: ReadonlyArray<string>, ...statuses: ReadonlyArray<number>): ReadonlyArray<string> =>
  problems.filter(
    (text) => !text.endsWith("ERR_ABORTED") && !statuses.some((status) => text.includes(`status of ${status}`))
  )

export const narrow = { viewport: { width: 360, height: 800 } }
