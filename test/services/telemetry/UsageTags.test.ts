import { SqlClient, type SqlError } from "@effect/sql"
import { Duration, Effect, Fiber, Layer } from "effect"
import { KeyId } from "../../../src/domain/ApiKey.ts"
import { OrgId } from "../../../src/domain/Organization.ts"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { fillUsage } from "../../../src/services/ledger/LedgerAdmin.ts"
import { OwnConnection } from "../../../src/services/sql/SqlStatement.ts"
import { RequestLog } from "../../../src/services/telemetry/RequestLog.ts"
import { countUsage, Usage, type UsageQuery } from "../../../src/services/telemetry/Usage.ts"
import { eventually } from "../../harness/database/Money.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { assert, describe, liveOver } from "../../harness/It.ts"
import { assertExact, brokenTotals, insert, leaveUncounted } from "./UsageRows.ts"

const hour = 3_600_000
const at = Date.parse("2026-03-01T05:10:00Z")
const org = OrgId.make("org")

const test = liveOver(Layer.mergeAll(Usage.layer, RequestLog.layer).pipe(Layer.provideMerge(Postgres.layer)))

const report = (query: Partial<UsageQuery> = {}) =>
  Effect.map(
    Effect.flatMap(Usage, (usage) => usage.report(OrganizationScope.all, { by: "tag", org, ...query })),
    ({ rows }) => rows.map(({ charge, group, requests, subgroup }) => [group, subgroup, requests, BigInt(charge)])
  )

/** So many requests, each with a tag of its own. */
const insertTags = (moment: number, from: number, to: number) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`
      INSERT INTO request_log (id, request_id, at, surface, status, org_id, key_id, model, charge, total_ms, tag)
      SELECT uuid_v7(${new Date(moment)}::timestamptz), 'r', ${new Date(moment)}::timestamptz, 'chat', 200, ${org}, 'key', 'm', 1, 1, 'tag-' || i
      FROM generate_series(${from}::int, ${to}::int) AS i`
  )

const sumsOf = Effect.map(report(), (rows) => {
  const other = rows.find(([group]) => group === "other")
  return { groups: rows.length, other: other?.slice(2), requests: rows.reduce((sum, row) => sum + Number(row[2]), 0) }
})

