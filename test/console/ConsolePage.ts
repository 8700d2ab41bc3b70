import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { Effect } from "effect"
import type { Locator, Page } from "playwright-core"
import { vi } from "vitest"
import type { Role } from "../../src/domain/Operator.ts"
import type { OrgId } from "../../src/domain/Organization.ts"
import { hire } from "../harness/client/AdminClient.ts"
import { openPage } from "../harness/client/Browser.ts"
import { ServedGateway } from "../harness/gateway/ServedGateway.ts"
import { assert } from "../harness/It.ts"

/** What the admin API answers instead of the gateway, by path without `/admin/v1`. */
export type Answers = Readonly<Record<string, (url: URL) => { readonly status?: number; readonly body: unknown }>>

export const answerWith = (page: Page, answers: Answers) =>
  page.route(
    ({ pathname }) => pathname.replace("/admin/v1", "") in answers,
    async (route) => {
      const url = new URL(route.request().url())
      const { body, status = 200 } = answers[url.pathname.replace("/admin/v1", "")]?.(url) ?? { body: null }
      await route.fulfill({ status, json: body })
    }
  )

export interface ConsoleOptions extends NonNullable<Parameters<typeof openPage>[1]> {
  readonly role?: Role
  /** Whose member signs in; an operator of the gateway where undefined. */
  readonly org?: OrgId
  /** The view to open. */
  readonly hash?: string
  readonly answers?: Answers
}

/** The console in a browser of its own, with a new operator signed in. */
export const openConsole = Effect.fnUntraced(function* (given: ConsoleOptions = {}) {
  const { answers = {}, hash = "#/", org, role = "owner", ...options } = given
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

/** A page is drawn a while after its address has changed. */
export const waitForValue = (field: Locator, value: string) =>
  vi.waitFor(async () => assert.strictEqual(await field.inputValue(), value), { timeout: 20_000 })

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

/** What keeps people from using the page, as axe names it. */
export const findBarriers = async (page: Page): Promise<ReadonlyArray<string>> => {
  if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(axe)
  // What is passed is listed shortly: selectors of thousands of nodes take most of its time.
  return page.evaluate(`axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) => nodes.map(({ target }) => id + ": " + target.join(" "))))`)
}

/** Pixels by which the page is wider than its window. */
export const overflow = (page: Page): Promise<number> =>
  page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

const drawn = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"

type Look = readonly [theme: "light" | "dark", width: number]

export const inBothThemes = (...widths: ReadonlyArray<number>): ReadonlyArray<Look> =>
  widths.flatMap(
    (width): ReadonlyArray<Look> => [
      ["light", width],
      ["dark", width]
    ]
  )

/** What does not fit, or bars somebody. */
export const findMisfits = async (page: Page, looks: ReadonlyArray<Look>): Promise<ReadonlyArray<string>> => {
  const misfits: Array<string> = []
  for (const [colorScheme, width] of looks) {
    // A colour on its way to the next is none that anybody reads.
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" })
    await page.setViewportSize({ width, height: 800 })
    await page.evaluate(drawn)
    const wider = await overflow(page)
    const found = [...(wider > 0 ? [`${wider} pixels too wide`] : []), ...(await findBarriers(page))]
    misfits.push(...found.map((text) => `${colorScheme} ${width}: ${text}`))
  }
  return misfits
}
