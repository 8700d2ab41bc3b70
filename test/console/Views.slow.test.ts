import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Effect, Redacted } from "effect"
import type { Page } from "playwright-core"
import type { OrgId, Role } from "../../src/domain/Organization.ts"
import { OrganizationScope } from "../../src/domain/OrganizationScope.ts"
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

/** Visits every view of the navigation, and one page of each kind that views link to. */
const visitViews = async (page: Page, url: string, visit: (hash: string) => Promise<ReadonlyArray<string>>) => {
  const findings: Array<string> = []
  const hashes = [...(await hashesIn(page, "nav"))]
  const kinds = new Set<string>()
  for (const hash of hashes) {
    const [, view = ""] = /^#\/(\w*)/.exec(hash) ?? []
    await page.goto(`${url}/console${hash}`)
    await page.locator(`nav a[aria-current][href="#/${view}"]`).waitFor({ state: "attached" })
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

/** Words of internal fields about providers and costs. */
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

/** A busy gateway, created once. */
const world = Effect.cached(
  Effect.gen(function* () {
    const customers = yield* Effect.all([Served.customer(), Served.customer(), Served.customer()])
    yield* Effect.forEach(customers, makeTraffic, { concurrency: "unbounded" })
    yield* awaitVideos
    yield* Effect.forEach(customers, ({ org }) => makePayments(org))
    return customers.map(({ org }) => org)
  })
).pipe(Effect.runSync)

/** The same gateway with hostile texts in every field that others write. */
const spoiled = Effect.cached(Effect.tap(world, spoil)).pipe(Effect.runSync)

const looks = [
  ["light", 1440],
  ["dark", 360]
] as const

const slow = 600_000

const signInOptions = (org: OrgId | undefined): ConsoleOptions => (org === undefined ? {} : { role: "write", org })

/** Signs in by a one-time link. Returns errors, misfits and accessibility problems of every view. */
const findProblems = Effect.fnUntraced(function* (role: Role, org?: OrgId) {
  const { url } = yield* Served.ServedGateway
  const operators = yield* Operators
  const { id } = yield* hire(role, org)
  const link = Redacted.value(yield* operators.link(OrganizationScope.all, id))
  const { page, problems } = yield* openPage([url])
  const found = yield* Effect.promise(async () => {
    await page.goto(`${url}/console#link=${link}`)
    await page.locator("main h1").waitFor()
    return visitViews(page, url, async () => [
      ...(await alerts(page)),
      ...(await findMisfits(page, looks)),
      ...(org === undefined ? [] : await internalWords(page))
    ])
  })
  return { ...found, problems }
})

const findWriteButtons = Effect.fnUntraced(function* (org?: OrgId) {
  const { page, problems, url } = yield* openConsole({ ...signInOptions(org), role: "read" })
  const { findings } = yield* Effect.promise(() =>
    visitViews(page, url, async () => {
      const buttons = await page.locator("main button").allInnerTexts()
      return buttons.filter(
        (text) => !/^(Refresh|Live|Paused|Clear|Show|Load|Verify|Try again|Print|Copy|Use key|\+ Filter|×)/.test(text)
      )
    })
  )
  return { findings, problems: problems.filter((text) => !text.includes("status of 403")) }
})

/** Returns the views that show hostile texts, and the damage done. */
const findHarm = Effect.fnUntraced(function* (org?: OrgId) {
  const { page, problems, url } = yield* openConsole({ viewport: { width: 360, height: 900 }, ...signInOptions(org) })
  const viewsWithScript = new Set<string>()
  const { findings } = yield* Effect.promise(() =>
    visitViews(page, url, async (hash) => {
      if ((await page.locator("main").innerText()).includes(script)) viewsWithScript.add(hash.split("/")[1] ?? "")
      const [run, wider] = [await page.evaluate<number>(active), await overflow(page)]
      return [...(run > 0 ? ["runs what it shows"] : []), ...(wider > 0 ? [`${wider} pixels too wide`] : [])]
    })
  )
  return { viewsWithScript, findings, problems }
})

const clean = { findings: [], problems: [] }

withLayer(StripeGateway.layer({}, earlyAnswers))("every view of the console", (it) => {
  it.scoped.skipIf(isSkipped)(
    "loads without errors, is accessible, and fits at every width in both themes",
    function* () {
      yield* world
      const { findings, kinds, problems } = yield* findProblems("owner")
      assert.deepStrictEqual(findings, [])
      assert.includeMembers([...kinds], ["models", "organizations", "requests", "videos", "payments"])
      assert.deepStrictEqual(problems, [])
    },
    slow
  )

  it.scoped.skipIf(isSkipped)(
    "does so for members, and shows them no internal fields",
    function* () {
      const [org] = yield* world
      const { findings, kinds, problems } = yield* findProblems("write", org)
      assert.deepStrictEqual(findings, [])
      assert.deepStrictEqual([...kinds].toSorted(), ["models", "payments", "requests", "videos"])
      assert.deepStrictEqual(problems, [])
    },
    slow
  )

  it.scoped.skipIf(isSkipped)(
    "shows a reader no buttons that change something",
    function* () {
      const [org] = yield* world
      assert.deepStrictEqual(yield* findWriteButtons(), clean)
      assert.deepStrictEqual(yield* findWriteButtons(org), clean)
    },
    slow
  )

  it.scoped.skipIf(isSkipped)(
    "shows texts of others as text, of any length and direction",
    function* () {
      yield* spoiled
      const { viewsWithScript, ...harm } = yield* findHarm()
      assert.deepStrictEqual(harm, clean)
      for (const view of ["requests", "organizations", "ledger", "videos", "models", "webhooks", "audit"])
        assert.include([...viewsWithScript], view)
    },
    slow
  )

  it.scoped.skipIf(isSkipped)(
    "shows members texts of others as text",
    function* () {
      for (const org of yield* spoiled) {
        const { findings, problems } = yield* findHarm(org)
        assert.deepStrictEqual({ findings, problems }, clean)
      }
    },
    slow
  )
})
