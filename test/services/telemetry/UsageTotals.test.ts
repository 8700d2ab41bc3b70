import { SqlClient } from "@effect/sql"
import { Deferred, Duration, Effect, Layer, Schedule } from "effect"
import { KeyId } from "../../../src/domain/ApiKey.ts"
import { OrgId } from "../../../src/domain/Organization.ts"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { fillingLock, fillUsage } from "../../../src/services/ledger/LedgerAdmin.ts"
import { RequestLog } from "../../../src/services/telemetry/RequestLog.ts"
import { Usage, type UsageQuery, type UsageRow } from "../../../src/services/telemetry/Usage.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { logIdAt } from "../../harness/LogId.ts"
import { brokenTotals, insert } from "./UsageRows.ts"

const hour = 3_600_000

const report = (query: UsageQuery) => Effect.flatMap(Usage, (usage) => usage.report(OrganizationScope.all, query))
const shown = (rows: ReadonlyArray<UsageRow>) => rows.map((row) => [row.group, row.requests, BigInt(row.charge)])

const withTotals = () =>
  withLayer(Layer.mergeAll(Usage.layer, RequestLog.layer).pipe(Layer.provideMerge(Postgres.layer)))

withTotals()("usage", (it) => {
  const begin = Date.parse("2026-03-01T00:00:00Z")
  const moments = [0, 1, 59 * 60_000, hour, 5 * hour + 7, 24 * hour - 1, 24 * hour, 30 * hour, 72 * hour, 73 * hour + 9]

  it.effect("of any time is what the rows of that time come to", function* () {
    const at = moments.map((moment) => begin + moment)
    yield* insert(at.map((one, index) => ({ at: one, charge: 10n ** BigInt(index), org: "times" })))
    const org = OrgId.make("times")
    for (const since of [undefined, ...at, ...at.map((one) => one + 1)]) {
      for (const until of [undefined, ...at]) {
        if (since !== undefined && until !== undefined && since >= until) continue
        const expected = at.map((one, index) =>
          one >= (since ?? 0) && one < (until ?? Infinity) ? 10n ** BigInt(index) : 0n
        )
        const { totals } = yield* report({ by: "model", org, since, until })
        assert.strictEqual(
          BigInt(totals.charge),
          expected.reduce((sum, one) => sum + one)
        )
        const hours = yield* report({ by: "hour", org, since, until })
        assert.strictEqual(BigInt(hours.totals.charge), BigInt(totals.charge))
      }
    }
    const { rows } = yield* report({ by: "hour", org, until: begin + 2 * hour })
    assert.deepStrictEqual(shown(rows), [
      ["2026-03-01T00:00Z", 3, 111n],
      ["2026-03-01T01:00Z", 1, 1000n]
    ])
  })

  it.effect("of all is the same where numbers of series were left out", function* () {
    const sql = yield* SqlClient.SqlClient
    const before = (yield* report({ by: "org" })).totals
    yield* insert([{ at: begin, org: "gaps", key: "a", charge: 2n }])
    yield* sql`SELECT nextval(pg_get_serial_sequence('usage_series', 'id')) FROM generate_series(1, 3)`
    yield* insert([{ at: begin, org: "gaps", key: "b", charge: 3n }])
    const { rows, totals } = yield* report({ by: "org" })
    assert.deepStrictEqual(shown(rows.filter(({ group }) => group === "gaps")), [["gaps", 2, 5n]])
    assert.strictEqual(BigInt(totals.charge), BigInt(before.charge) + 5n)
  })

  it.effect("is of what the filters leave, in pages, with the totals of all pages", function* () {
    const one = { at: begin, org: "filters" }
    yield* insert([
      { ...one, key: "a", model: "x", charge: 5n, route: "x@1" },
      { ...one, key: "a", model: "y", charge: 4n, surface: "image" },
      { ...one, key: "b", model: "x", charge: 3n, route: "x@2", code: "stream_error" },
      { ...one, key: "b", model: "x", charge: 0n, status: 429 },
      { ...one, key: "b", model: "x", charge: 0n, status: 502 },
      { ...one, key: "b", model: null, charge: 0n, status: 499 }
    ])
    const org = OrgId.make("filters")
    const spend = (query: Partial<UsageQuery>) =>
      Effect.map(report({ by: "model", org, ...query }), ({ totals }) => [totals.requests, BigInt(totals.charge)])
    assert.deepStrictEqual(yield* spend({ key: KeyId.make("a") }), [2, 9n])
    assert.deepStrictEqual(yield* spend({ model: "x" }), [4, 8n])
    assert.deepStrictEqual(yield* spend({ route: "x@2" }), [1, 3n])
    assert.deepStrictEqual(yield* spend({ surface: "image" }), [1, 4n])
    assert.deepStrictEqual(yield* spend({ status: 429 }), [1, 0n])
    assert.deepStrictEqual(yield* spend({ status: "4xx" }), [2, 0n])
    assert.deepStrictEqual(yield* spend({ status: "5xx", since: begin - 5, until: begin + 5 }), [1, 0n])
    assert.deepStrictEqual(yield* spend({ route: "x@1", since: begin - 5, until: begin + 5 }), [1, 5n])

    const query = { by: "key", thenBy: "model", org, sort: "requests", limit: 2 } as const
    const first = yield* report(query)
    assert.deepStrictEqual(
      first.rows.map(({ group, requests, subgroup }) => [group, subgroup, requests]),
      [
        ["b", "x", 3],
        ["a", "x", 1]
      ]
    )
    const { errors, refusals, requests } = first.totals
    assert.deepStrictEqual({ errors, refusals, requests }, { errors: 2, refusals: 1, requests: 6 })
    assert.deepStrictEqual(first.next, { group: "a", subgroup: "x" })
    const second = yield* report({ ...query, after: first.next })
    assert.deepStrictEqual(
      second.rows.map(({ group, subgroup }) => [group, subgroup]),
      [
        ["a", "y"],
        ["b", null]
      ]
    )
    assert.isUndefined(second.next)
    assert.deepStrictEqual(second.totals, first.totals)
  })

  it.effect("stays when the rows go", function* () {
    const log = yield* RequestLog
    const org = OrgId.make("gone")
    yield* insert([
      { at: Date.parse("2026-01-01T00:30:00Z"), org: "gone" },
      { at: Date.now(), org: "gone", charge: 20n }
    ])
    yield* log.prune(Duration.days(1))
    assert.lengthOf(yield* log.list(OrganizationScope.all, { org, limit: 5 }), 1)
    const { totals } = yield* report({ by: "day", org, since: Date.parse("2026-01-01T00:00:00Z") })
    assert.strictEqual(BigInt(totals.charge), 21n)
    assert.deepStrictEqual(yield* brokenTotals, [])
  })

  it.effect("is right whoever writes at the same time, and no two writers deadlock", function* () {
    const sql = yield* SqlClient.SqlClient
    const writer = (seed: number) =>
      Effect.forEach(
        Array.from({ length: 30 }, (_, round) => seed * 31 + round),
        (number) => {
          const rows = Array.from({ length: 12 }, (_, index) => ({
            at: begin + ((number * 7 + index * 5) % 4) * hour,
            org: "crowd",
            key: `key ${(number * 3 + index * 11) % 6}`,
            model: `model ${(number + index) % 5}`
          }))
          return Effect.zipRight(
            insert(rows),
            sql`UPDATE request_log SET charge = charge + 1, status = 499 WHERE id IN (
                SELECT id FROM request_log WHERE org_id = 'crowd' AND key_id = ${`key ${number % 6}`} AND status = 200
                LIMIT 3 FOR UPDATE SKIP LOCKED)`
          )
        }
      )
    yield* Effect.all(
      Array.from({ length: 8 }, (_, seed) => writer(seed)),
      { concurrency: "unbounded" }
    )
    assert.deepStrictEqual(yield* brokenTotals, [])
    assert.strictEqual((yield* report({ by: "org", org: OrgId.make("crowd") })).totals.requests, 8 * 30 * 12)
  })
})

