import { SqlClient } from "@effect/sql"
import { Duration, Effect, Fiber, Layer } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { fillingLock, fillUsage } from "../../../src/services/ledger/LedgerAdmin.ts"
import { OwnConnection } from "../../../src/services/sql/SqlStatement.ts"
import { RequestLog } from "../../../src/services/telemetry/RequestLog.ts"
import { countUsage, Usage } from "../../../src/services/telemetry/Usage.ts"
import { eventually } from "../../harness/database/Money.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { assert, describe, liveOver } from "../../harness/It.ts"
import { logIdAt } from "../../harness/LogId.ts"
import { assertExact, brokenTotals, insert, insertBy, leaveUncounted, queued } from "./UsageRows.ts"

const hour = 3_600_000
const at = Date.parse("2026-03-01T05:10:00Z")

const test = liveOver(Layer.mergeAll(Usage.layer, RequestLog.layer).pipe(Layer.provideMerge(Postgres.layer)))

const connect = Effect.flatMap(OwnConnection, (own) => own.connect)

/** Counts as a counter does, without an end to its patience. */
const beginCount = (sql: SqlClient.SqlClient) =>
  sql`BEGIN`.pipe(
    Effect.zipRight(sql`SELECT pg_advisory_xact_lock(${sql.literal(fillingLock)})`),
    Effect.zipRight(sql`SELECT take_uncounted(100)`)
  )

const addCharge = (sql: SqlClient.SqlClient, charge: number) => sql`UPDATE request_log SET charge = charge + ${charge}`

const untilWaiting = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  eventually(
    sql`SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (
      SELECT oid FROM pg_database WHERE datname = current_database())`,
    (waiting) => waiting.length > 0
  )
)

const charges = Effect.gen(function* () {
  const { totals } = yield* Effect.flatMap(Usage, ({ report }) => report(OrganizationScope.all, { by: "model" }))
  return [totals.requests, Number(totals.charge)]
})