describe.concurrent("usage by tag", () => {
  test("is what the rows of each tag come to, and of none, counted or not", function* () {
    const sql = yield* SqlClient.SqlClient
    yield* leaveUncounted
    yield* insert([
      { at, tag: "blue", charge: 1n, model: "x" },
      { at: at + hour, tag: "blue", charge: 20n, model: "y", key: "second" },
      { at: at + 30 * hour, tag: "red", charge: 300n, model: "x", status: 502 },
      { at: at + 30 * hour, charge: 4_000n, model: "x" },
      { at: at + 31 * hour, charge: 50_000n, model: "y" },
      { at: at + 31 * hour, tag: "blue", charge: 7n, model: "x", org: "another" },
      // For a model that nobody sells.
      { at, tag: "red", charge: 0n, model: "none", status: 404 }
    ])
    // A failed attempt costs something at its own route.
    yield* sql`UPDATE request_log SET route = 'x@1', cost = 5, attempts = '[{"route": "x@2", "provider": "p", "cost_nano": "9"}]'
      WHERE tag = 'red' AND status = 502`
    const expected = {
      plain: [
        [null, null, 2, 54_000n],
        ["red", null, 2, 300n],
        ["blue", null, 2, 21n]
      ],
      byModel: [
        ["blue", "y", 1, 20n],
        ["blue", "x", 1, 1n],
        ["red", "x", 1, 300n],
        ["red", "unknown", 1, 0n],
        [null, "y", 1, 50_000n],
        [null, "x", 1, 4_000n]
      ],
      ofModel: [
        ["unknown", "red", 1, 0n],
        ["x", null, 1, 4_000n],
        ["x", "red", 1, 300n],
        ["x", "blue", 1, 1n],
        ["y", null, 1, 50_000n],
        ["y", "blue", 1, 20n]
      ],
      ofDay: [
        ["2026-03-01", "blue", 2, 21n],
        ["2026-03-01", "red", 1, 0n],
        ["2026-03-02", null, 2, 54_000n],
        ["2026-03-02", "red", 1, 300n]
      ],
      ofSpan: [["blue", null, 1, 20n]]
    }
    for (const isCounted of [false, true]) {
      if (isCounted) yield* countUsage
      assert.deepStrictEqual(
        {
          plain: yield* report(),
          byModel: yield* report({ thenBy: "model" }),
          ofModel: yield* report({ by: "model", thenBy: "tag" }),
          ofDay: yield* report({ by: "day", thenBy: "tag" }),
          ofSpan: yield* report({ since: at + 1, until: at + 20 * hour })
        },
        expected
      )
      assert.deepStrictEqual(yield* report({ model: "x", by: "route", thenBy: "tag" }), [
        ["x@1", "red", 1, 300n],
        ["x@2", "red", 0, 0n],
        [null, null, 1, 4_000n],
        [null, "blue", 1, 1n]
      ])
      yield* assertExact(
        { by: "tag" },
        { by: "tag", thenBy: "hour" },
        { by: "tag", since: at + 1, until: at + 31 * hour }
      )
    }
  })

  test("has 1,000 tags a day, and the rest is other for good", function* () {
    const sql = yield* SqlClient.SqlClient
    yield* leaveUncounted
    yield* insertTags(at, 1, 999)
    yield* insert([{ at, tag: "other", charge: 1n }])
    yield* countUsage
    assert.deepStrictEqual(yield* sumsOf, { groups: 1_000, other: [1, 1n], requests: 1_000 })
    yield* insertTags(at + hour, 990, 1_100)
    yield* countUsage
    // The thousandth is one of them, 100 are others.
    const full = { groups: 1_001, other: [101, 101n], requests: 1_111 }
    assert.deepStrictEqual(yield* sumsOf, full)
    yield* assertExact({ by: "tag" })
    // What is not counted yet is told in the same way.
    yield* insert([{ at: at + 2 * hour, tag: "late", charge: 1n }])
    assert.deepStrictEqual(yield* sumsOf, { ...full, other: [102, 102n], requests: 1_112 })
    yield* countUsage
    yield* sql`UPDATE request_log SET charge = charge + 5 WHERE tag = 'late'`
    assert.deepStrictEqual(yield* sumsOf, { ...full, other: [102, 107n], requests: 1_112 })
    yield* assertExact({ by: "tag" })
    // Another day and another organization have tags of their own.
    yield* insert([
      { at: at + 24 * hour, tag: "late", charge: 1n },
      { at, tag: "late", charge: 1n, org: "another" }
    ])
    yield* countUsage
    assert.deepStrictEqual(yield* report({ since: at + 20 * hour }), [["late", null, 1, 1n]])
    assert.deepStrictEqual(yield* report({ org: OrgId.make("another") }), [["late", null, 1, 1n]])
    yield* assertExact({ by: "tag" })
  })

  test("has at most 1,000 tags a day before they are counted too", function* () {
    const sql = yield* SqlClient.SqlClient
    yield* leaveUncounted
    yield* insertTags(at, 1, 1_100)
    yield* insertTags(at + 3 * hour, 1, 1_100)
    // Another organization, another day, no tag, and `other` itself do not count.
    yield* insert([
      { at, tag: "a", charge: 1n, org: "another" },
      { at: at - 24 * hour, tag: "before", charge: 1n },
      { at, charge: 1n },
      { at, tag: "other", charge: 1n }
    ])
    const day = { since: at - hour }
    const sums = Effect.map(report(day), (rows) => ({
      groups: rows.length,
      other: rows.find(([group]) => group === "other")?.[2],
      requests: rows.reduce((sum, row) => sum + Number(row[2]), 0)
    }))
    // Including rows without a tag, and the other 100 of each insert.
    const expected = { groups: 1_002, other: 201, requests: 2_202 }
    assert.deepStrictEqual(yield* sums, expected)
    assert.lengthOf(yield* report({ since: at + 2 * hour }), 1_001)
    assert.lengthOf(yield* report({ ...day, key: KeyId.make("key"), thenBy: "hour" }), 2_003)
    assert.deepStrictEqual(yield* report({ org: OrgId.make("another") }), [["a", null, 1, 1n]])
    yield* assertExact({ by: "tag" }, { by: "tag", thenBy: "hour" })
    yield* countUsage
    assert.deepStrictEqual(yield* sums, expected)
    // If 999 tags have a number, one is left.
    yield* insertTags(at - 48 * hour, 1, 999)
    yield* countUsage
    yield* insertTags(at - 48 * hour, 990, 1_010)
    assert.lengthOf(yield* report({ until: at - 30 * hour }), 1_001)
    yield* countUsage
    assert.lengthOf(yield* report({ until: at - 30 * hour }), 1_001)
    yield* assertExact({ by: "tag" })
    assert.deepStrictEqual(yield* sql`SELECT id FROM uncounted_requests`, [])
  })

  test("has no more tags where two writers bring the last one", function* () {
    const sql = yield* SqlClient.SqlClient
    const writer = yield* Effect.flatMap(OwnConnection, (own) => own.connect)
    yield* insertTags(at, 1, 999)
    yield* insert([{ at, key: "first" }])
    yield* insert([{ at, key: "second" }])
    yield* countUsage
    yield* writer`BEGIN`
    yield* writer`UPDATE request_log SET tag = 'one' WHERE key_id = 'first'`
    const second = yield* Effect.fork(sql`UPDATE request_log SET tag = 'two' WHERE key_id = 'second'`)
    yield* eventually(
      sql`SELECT FROM pg_locks WHERE NOT granted AND database = (
        SELECT oid FROM pg_database WHERE datname = current_database())`,
      (waiting) => waiting.length > 0
    )
    yield* writer`COMMIT`
    yield* Fiber.join(second)
    assert.deepStrictEqual(yield* sumsOf, { groups: 1_001, other: [1, 1n], requests: 1_001 })
    yield* assertExact({ by: "tag" })
  })

  test("of rows of before is that of the rows, until and after they are added", function* () {
    const sql = yield* SqlClient.SqlClient
    const now = Math.floor(Date.now() / hour) * hour
    yield* sql`ALTER TABLE request_log DISABLE TRIGGER USER`
    yield* insert([
      { at: now, tag: "blue", charge: 1n },
      { at: now - 3 * hour, tag: "blue", charge: 20n },
      { at: now - 50 * hour, tag: "red", charge: 300n },
      { at: now - 50 * hour, charge: 4_000n }
    ])
    yield* sql`ALTER TABLE request_log ENABLE TRIGGER USER`
    yield* sql`UPDATE usage_bounds SET filled_from = ${new Date(now + 2 * hour)}`
    const expected = [
      [null, null, 1, 4_000n],
      ["red", null, 1, 300n],
      ["blue", null, 2, 21n]
    ]
    assert.deepStrictEqual(yield* report(), expected)
    yield* fillUsage
    assert.deepStrictEqual(yield* report(), expected)
    assert.deepStrictEqual(yield* brokenTotals, [])
  })

  test("stays when the rows go, counted or not", function* () {
    const sql = yield* SqlClient.SqlClient
    const log = yield* RequestLog
    yield* leaveUncounted
    yield* insert([{ at, tag: "blue", charge: 1n }])
    yield* countUsage
    yield* insert([
      { at: at + hour, tag: "red", charge: 20n },
      { at: Date.now(), tag: "green", charge: 300n }
    ])
    yield* log.prune(Duration.days(2))
    assert.deepStrictEqual(yield* report(), [
      ["green", null, 1, 300n],
      ["red", null, 1, 20n],
      ["blue", null, 1, 1n]
    ])
    assert.deepStrictEqual(yield* brokenTotals, [])
    yield* countUsage
    // No row of those days can change any more.
    assert.deepStrictEqual(yield* sql`SELECT tag FROM usage_tags`, [{ tag: "green" }])
  })

  test("is proved against the rows", function* () {
    const sql = yield* SqlClient.SqlClient
    yield* leaveUncounted
    yield* insert([{ at, tag: "blue" }, { at }])
    yield* countUsage
    const [hours, days] = [
      "an hour's totals of a tag are the sums of its requests",
      "a day's totals of a tag are the sums of its hours"
    ]
    const violatedBy = (change: Effect.Effect<unknown, SqlError.SqlError>) =>
      change.pipe(
        Effect.zipRight(brokenTotals),
        Effect.map((broken) => broken.map(({ name }) => name))
      )
    assert.deepStrictEqual(yield* violatedBy(sql`UPDATE usage_tag_days SET charge = charge + 1`), [days])
    assert.deepStrictEqual(yield* violatedBy(sql`UPDATE usage_tag_hours SET charge = charge + 1`), [hours])
    assert.deepStrictEqual(yield* violatedBy(sql`UPDATE usage_tag_totals SET charge = charge - 1`), [])
    assert.deepStrictEqual(yield* violatedBy(sql`UPDATE usage_tag_series SET tag = 'red'`), [hours])
  })
})
