import { SqlClient } from "@effect/sql"
import { Effect, Layer } from "effect"
import { OrgId } from "../../../src/domain/Organization.ts"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { ApiKeys } from "../../../src/services/access/ApiKeys.ts"
import { Organizations } from "../../../src/services/admin/Organizations.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import { Usage, type UsageRow } from "../../../src/services/telemetry/Usage.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { logIdAt } from "../../harness/LogId.ts"

const services = Layer.mergeAll(Usage.layer, ApiKeys.layer, Organizations.layer).pipe(
  Layer.provideMerge(LedgerAdmin.layer),
  Layer.provideMerge(Postgres.layer)
)

interface Request {
  readonly at: string
  readonly org: string
  readonly key: string
  readonly model?: string
  readonly status?: number
  readonly provider?: string
  readonly charge?: bigint
  readonly cost?: bigint
  readonly tokens?: number
  readonly attempts?: ReadonlyArray<{ readonly provider: string; readonly cost_nano?: string }>
}

const log = (request: Request) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) =>
      sql`INSERT INTO request_log ${sql.insert({
        id: logIdAt(new Date(request.at).getTime()),
        request_id: "r",
        at: new Date(request.at),
        surface: "chat",
        status: request.status ?? 200,
        org_id: request.org,
        key_id: request.key,
        model: request.model ?? null,
        provider: request.provider ?? null,
        charge: request.charge ?? 0n,
        cost: request.cost ?? null,
        prompt_tokens: request.tokens ?? null,
        completion_tokens: request.tokens ?? null,
        attempts: JSON.stringify(request.attempts ?? []),
        total_ms: 1
      })}`
  )

const summary = (rows: ReadonlyArray<UsageRow>) =>
  rows.map(({ charge, cost, group, margin, requests, uncosted }) => ({
    group,
    requests,
    spend: BigInt(charge),
    cost: BigInt(cost),
    margin: margin === null ? null : BigInt(margin),
    uncosted
  }))

