import { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { invariants } from "../../../src/services/ledger/Invariants.ts"
import { Usage, type UsageQuery } from "../../../src/services/telemetry/Usage.ts"
import { assert } from "../../harness/It.ts"
import { logIdAt } from "../../harness/LogId.ts"

export interface LogRow {
  readonly at: number
  readonly id?: string
  readonly org?: string
  readonly key?: string
  readonly model?: string | null
  readonly route?: string
  readonly surface?: string
  readonly status?: number
  readonly charge?: bigint
  readonly hold?: string
  readonly code?: string
  readonly tag?: string | undefined
}

export const insertBy = (sql: SqlClient.SqlClient, rows: ReadonlyArray<LogRow>) => {
  const values = rows.map((row) => ({
    id: row.id ?? row.hold ?? logIdAt(row.at),
    request_id: "r",
    at: new Date(row.at),
    surface: row.surface ?? "chat",
    status: row.status ?? 200,
    code: row.code ?? null,
    org_id: row.org ?? "org",
    key_id: row.key ?? "key",
    model: row.model === undefined ? "m" : row.model,
    route: row.route ?? null,
    charge: row.charge ?? 1n,
    hold_id: row.hold ?? null,
    tag: row.tag ?? null,
    total_ms: 1
  }))
  return sql`INSERT INTO request_log ${sql.insert(values)}`
}

export const insert = (rows: ReadonlyArray<LogRow>) => Effect.flatMap(SqlClient.SqlClient, (sql) => insertBy(sql, rows))

/** No row is counted but by a counter, however long the test takes. */
export const leaveUncounted = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`UPDATE usage_counter SET counted_at = 'infinity'`
)

export const queued = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.map(sql`SELECT id FROM uncounted_requests`, (rows) => rows.length)
)

/** What is broken of the totals, by its invariant. */
export const brokenTotals = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ofTotals = invariants(sql).filter(({ name }) => /(hour|day).s totals|counting/.test(name))
  const found = yield* Effect.forEach(ofTotals, ({ check, name }) => Effect.map(check, (rows) => ({ name, rows })))
  return found.filter(({ rows }) => rows.length > 0)
})

const Sums = Schema.Tuple(Schema.Struct({ requests: Schema.Number, charge: Schema.BigInt }))

/** What a group is called in SQL over rows of the log; groups by model, route or tag are not what a row says. */
const naiveGroups: Partial<Record<UsageQuery["by"], string>> = {
  key: "key_id",
  org: "org_id",
  surface: "surface",
  status: "status::text",
  day: "to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
  hour: `to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:00"Z"')`
}

const Groups = Schema.Array(Schema.Struct({ group: Schema.String, requests: Schema.Number, charge: Schema.BigInt }))

/** Asserts that each group of a report is the sum of its rows of the log, to the nano-dollar. */
const assertGroups = Effect.fnUntraced(function* (query: UsageQuery) {
  const sql = yield* SqlClient.SqlClient
  const usage = yield* Usage
  const { by, since = 0, until = Date.parse("9999-01-01") } = query
  const found = yield* sql`
    SELECT ${sql.literal(naiveGroups[by] ?? "''")} COLLATE "C" AS "group", count(*)::int AS requests, sum(charge)::text AS charge
    FROM request_log WHERE at >= ${new Date(since)} AND at < ${new Date(until)} GROUP BY 1 ORDER BY 1`
  const { rows } = yield* usage.report(OrganizationScope.all, query)
  const reported = rows.map(({ charge, group, requests }) => ({ group: group ?? "", requests, charge: BigInt(charge) }))
  assert.deepStrictEqual(
    reported.toSorted((one, other) => (one.group < other.group ? -1 : 1)),
    yield* Schema.decodeUnknown(Groups)(found),
    JSON.stringify(query)
  )
})

/** Asserts in one snapshot that the invariants of the totals hold, and that reports say what the rows come to. */
export const assertExact = Effect.fnUntraced(function* (...queries: ReadonlyArray<UsageQuery>) {
  const sql = yield* SqlClient.SqlClient
  const usage = yield* Usage
  const compare = Effect.gen(function* () {
    yield* sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY`
    for (const query of [{ by: "model" } as const, ...queries]) {
      const { since = 0, until = Date.parse("9999-01-01") } = query
      const rows = yield* sql`
        SELECT count(*)::int AS requests, coalesce(sum(charge), 0)::text AS charge FROM request_log
        WHERE at >= ${new Date(since)} AND at < ${new Date(until)}`
      const [expected] = yield* Schema.decodeUnknown(Sums)(rows)
      const { charge, requests } = (yield* usage.report(OrganizationScope.all, query)).totals
      assert.deepStrictEqual({ requests, charge: BigInt(charge) }, expected, JSON.stringify(query))
    }
    const [query = { by: "key" } as const] = queries
    yield* assertGroups({ ...query, by: query.by in naiveGroups ? query.by : "status", thenBy: undefined })
    assert.deepStrictEqual(yield* brokenTotals, [])
  })
  yield* sql.withTransaction(compare)
})
