/** `openPage` opens an empty page of Chromium and records all problems on it. */

import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs"
import path from "node:path"
import { setTimeout } from "node:timers/promises"
import { Effect } from "effect"
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core"
import { assert } from "../It.ts"
import { bundles, programPrefix } from "../temporary.ts"

const executable = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync)

/**
 * Delays each answer of the admin API by up to this many milliseconds, at random. A test that reads a view before its data
 * has arrived fails then; without a delay it fails only on a busy machine.
 */
const maxDelayMillis = Number(process.env["ANSWER_DELAY_MS"] ?? 0)

export const delayAnswer = () => setTimeout(Math.random() * maxDelayMillis)

/** Without a browser, tests of pages are skipped. With CI set, they fail instead. */
export const isSkipped = executable === undefined && !process.env["CI"]

export interface BrowserPage {
  readonly page: Page
  /**
   * Errors in the browser's console, violations of the content security policy, failed requests, and requests to other
   * origins.
   */
  readonly problems: ReadonlyArray<string>
}

/**
 * Turns off Playwright's features and those of the address bar, because each window would start a process for its
 * popups, which takes longer than most tests of pages.
 */
const wrapper = (program: string) => `#!/bin/sh
for arg do
  shift
  case $arg in --disable-features=*) arg=$arg,WebUIOmniboxPopup,WebUIOmniboxAimPopup ;; esac
  set -- "$@" "$arg"
done
exec ${program} "$@"
`

let browser: Promise<Browser> | undefined

/** All tests of a worker share this browser, because its start takes longer than most tests. */
const launch = Effect.promise(() => {
  assert.isDefined(executable, "A test needs Chromium: install it, on Debian with `apt-get install chromium`.")
  // Chromium cannot use its sandbox as root.
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : []
  if (browser === undefined) {
    mkdirSync(bundles, { recursive: true })
    const executablePath = path.join(mkdtempSync(programPrefix), "chromium")
    writeFileSync(executablePath, wrapper(executable), { mode: 0o755 })
    browser = chromium.launch({ executablePath, args })
  }
  return browser
})

/** Opens an empty page in a context of its own. It may only send requests to these origins. */
export const openPage = Effect.fnUntraced(function* (
  origins: ReadonlyArray<string>,
  options: BrowserContextOptions = {}
) {
  const browser = yield* launch
  const context = yield* Effect.acquireRelease(
    Effect.promise(() => browser.newContext(options)),
    (context) => Effect.promise(() => context.close())
  )
  if (maxDelayMillis > 0)
    yield* Effect.promise(() =>
      context.route("**/admin/v1/**", async (route) => {
        await delayAnswer()
        // The page may have cancelled the request meanwhile.
        await route.fallback().catch(() => undefined)
      })
    )
  const page = yield* Effect.promise(() => context.newPage())
  const problems: Array<string> = []
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning")
      problems.push(`${message.text()} ${message.location().url}`)
  })
  page.on("pageerror", (error) => problems.push(error.message))
  page.on("requestfailed", (request) => {
    const reason = request.failure()?.errorText
    // A page that navigates aborts its running requests, which is no problem.
    if (reason !== "net::ERR_ABORTED") problems.push(`${request.url()}: ${reason}`)
  })
  page.on("request", (request) => {
    const { origin, protocol } = new URL(request.url())
    if (protocol !== "data:" && !origins.includes(origin)) problems.push(`asked ${request.url()}`)
  })
  return { page, problems } satisfies BrowserPage
})
