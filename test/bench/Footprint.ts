import type { SqlClient } from "@effect/sql"
import { Array as Arr, Effect, Schema } from "effect"
import { NanoUsd } from "../../src/domain/Money.ts"
import * as ClosingSql from "../../src/services/ledger/ClosingSql.ts"
import * as HoldSql from "../../src/services/ledger/HoldSql.ts"
import { requestIdOf } from "../../src/services/requests/RequestColumns.ts"
import { rowOf } from "../../src/services/requests/RequestEntry.ts"
import { Ids } from "../../src/services/runtime/Ids.ts"
import { rowsOf, runWith } from "../../src/services/sql/SqlStatement.ts"
import { instanceId, keyId, keys, organizationOf } from "./GrownDatabase.ts"

/** What one chat leaves in the database, on average. */
export interface Footprint {
  /** Inserted into B-trees, those of rows that are deleted again included. */
  readonly indexEntries: number
  readonly walBytes: number
  /** By table and index, of what stays. */
  readonly diskBytes: Readonly<Record<string, number>>
}

const perBatch = 128
const perVacuum = 50 * perBatch

const position = "pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"

const Index = Schema.Struct({ relation: Schema.String, predicate: Schema.String })
const Count = Schema.Struct({ count: Schema.NumberFromString })
const Part = Schema.Struct({ name: Schema.String, bytes: Schema.NumberFromString })

/** A streamed chat with everything that most rows have. */
const chatOf = (key: number) =>
  Effect.map(Ids, (ids) => {
    const id = ids.uuid()
    const at = Date.now()
    const org = organizationOf(key)
    const hold = { id, org, key: keyId(key), amount: NanoUsd(20_000_000n), rateLimit: 1_000_000 }
    const provider = "openai"
    const route = `gpt-5.2@${provider}`
    const row = rowOf({
      id,
      requestId: requestIdOf(id),
      at,
      surface: "chat",
      status: 200,
      code: null,
      org,
      key: keyId(key),
      address: "203.0.113.207",
      userAgent: "OpenAI/Python 2.8.1",
      model: "gpt-5.2",
      route,
      provider,
      stream: true,
      attempts: [
        { route, provider, outcome: "ok", status: 200, ms: 812, providerRequestId: `req_${id.replaceAll("-", "")}` }
      ],
      notes: [],
      usage: { prompt: 1_800, completion: 420, cached: 1_024, reasoning: 64 },
      hold: id,
      charge: 9_030_000n,
      cost: 7_100_000n,
      priceId: "12",
      firstByteMs: 812,
      totalMs: 7_904
    })
    return { hold, charge: { ...hold, cost: NanoUsd(9_030_000n) }, row }
  })

const relations = ["request_log", "ledger_entries", "holds"] as const

/** Bytes of each table with its TOAST, and of each index. */
const sizes = (sql: SqlClient.SqlClient) =>
  rowsOf(Part)(sql`
    SELECT relname AS name, pg_table_size(oid)::text AS bytes FROM pg_class WHERE relname IN ${sql.in(relations)}
    UNION ALL
    SELECT indexrelid::regclass::text, pg_relation_size(indexrelid)::text FROM pg_index
    WHERE indrelid::regclass::text IN ${sql.in(relations)}`)

const count = (sql: SqlClient.SqlClient, what: string) =>
  Effect.map(rowsOf(Count)(sql.unsafe(`SELECT ${what} AS count`)), ([row]) => row?.count ?? 0)

/** Each index has an entry for each chat that its predicate takes. */
const countEntries = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, chats: number) {
  const indexes = yield* rowsOf(Index)(sql`
    SELECT indrelid::regclass::text AS relation, coalesce(pg_get_expr(indpred, indrelid), 'true') AS predicate
    FROM pg_index WHERE indrelid::regclass::text IN ${sql.in([...relations, "open_holds", "uncounted_requests"])}`)
  const entries = yield* Effect.forEach(indexes, ({ predicate, relation }) =>
    // Its rows are gone by now.
    relation === "open_holds"
      ? Effect.succeed(predicate === "true" ? chats : 0)
      : count(sql, `(SELECT count(*) FROM ${relation} WHERE ${predicate})`)
  )
  return entries.reduce((sum, each) => sum + each, 0)
})

/** Holds and settles so many chats as the gateway does, in a database of accounts that have none. */
export const measureFootprint = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, chats: number) {
  // Without a counter the log counts its rows itself after some seconds, into totals that do not grow with the rows.
  yield* sql`UPDATE usage_counter SET counted_at = 'infinity'`
  yield* sql`CHECKPOINT`
  const [before, first] = [yield* countEntries(sql, 0), yield* count(sql, position)]
  for (let done = 0; done < chats; done += perBatch) {
    const batch = yield* Effect.forEach(Arr.range(done + 1, done + perBatch), (number) => chatOf(1 + (number % keys)))
    yield* runWith(
      sql,
      HoldSql.place(
        instanceId,
        batch.map(({ hold }) => hold)
      )
    )
    yield* runWith(
      sql,
      ClosingSql.settle(
        batch.map(({ charge }) => charge),
        batch.map(({ row }) => row)
      )
    )
    if (done % perVacuum === 0) yield* sql`VACUUM ANALYZE open_holds, ledger_entries, request_log`
  }
  const last = yield* count(sql, position)
  const entries = yield* countEntries(sql, chats)
  const parts = yield* sizes(sql)
  return {
    indexEntries: (entries - before) / chats,
    walBytes: (last - first) / chats,
    diskBytes: Object.fromEntries(parts.map(({ bytes, name }) => [name, bytes / chats]))
  } satisfies Footprint
})

/** Lines that say what a million such chats take. */
export const describe = ({ diskBytes, indexEntries, walBytes }: Footprint): ReadonlyArray<string> => {
  const gigabytes = (bytes: number) => `${(bytes / 1000).toFixed(3)} GB`
  const parts = Object.entries(diskBytes).toSorted(([, one], [, other]) => other - one)
  return [
    `a million chats: ${gigabytes(parts.reduce((sum, [, bytes]) => sum + bytes, 0))} of disk, ${gigabytes(walBytes)} of WAL, ${indexEntries.toFixed(1)} index entries each`,
    ...parts.map(([name, bytes]) => `  ${name.padEnd(34)}${gigabytes(bytes)}`)
  ]
}
