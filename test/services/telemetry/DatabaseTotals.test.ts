import { SqlClient } from "@effect/sql"
import { Effect, Layer, Option, TestClock } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { Organizations } from "../../../src/services/admin/Organizations.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import * as Metrics from "../../../src/services/metrics/Metrics.ts"
import { DatabaseTotalsReader } from "../../../src/services/telemetry/DatabaseTotals.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { assert, describe, testOver } from "../../harness/It.ts"

const services = Layer.mergeAll(DatabaseTotalsReader.layer, Layer.provide(Organizations.layer, LedgerAdmin.layer)).pipe(
  Layer.provideMerge(Postgres.layer)
)

const usd = 1_000_000_000n

const bench = Effect.gen(function* () {
  Metrics.databaseUp.unsafeUpdate(1, [])
  const sql = yield* SqlClient.SqlClient
  const organizations = yield* Organizations
  const { read } = yield* DatabaseTotalsReader
  const open = (name: string, credits: bigint) =>
    organizations.create({ name, ...(credits > 0n ? { credits: NanoUsd(credits) } : {}) })
  const hold = (instance: string | null, age: string) => sql`
    INSERT INTO holds (id, org_id, key_id, amount, instance_id, created_at)
    VALUES (gen_random_uuid(), 'o', 'k', 1, ${instance}::uuid, now() - ${age}::interval)`
  return { hold, open, read: Effect.map(read, Option.getOrUndefined), sql }
})

const instance = "00000000-0000-4000-8000-000000000001"

const test = testOver(services)

describe("the totals of the database", () => {
  test("count open holds and how old they are, and organizations with little left", function* () {
    const { hold, open, read } = yield* bench
    yield* open("none", 0n)
    yield* open("five", 5n * usd)
    yield* open("rich", 50n * usd)
    yield* hold(instance, "10 seconds")
    yield* hold(instance, "1 minute")
    yield* hold(null, "1 hour")
    const totals = yield* read
    const holds = totals?.holds.map(({ count, label, oldestMs }) => [label, count, Math.round(oldestMs / 10_000)])
    assert.deepStrictEqual(holds?.toSorted(), [
      ["job", 1, 360],
      ["process", 2, 6]
    ])
    assert.deepStrictEqual(
      totals?.organizations.map(({ count, usd }) => [usd, count]),
      [
        [0, 1],
        [1, 1],
        [10, 2]
      ]
    )
    assert.isEmpty(totals?.videos)
    assert.deepInclude(totals?.webhooks[0], { count: 0, oldestMs: 0 })
  })

  test("count deliveries of webhooks that have failed and are to be tried again", function* () {
    const { read, sql } = yield* bench
    const write = (tries: number, age: string, next: string | null) => sql`
      INSERT INTO webhook_deliveries (event_id, org_id, url, type, data, tries, created_at, state, next_at)
      VALUES ('evt', 'o', 'https://a.example/', 't', '{}', ${tries}, now() - ${age}::interval,
        ${next === null ? "failed" : "pending"}, ${next}::timestamptz)`
    yield* write(3, "10 minutes", "2026-01-01")
    yield* write(1, "1 minute", "2026-01-01")
    yield* write(0, "1 hour", "2026-01-01")
    yield* write(8, "1 day", null)
    const [failing] = (yield* read)?.webhooks ?? []
    assert.strictEqual(failing?.count, 2)
    assert.strictEqual(Math.round((failing?.oldestMs ?? 0) / 100_000), 6)
  })

  test("are asked for once in 15 seconds however often they are read", function* () {
    const { hold, read } = yield* bench
    const counted = Effect.map(read, (totals) => totals?.holds.reduce((sum, { count }) => sum + count, 0))
    assert.deepStrictEqual(yield* Effect.all([counted, counted], { concurrency: "unbounded" }), [0, 0])
    yield* hold(instance, "1 second")
    yield* TestClock.adjust("14 seconds")
    assert.strictEqual(yield* counted, 0)
    yield* TestClock.adjust("1 second")
    assert.strictEqual(yield* counted, 1)
  })

  test("are none while the database is away, and none of a statement that fails", function* () {
    const { read, sql } = yield* bench
    Metrics.databaseUp.unsafeUpdate(0, [])
    assert.isUndefined(yield* read)
    Metrics.databaseUp.unsafeUpdate(1, [])
    assert.isDefined(yield* read)
    yield* TestClock.adjust("15 seconds")
    yield* sql`ALTER VIEW all_holds RENAME TO gone`
    assert.isUndefined(yield* read)
  })

  test("are there without those of webhooks where these cannot be counted", function* () {
    const { hold, read, sql } = yield* bench
    yield* hold(instance, "1 minute")
    yield* sql`ALTER TABLE webhook_deliveries RENAME TO gone`
    const totals = yield* read
    assert.strictEqual(totals?.holds[0]?.count, 1)
    assert.isEmpty(totals?.webhooks)
  })

  test("come from indexes of what is open, however much is closed", function* () {
    const { sql } = yield* bench
    yield* sql`SET plan_cache_mode = force_generic_plan`
    yield* sql`INSERT INTO holds (id, org_id, key_id, amount, state, charged, closed_at)
        SELECT gen_random_uuid(), 'o', 'k', 1, 'settled', 1, now() FROM generate_series(1, 20000)`
    yield* sql`ANALYZE holds`
    const plan = yield* sql`EXPLAIN SELECT CASE WHEN is_job THEN 'job' ELSE 'process' END, count(*),
        min(created_at) FROM all_holds WHERE state = 'open' GROUP BY 1`
    assert.include(JSON.stringify(plan), "holds_open")
  })
})