withTotals()("usage of before there were totals", (it) => {
  it.effect("is that of the rows until they are added, while others are written", function* () {
    const sql = yield* SqlClient.SqlClient
    const org = OrgId.make("org")
    const now = Math.floor(Date.now() / hour) * hour
    const [paid, refunded, lost] = [logIdAt(now - 5 * hour), logIdAt(now - 5 * hour), logIdAt(now - 5 * hour)]
    yield* sql`ALTER TABLE request_log DISABLE TRIGGER USER`
    const old = Array.from({ length: 40 }, (_, index) => ({ at: now - index * 3 * hour, charge: 10n }))
    const late = { at: now - 5 * hour, charge: 0n, surface: "video" }
    yield* insert([...old, { ...late, hold: paid }, { ...late, hold: refunded }, { ...late, hold: lost }])
    for (const [hold, charged] of [
      [paid, 700],
      [refunded, 500]
    ]) {
      yield* sql`INSERT INTO holds (id, org_id, key_id, amount, state, charged, closed_at)
          VALUES (${hold ?? null}, 'org', 'key', 1000, 'settled', ${charged ?? null}, now())`
    }
    yield* sql`INSERT INTO ledger_entries (org_id, kind, amount, ref)
        VALUES ('org', 'adjustment', 200, ${`refund:${refunded}`})`
    yield* sql`ALTER TABLE request_log ENABLE TRIGGER USER`
    yield* sql`UPDATE usage_bounds SET filled_from = ${new Date(now + 2 * hour)}`

    assert.strictEqual((yield* report({ by: "day", org })).totals.requests, 43)
    const more = Effect.forEach(old, ({ at }) => insert([{ at, charge: 1n }]), { discard: true })
    yield* Effect.all([fillUsage, fillUsage, more, more], { concurrency: "unbounded" })
    const { totals } = yield* report({ by: "day", org })
    assert.deepStrictEqual([totals.requests, BigInt(totals.charge)], [123, 400n + 80n + 700n + 300n])
    assert.deepStrictEqual(yield* brokenTotals, [])
    assert.deepStrictEqual(yield* sql`SELECT filled_from::text AS at FROM usage_bounds`, [{ at: "-infinity" }])
  })

  it.effect("is corrected before it is added, where two gateways add the same hours", function* () {
    const sql = yield* SqlClient.SqlClient
    const org = OrgId.make("other")
    const now = Math.floor(Date.now() / hour) * hour
    const hold = logIdAt(now - 2 * hour)
    yield* sql`ALTER TABLE request_log DISABLE TRIGGER USER`
    yield* sql`DELETE FROM request_log`
    yield* sql`TRUNCATE usage_totals, uncounted_requests`
    const of = { org, charge: 0n }
    yield* insert([
      { ...of, at: now },
      { ...of, at: now - 2 * hour, surface: "video", hold }
    ])
    yield* sql`INSERT INTO organizations (id, name) VALUES (${org}, ${org})`
    yield* sql`INSERT INTO api_keys (id, org_id, hash) VALUES (${org}, ${org}, 'other')`
    yield* sql`INSERT INTO holds (id, org_id, key_id, amount, state, charged, closed_at)
      VALUES (${hold}, ${org}, ${org}, 1000, 'settled', 700, now())`
    yield* sql`ALTER TABLE request_log ENABLE TRIGGER USER`
    yield* sql`UPDATE usage_bounds SET filled_from = ${new Date(now + 2 * hour)}`

    const locked = yield* Deferred.make<void>()
    const areBothWaiting = Effect.map(
      sql`SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (
        SELECT oid FROM pg_database WHERE datname = current_database())`,
      (waiting) => waiting.length >= 2
    )
    const keepWaiting = sql`SELECT pg_advisory_xact_lock(${sql.literal(fillingLock)})`.pipe(
      Effect.zipRight(Deferred.succeed(locked, undefined)),
      Effect.zipRight(Effect.repeat(areBothWaiting, { until: (both) => both, schedule: Schedule.spaced("5 millis") })),
      sql.withTransaction
    )
    const fill = Effect.zipRight(Deferred.await(locked), fillUsage)
    yield* Effect.all([keepWaiting, fill, fill], { concurrency: "unbounded" })
    assert.strictEqual(BigInt((yield* report({ by: "day", org })).totals.charge), 700n)
    assert.deepStrictEqual(yield* brokenTotals, [])
  })
})