withLayer(services)("Usage", (it) => {
  it.effect("counts names that no model has as one", function* () {
    const { id: org } = yield* Effect.flatMap(Organizations, ({ create }) => create({ name: "guesser" }))
    const key = (yield* Effect.flatMap(ApiKeys, ({ create }) => create({ org }))).record.id
    const at = "2026-01-01T00:00:00Z"
    for (const status of [200, 400, 402]) yield* log({ at, org, key, model: "m", status })
    yield* log({ at, org, key, model: "poor", status: 402 })
    for (const model of ["x", "y", "z"]) yield* log({ at, org, key, model, status: 404 })
    yield* log({ at, org, key, model: "broken", status: 400 })
    yield* log({ at, org, key, status: 429 })
    const usage = yield* Usage
    const { rows } = yield* usage.report(OrganizationScope.all, { by: "model", org })
    assert.deepStrictEqual(
      rows.map(({ group, requests }) => [group, requests]),
      [
        ["m", 3],
        ["poor", 1],
        ["unknown", 4],
        [null, 1]
      ]
    )
  })

  it.effect("adds up by model, key, day and provider; margin only where the cost is known", function* () {
    const organizations = yield* Organizations
    const keys = yield* ApiKeys
    const usage = yield* Usage
    const { id: org } = yield* organizations.create({ name: "one" })
    const a = (yield* keys.create({ org, name: "alpha" })).record.id
    const b = (yield* keys.create({ org, name: "beta" })).record.id
    yield* log({
      at: "2026-01-01T23:59:59Z",
      org,
      key: a,
      model: "m",
      provider: "p",
      charge: 100n,
      cost: 40n,
      tokens: 3
    })
    yield* log({
      at: "2026-01-02T00:00:00Z",
      org,
      key: a,
      model: "m",
      provider: "q",
      charge: 50n,
      cost: 60n,
      tokens: 4
    })
    yield* log({ at: "2026-01-02T10:00:00Z", org, key: b, model: "n", provider: "q", charge: 700n })
    yield* log({ at: "2026-01-03T10:00:00Z", org, key: b })
    const by = (grouping: "model" | "key" | "day" | "provider") =>
      Effect.map(usage.report(OrganizationScope.all, { by: grouping, org }), ({ rows }) => summary(rows))

    assert.deepStrictEqual(yield* by("model"), [
      { group: "n", requests: 1, spend: 700n, cost: 0n, margin: null, uncosted: 1 },
      { group: "m", requests: 2, spend: 150n, cost: 100n, margin: 50n, uncosted: 0 },
      { group: null, requests: 1, spend: 0n, cost: 0n, margin: null, uncosted: 0 }
    ])
    assert.deepStrictEqual(yield* by("day"), [
      { group: "2026-01-01", requests: 1, spend: 100n, cost: 40n, margin: 60n, uncosted: 0 },
      { group: "2026-01-02", requests: 2, spend: 750n, cost: 60n, margin: -10n, uncosted: 1 },
      { group: "2026-01-03", requests: 1, spend: 0n, cost: 0n, margin: null, uncosted: 0 }
    ])
    assert.deepStrictEqual(
      (yield* by("provider")).map(({ group, spend }) => ({ group, spend })),
      [
        { group: "q", spend: 750n },
        { group: "p", spend: 100n },
        { group: null, spend: 0n }
      ]
    )
    const { rows: byKey } = yield* usage.report(OrganizationScope.all, { by: "key", org })
    assert.deepStrictEqual(
      byKey.map(({ completionTokens, group, label, promptTokens }) => [group, label, promptTokens, completionTokens]),
      [
        [b, "beta", 0, 0],
        [a, "alpha", 7, 7]
      ]
    )
  })

  it.effect("counts nothing that was given back", function* () {
    const sql = yield* SqlClient.SqlClient
    const { id: org } = yield* (yield* Organizations).create({ name: "refunded" })
    const key = (yield* (yield* ApiKeys).create({ org, name: "k" })).record.id
    for (const charge of [900n, 40n]) yield* log({ at: "2026-04-01T00:00:00Z", org, key, model: "m", charge })
    yield* sql`UPDATE request_log SET charge = 0, status = 500 WHERE org_id = ${org} AND charge = 40`
    const { rows } = yield* (yield* Usage).report(OrganizationScope.all, { by: "status", org })
    assert.deepStrictEqual(
      rows.map(({ charge, group }) => [group, BigInt(charge)]),
      [
        ["200", 900n],
        ["500", 0n]
      ]
    )
  })

  it.effect("counts what tries that failed have cost, by provider to whom it is owed", function* () {
    const usage = yield* Usage
    const [org, key, at, model] = [OrgId.make("org_tries"), "key_tries", "2026-03-01T00:00:00Z", "m"]
    const broken = { provider: "q", cost_nano: "7" }
    const attempts = [broken, { provider: "p" }]
    yield* log({ at, org, key, model, provider: "p", charge: 100n, cost: 40n, attempts })
    yield* log({ at, org, key, model, provider: "q", attempts: [{ provider: "p" }, broken] })
    yield* log({ at, org, key, model, provider: "r", charge: 10n, attempts: [{ provider: "r" }] })
    const by = (grouping: "model" | "provider") =>
      Effect.map(usage.report(OrganizationScope.all, { by: grouping, org }), ({ rows }) => summary(rows))
    assert.deepStrictEqual(yield* by("model"), [
      { group: "m", requests: 3, spend: 110n, cost: 54n, margin: 46n, uncosted: 1 }
    ])
    assert.deepStrictEqual(yield* by("provider"), [
      { group: "p", requests: 1, spend: 100n, cost: 40n, margin: 60n, uncosted: 0 },
      { group: "r", requests: 1, spend: 10n, cost: 0n, margin: null, uncosted: 1 },
      { group: "q", requests: 1, spend: 0n, cost: 14n, margin: -14n, uncosted: 0 }
    ])
  })

  it.effect("counts from since, up to but not including until, and of one organization only", function* () {
    const usage = yield* Usage
    const at = ["2026-02-01T00:00:00Z", "2026-02-02T00:00:00Z", "2026-02-03T00:00:00Z"] as const
    yield* Effect.forEach(at, (moment) => log({ at: moment, org: "org_x", key: "key_x", model: "m", charge: 1n }))
    yield* log({ at: at[1], org: "org_y", key: "key_y", model: "m", charge: 10n })
    const [since, until] = [Date.parse(at[1]), Date.parse(at[2])]
    const org = OrgId.make("org_x")
    const spend = (query: { readonly since?: number; readonly until?: number; readonly org?: OrgId }) =>
      Effect.map(usage.report(OrganizationScope.all, { by: "model", ...query }), ({ rows }) =>
        rows.map((row) => row.charge).map(BigInt)
      )
    assert.deepStrictEqual(yield* spend({ org }), [3n])
    assert.deepStrictEqual(yield* spend({ org, since }), [2n])
    assert.deepStrictEqual(yield* spend({ org, until }), [2n])
    assert.deepStrictEqual(yield* spend({ since, until }), [11n])
    assert.deepStrictEqual(yield* spend({ org: OrgId.make("org_z") }), [])
  })
})
