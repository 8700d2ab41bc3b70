import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { invariants } from "../../../src/services/ledger/Invariants.ts"
import { Usage } from "../../../src/services/telemetry/Usage.ts"
import type { UsageQuery } from "../../../src/services/telemetry/UsageSql.ts"
import { assert } from "../../harness/It.ts"

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
    id: row.id ?? row.hold ?? randomUUID(),
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
  const ofTotals = invariants(sql).filter(({ name }) => /totals|counted/.test(name))
  const found = yield* Effect.forEach(ofTotals, ({ check, name }) => Effect.map(check, (rows) => ({ name, rows })))
  return found.filter(({ rows }) => rows.length > 0)
})

const Sums = Schema.Tuple(Schema.Struct({ requests: Schema.Number, charge: Schema.BigInt }))

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
    assert.deepStrictEqual(yield* brokenTotals, [])
  })
  yield* sql.withTransaction(compare)
})
