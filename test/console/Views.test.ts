import { Effect, Redacted } from "effect"
import type { Page } from "playwright-core"
import { Operators } from "../../src/services/admin/Operators.ts"
import { hire } from "../harness/client/AdminClient.ts"
import { isSkipped, openPage } from "../harness/client/Browser.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { findMisfits, openConsole, overflow } from "./ConsolePage.ts"
import { awaitVideos, makeTraffic, script, spoil } from "./Traffic.ts"

const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

const hashesIn = (page: Page, where: string) =>
  page.evaluate<ReadonlyArray<string>>(`Array.from(document.querySelectorAll("${where} a"), (link) => link.hash)`)

const awaitLoaded = async (page: Page) => {
  const main = page.locator("main")
  await main.locator("h1").waitFor()
  while ((await main.innerText()).includes("Loading…")) await page.waitForTimeout(50)
}

/** Visits every view of the navigation, and one of each kind that a view leads to. */
const walk = async (page: Page, url: string, visit: (hash: string) => Promise<ReadonlyArray<string>>) => {
  const findings: Array<string> = []
  const hashes = [...(await hashesIn(page, "nav"))]
  const kinds = new Set<string>()
  for (const hash of hashes) {
    const [, view = ""] = /^#\/(\w*)/.exec(hash) ?? []
    await page.goto(`${url}/console${hash}`)
    await page.locator(`nav a[aria-current][href="#/${view}"]`).waitFor()
    await awaitLoaded(page)
    for (const finding of await visit(hash)) findings.push(`${hash}: ${finding}`)
    for (const link of await hashesIn(page, "main")) {
      const [, kind] = /^#\/(\w+)\/[^?]/.exec(link) ?? []
      if (kind === undefined || kinds.has(kind)) continue
      kinds.add(kind)
      hashes.push(link)
    }
  }
  return { findings, kinds }
}

const alerts = (page: Page) => page.getByRole("alert").allInnerTexts()
const active =
  "document.querySelectorAll('main :is(img, script, iframe, object)').length + Number('hacked' in globalThis)"

/** A busy gateway, made once. */
const world = Effect.cached(
  Effect.gen(function* () {
    const customers = yield* Effect.all([Served.customer(), Served.customer(), Served.customer()])
    yield* Effect.forEach(customers, makeTraffic, { concurrency: "unbounded" })
    yield* awaitVideos
    return customers.map(({ org }) => org)
  })
).pipe(Effect.runSync)

const looks = [
  ["light", 1440],
  ["dark", 360]
] as const

const slow = 240_000

withLayer(gateway)("every view of the console", (it) => {
  it.scoped.skipIf(isSkipped)(
    "loads without a problem, keeps nobody out, and fits, wide or narrow, light or dark",
    function* () {
      yield* world
      const { url } = yield* Served.ServedGateway
      const operators = yield* Operators
      const { id } = yield* hire("owner")
      const link = Redacted.value(yield* operators.link(id))
      const { page, problems } = yield* openPage([url])
      yield* Effect.promise(async () => {
        await page.goto(`${url}/console#link=${link}`)
        await page.locator("main h1").waitFor()
        const { findings, kinds } = await walk(page, url, async () => [
          ...(await alerts(page)),
          ...(await findMisfits(page, looks))
        ])
        assert.deepStrictEqual(findings, [])
        assert.includeMembers([...kinds], ["organizations", "requests", "videos"])
      })
      assert.deepStrictEqual(problems, [])
    },
    slow
  )

  it.scoped.skipIf(isSkipped)(
    "shows nothing to a reader that changes something",
    function* () {
      yield* world
      const { page, problems, url } = yield* openConsole({ role: "read" })
      const { findings } = yield* Effect.promise(() =>
        walk(page, url, async () => {
          const buttons = await page.locator("main button").allInnerTexts()
          return buttons.filter((text) => !/^(Refresh|Live|Paused|Clear|Show|Verify|Try again|Print)/.test(text))
        })
      )
      assert.deepStrictEqual(findings, [])
      assert.deepStrictEqual(
        problems.filter((text) => !text.includes("status of 403")),
        []
      )
    },
    slow
  )

  it.scoped.skipIf(isSkipped)(
    "shows what others wrote as text, however long and in whatever direction",
    function* () {
      yield* spoil(yield* world)
      const { page, problems, url } = yield* openConsole({ viewport: { width: 360, height: 900 } })
      const told = new Set<string>()
      const { findings } = yield* Effect.promise(() =>
        walk(page, url, async (hash) => {
          if ((await page.locator("main").innerText()).includes(script)) told.add(hash.split("/")[1] ?? "")
          const [run, wider] = [await page.evaluate<number>(active), await overflow(page)]
          return [...(run > 0 ? ["runs what it shows"] : []), ...(wider > 0 ? [`${wider} pixels too wide`] : [])]
        })
      )
      assert.deepStrictEqual(findings, [])
      for (const view of ["requests", "organizations", "ledger", "videos", "routes", "webhooks", "audit"])
        assert.include([...told], view)
      assert.deepStrictEqual(problems, [])
    },
    slow
  )
})
