import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { Effect } from "effect"
import type { Locator, Page } from "playwright-core"
import { vi } from "vitest"
import type { OrgId, Role } from "../../src/domain/Organization.ts"
import { hire } from "../harness/client/AdminClient.ts"
import { delayAnswer, openPage } from "../harness/client/Browser.ts"
import { ServedGateway } from "../harness/gateway/ServedGateway.ts"
import { assert } from "../harness/It.ts"

/** Stubbed responses of the admin API, by path without `/admin/v1`. */
export type Answers = Readonly<Record<string, (url: URL) => { readonly status?: number; readonly body: unknown }>>

export const answerWith = (page: Page, answers: Answers) =>
  page.route(
    ({ pathname }) => pathname.replace("/admin/v1", "") in answers,
    async (route) => {
      const url = new URL(route.request().url())
      const { body, status = 200 } = answers[url.pathname.replace("/admin/v1", "")]?.(url) ?? { body: null }
      await delayAnswer()
      // The page may have cancelled the request meanwhile.
      await route.fulfill({ status, json: body }).catch(() => undefined)
    }
  )

export interface ConsoleOptions extends NonNullable<Parameters<typeof openPage>[1]> {
  readonly role?: Role
  /** The organization of a member, or undefined to sign in as an operator of the gateway. */
  readonly org?: OrgId
  /** The view to open. */
  readonly hash?: string
  readonly answers?: Answers
}

/** Opens the console in a new browser, signed in as a new operator. */
export const openConsole = Effect.fnUntraced(function* (consoleOptions: ConsoleOptions = {}) {
  const { answers = {}, hash = "#/", org, role = "owner", ...options } = consoleOptions
  const { url } = yield* ServedGateway
  const operator = yield* hire(role, org)
  const { page, problems } = yield* openPage([url], options)
  yield* Effect.promise(async () => {
    await answerWith(page, answers)
    const signedIn = await page.request.post(`${url}/admin/v1/session`, { data: { token: operator.token } })
    assert.strictEqual(signedIn.status(), 200)
    await page.goto(`${url}/console${hash}`)
    await page.locator("h1").waitFor()
  })
  return { page, problems, url, operator }
})

/** Waits, because a page renders after its address has changed. */
export const waitForValue = (field: Locator, value: string) =>
  vi.waitFor(async () => assert.strictEqual(await field.inputValue(), value), { timeout: 20_000 })

/** Waits, because a view shows its heading before its data has arrived. */
export const waitForTexts = (locator: Locator, texts: ReadonlyArray<string>) =>
  vi.waitFor(async () => assert.deepStrictEqual(await locator.allInnerTexts(), texts), { timeout: 20_000 })

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

/** Returns serious accessibility violations, as axe names them. */
export const findBarriers = async (page: Page): Promise<ReadonlyArray<string>> => {
  if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(axe)
  // Listing the selectors of passed nodes would take most of the time.
  return page.evaluate(`axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) => nodes.map(({ target }) => id + ": " + target.join(" "))))`)
}

/** Returns by how many pixels the page is wider than its window. */
export const overflow = (page: Page): Promise<number> =>
  page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

const drawn = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"

type Appearance = readonly [theme: "light" | "dark", width: number]

export const inBothThemes = (...widths: ReadonlyArray<number>): ReadonlyArray<Appearance> =>
  widths.flatMap(
    (width): ReadonlyArray<Appearance> => [
      ["light", width],
      ["dark", width]
    ]
  )

/** Returns overflow and accessibility violations. */
export const findMisfits = async (page: Page, looks: ReadonlyArray<Appearance>): Promise<ReadonlyArray<string>> => {
  const misfits: Array<string> = []
  for (const [colorScheme, width] of looks) {
    // Without animations axe would not measure a colour in transition.
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" })
    await page.setViewportSize({ width, height: 800 })
    await page.evaluate(drawn)
    const wider = await overflow(page)
    const found = [...(wider > 0 ? [`${wider} pixels too wide`] : []), ...(await findBarriers(page))]
    misfits.push(...found.map((text) => `${colorScheme} ${width}: ${text}`))
  }
  return misfits
}
