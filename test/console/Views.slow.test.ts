import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Effect, Redacted } from "effect"
import type { Page } from "playwright-core"
import type { Role } from "../../src/domain/Operator.ts"
import type { OrgId } from "../../src/domain/Organization.ts"
import { Operators } from "../../src/services/admin/Operators.ts"
import { hire } from "../harness/client/AdminClient.ts"
import { isSkipped, openPage } from "../harness/client/Browser.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { earlyAnswers } from "../harness/gateway/ShortTimings.ts"
import { assert, withLayer } from "../harness/It.ts"
import * as StripeGateway from "../harness/stripe/StripeGateway.ts"
import { type ConsoleOptions, findMisfits, openConsole, overflow } from "./ConsolePage.ts"
import { awaitVideos, makeTraffic, script, spoil } from "./Traffic.ts"

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

/** What is internal of providers and money. */
const internalWords = async (page: Page): Promise<ReadonlyArray<string>> =>
  (await page.locator("main").innerText()).match(/\b(provider'?s?|routes?|margins?|costs?|attempts?)\b/gi) ?? []

const makePayments = Effect.fnUntraced(function* (org: OrgId) {
  const sql = yield* SqlClient.SqlClient
  const amount = 25_000_000_000n
  for (const status of ["open", "failed", "expired"]) {
    const id = `pay_${randomUUID().replaceAll("-", "")}`
    yield* sql`INSERT INTO payments (id, org_id, amount, status) VALUES (${id}, ${org}, ${amount}, ${status})`
  }
})

/** A busy gateway, made once. */
const world = Effect.cached(
  Effect.gen(function* () {
    const customers = yield* Effect.all([Served.customer(), Served.customer(), Served.customer()])
    yield* Effect.forEach(customers, makeTraffic, { concurrency: "unbounded" })
    yield* awaitVideos
    yield* Effect.forEach(customers, ({ org }) => makePayments(org))
    return customers.map(({ org }) => org)
  })
).pipe(Effect.runSync)

/** The same with texts wherever others write, made once. */
const spoiled = Effect.cached(Effect.tap(world, spoil)).pipe(Effect.runSync)

const looks = [
  ["light", 1440],
  ["dark", 360]
] as const

const slow = 600_000

/** An operator of the gateway, or a member. */
const whose = (org: OrgId | undefined): ConsoleOptions => (org === undefined ? {} : { role: "write", org })

/** Signs in by a one-time link, and finds what does not load or fit on any view. */
const findUnfit = Effect.fnUntraced(function* (role: Role, org?: OrgId) {
  const { url } = yield* Served.ServedGateway
  const operators = yield* Operators
  const { id } = yield* hire(role, org)
  const link = Redacted.value(yield* operators.link(id))
  const { page, problems } = yield* openPage([url])
  const found = yield* Effect.promise(async () => {
    await page.goto(`${url}/console#link=${link}`)
    await page.locator("main h1").waitFor()
    return walk(page, url, async () => [
      ...(await alerts(page)),
      ...(await findMisfits(page, looks)),
      ...(org === undefined ? [] : await internalWords(page))
    ])
  })
  return { ...found, problems }
})

const findWriteButtons = Effect.fnUntraced(function* (org?: OrgId) {
  const { page, problems, url } = yield* openConsole({ ...whose(org), role: "read" })
  const { findings } = yield* Effect.promise(() =>
    walk(page, url, async () => {
      const buttons = await page.locator("main button").allInnerTexts()
      return buttons.filter((text) => !/^(Refresh|Live|Paused|Clear|Show|Verify|Try again|Print)/.test(text))
    })
  )
  return { findings, problems: problems.filter((text) => !text.includes("status of 403")) }
})

/** The views that show what others wrote, and what comes of it. */
const findHarm = Effect.fnUntraced(function* (org?: OrgId) {
  const { page, problems, url } = yield* openConsole({ viewport: { width: 360, height: 900 }, ...whose(org) })
  const told = new Set<string>()
  const { findings } = yield* Effect.promise(() =>
    walk(page, url, async (hash) => {
      if ((await page.locator("main").innerText()).includes(script)) told.add(hash.split("/")[1] ?? "")
      const [run, wider] = [await page.evaluate<number>(active), await overflow(page)]
      return [...(run > 0 ? ["runs what it shows"] : []), ...(wider > 0 ? [`${wider} pixels too wide`] : [])]
    })
  )
  return { told, findings, problems }
})

const clean = { findings: [], problems: [] }

withLayer(StripeGateway.layer({}, earlyAnswers))("every view of the console", (it) => {
  it.scoped.skipIf(isSkipped)(
    "loads without a problem, keeps nobody out, and fits, wide or narrow, light or dark",
    function* () {
      yield* world
      const { findings, kinds, problems } = yield* findUnfit("owner")
      assert.deepStrictEqual(findings, [])
      assert.includeMembers([...kinds], ["organizations", "requests", "videos", "payments"])
      assert.deepStrictEqual(problems, [])
    },
    slow
  )

  it.scoped.skipIf(isSkipped)(
    "does so for members, and shows them nothing of the operators' own",
    function* () {
      const [org] = yield* world
      const { findings, kinds, problems } = yield* findUnfit("write", org)
      assert.deepStrictEqual(findings, [])
      assert.deepStrictEqual([...kinds].toSorted(), ["payments", "requests", "videos"])
      assert.deepStrictEqual(problems, [])
    },
    slow
  )

  it.scoped.skipIf(isSkipped)(
    "shows nothing to a reader that changes something",
    function* () {
      const [org] = yield* world
      assert.deepStrictEqual(yield* findWriteButtons(), clean)
      assert.deepStrictEqual(yield* findWriteButtons(org), clean)
    },
    slow
  )

  it.scoped.skipIf(isSkipped)(
    "shows what others wrote as text, however long and in whatever direction",
    function* () {
      yield* spoiled
      const { told, ...harm } = yield* findHarm()
      assert.deepStrictEqual(harm, clean)
      for (const view of ["requests", "organizations", "ledger", "videos", "routes", "webhooks", "audit"])
        assert.include([...told], view)
    },
    slow
  )

  it.scoped.skipIf(isSkipped)(
    "shows members what others wrote as text",
    function* () {
      for (const org of yield* spoiled) {
        const { findings, problems } = yield* findHarm(org)
        assert.deepStrictEqual({ findings, problems }, clean)
      }
    },
    slow
  )
})