describe.concurrent("counting requests", () => {
  test("leaves reports as they are", function* () {
    yield* leaveUncounted
    yield* insert([{ at }, { at: at + 3 * hour, charge: 20n }, { at: at + 30 * hour, charge: 300n, status: 502 }])
    assert.strictEqual(yield* queued, 3)
    const queries = [
      { by: "status" },
      { by: "hour" },
      { by: "day", since: at - hour, until: at + 3 * hour },
      { by: "model", since: at + 1 },
      { by: "model", since: at, until: at + 1 }
    ] as const
    const usage = yield* Usage
    const before = yield* Effect.forEach(queries, (query) => usage.report(OrganizationScope.all, query))
    yield* assertExact(...queries)
    yield* countUsage
    assert.strictEqual(yield* queued, 0)
    assert.deepStrictEqual(
      yield* Effect.forEach(queries, (query) => usage.report(OrganizationScope.all, query)),
      before
    )
    yield* assertExact(...queries)
  })

  test("counts a row once that is committed after a count began", function* () {
    const [writer, counter] = [yield* connect, yield* connect]
    yield* leaveUncounted
    yield* writer`BEGIN`
    yield* insertBy(writer, [{ at }])
    yield* insert([{ at, charge: 20n }])
    yield* beginCount(counter)
    yield* writer`COMMIT`
    yield* counter`COMMIT`
    assert.strictEqual(yield* queued, 1)
    yield* assertExact()
    yield* countUsage
    yield* assertExact()
    assert.deepStrictEqual(yield* charges, [2, 21])
  })

  test("waits for a change of a queued row, and counts what it came to", function* () {
    const [writer, counter] = [yield* connect, yield* connect]
    for (const end of ["COMMIT", "ROLLBACK"]) {
      yield* leaveUncounted
      yield* insert([{ at }])
      yield* writer`BEGIN`
      yield* addCharge(writer, 6)
      const count = yield* Effect.fork(beginCount(counter))
      yield* untilWaiting
      yield* assertExact()
      yield* writer.unsafe(end)
      yield* Fiber.join(count)
      yield* counter`COMMIT`
      assert.strictEqual(yield* queued, 0)
      yield* assertExact()
    }
    assert.deepStrictEqual(yield* charges, [2, 8])
  })

  test("keeps a change waiting, which then adds its difference", function* () {
    const [writer, counter] = [yield* connect, yield* connect]
    for (const end of ["COMMIT", "ROLLBACK"]) {
      yield* leaveUncounted
      yield* insert([{ at }])
      yield* beginCount(counter)
      const change = yield* Effect.fork(addCharge(writer, 6))
      yield* untilWaiting
      yield* assertExact()
      yield* counter.unsafe(end)
      yield* Fiber.join(change)
      yield* assertExact()
      assert.strictEqual(yield* queued, end === "COMMIT" ? 0 : 1)
      yield* countUsage
      yield* assertExact()
    }
    assert.deepStrictEqual(yield* charges, [2, 20])
  })

  test("is given up for a while where changes are not over, and done by one at a time", function* () {
    const [writer, counter] = [yield* connect, yield* connect]
    yield* leaveUncounted
    yield* insert([{ at }])
    yield* writer`BEGIN`
    yield* addCharge(writer, 6)
    yield* countUsage
    yield* writer`COMMIT`
    assert.strictEqual(yield* queued, 1)
    yield* counter`BEGIN`
    yield* counter`SELECT count_uncounted(0)`
    yield* countUsage
    assert.strictEqual(yield* queued, 1)
    yield* counter`COMMIT`
    yield* countUsage
    assert.strictEqual(yield* queued, 0)
    yield* assertExact()
  })

  test("takes rows of before the totals once, whichever of counting and filling is first", function* () {
    const sql = yield* SqlClient.SqlClient
    for (const order of [
      [countUsage, fillUsage, countUsage],
      [fillUsage, countUsage]
    ]) {
      yield* leaveUncounted
      yield* sql`UPDATE usage_bounds SET filled_from = ${new Date(Date.parse("2026-03-01T08:00:00Z"))}`
      yield* sql`TRUNCATE request_log, usage_totals, uncounted_requests`
      yield* insert([{ at }, { at: at + 2 * hour, charge: 20n }, { at: at + 5 * hour, charge: 300n }])
      yield* addCharge(sql, 1)
      for (const step of order) {
        yield* step
        yield* addCharge(sql, 1)
        yield* assertExact({ by: "day" }, { by: "hour", since: at + 1 })
      }
      assert.strictEqual(yield* queued, 0)
    }
  })

  test("is done by the writers where no counter runs, unless somebody has the lock or it fails", function* () {
    const sql = yield* SqlClient.SqlClient
    const other = yield* connect
    yield* leaveUncounted
    yield* insert([{ at }])
    assert.strictEqual(yield* queued, 1)
    const before = new Date(Date.now() - 60_000)
    yield* sql`UPDATE usage_counter SET counted_at = ${before}`
    yield* beginCount(other)
    yield* insert([{ at }])
    yield* other`ROLLBACK`
    assert.strictEqual(yield* queued, 2)
    yield* other`BEGIN`
    yield* other`ALTER TABLE usage_totals ADD CONSTRAINT none CHECK (false) NOT VALID`
    yield* insertBy(other, [{ at }])
    yield* other`ALTER TABLE usage_totals DROP CONSTRAINT none`
    yield* other`COMMIT`
    assert.strictEqual(yield* queued, 3)
    yield* insert([{ at }])
    assert.strictEqual(yield* queued, 0)
    yield* assertExact()
    assert.lengthOf(yield* sql`SELECT FROM usage_counter WHERE counted_at > ${before}`, 1)
  })

  test("is done before rows go, which stay in reports", function* () {
    const log = yield* RequestLog
    yield* leaveUncounted
    yield* insert([{ at: at - 24 * hour, charge: 20n }])
    yield* countUsage
    yield* insert([
      { at, id: logIdAt(at) },
      { at: Date.now(), charge: 300n }
    ])
    assert.strictEqual(yield* queued, 2)
    yield* log.prune(Duration.days(1))
    assert.lengthOf(yield* log.list(OrganizationScope.all, { limit: 5 }), 1)
    assert.strictEqual(yield* queued, 1)
    assert.deepStrictEqual(yield* charges, [3, 321])
    assert.deepStrictEqual(yield* brokenTotals, [])
  })

  test("counts a row that goes during a count once", function* () {
    const [writer, counter] = [yield* connect, yield* connect]
    yield* leaveUncounted
    yield* insert([{ at }])
    yield* beginCount(counter)
    const removal = yield* Effect.fork(writer`DELETE FROM request_log`)
    yield* untilWaiting
    yield* counter`COMMIT`
    yield* Fiber.join(removal)
    assert.deepStrictEqual([yield* queued, yield* charges], [0, [1, 1]])
  })
})
