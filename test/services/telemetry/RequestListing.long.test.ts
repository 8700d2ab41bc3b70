import { SqlClient, Statement } from "@effect/sql"
import { Effect, FastCheck as fc, Layer, Schema } from "effect"
import { KeyId } from "../../../src/domain/ApiKey.ts"
import { OrgId } from "../../../src/domain/Organization.ts"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { type AddressRange, parseRange } from "../../../src/services/access/BlockList.ts"
import { requestIdOf } from "../../../src/services/requests/RequestColumns.ts"
import { type RequestQuery, SearchLimit } from "../../../src/services/telemetry/RequestListing.ts"
import { RequestLog } from "../../../src/services/telemetry/RequestLog.ts"
import { countUsage } from "../../../src/services/telemetry/Usage.ts"
import { runs } from "../../harness/Cases.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { logIdAt } from "../../harness/LogId.ts"
import { brokenTotals, leaveUncounted } from "./UsageRows.ts"

const begin = Date.parse("2026-03-01T00:00:00Z")
const hour = 3_600_000

/** A few rows of nine days: most in a burst, some alone, several of the same moment. */
const rows = (seed: number) => {
  const at = (unit: string) => `('2026-03-01T00:00:00Z'::timestamptz + ${unit})`
  return `
    SELECT setseed(${seed});
    INSERT INTO request_log (id, request_id, at, surface, status, code, org_id, key_id, model, route, address, end_user, tag,
      charge, total_ms, hold_id)
    SELECT uuid_v7(at), 'r', at, CASE WHEN part < 0.1 THEN 'image' ELSE 'chat' END, status,
      CASE WHEN status <> 200 THEN 'upstream_error' WHEN part > 0.97 THEN 'stream_error' END, 'org' || key % 2, 'key' || key,
      CASE WHEN status = 404 THEN CASE WHEN part < 0.5 THEN 'late' WHEN part < 0.8 THEN 'never' END
        WHEN part > 0.9 AND at > '2026-03-05' THEN 'late' ELSE 'm' || i % 3 END,
      CASE WHEN status < 400 OR status >= 500 THEN 'm' || i % 3 || '@' || key END,
      (ARRAY[NULL, '203.0.113.9', '203.0.113.10', '203.0.114.9', '2001:db8::9', 'fe80::9%eth0', 'unknown'])[1 + i % 7],
      (ARRAY[NULL, 'ann', 'bob'])[1 + i % 3], (ARRAY[NULL, 'blue', 'blue', 'red', 'other'])[1 + i % 5], 0, 1, NULL
    FROM (
      SELECT i, random() AS part, floor(4 * random() * random())::int AS key,
        (ARRAY[200, 200, 200, 200, 404, 429, 499, 502, 503])[1 + floor(9 * random())::int] AS status,
        CASE WHEN i % 3 = 0 THEN ${at("floor(9 * 24 * 60 * random()) * interval '1 minute'")}
          ELSE ${at("interval '6 days' + floor(90 * random()) * interval '2 minutes'")} END AS at
      FROM generate_series(1, 500) AS i OFFSET 0
    ) AS drawn ORDER BY at`
}

const optional = <A>(...values: ReadonlyArray<A>) => fc.option(fc.constantFrom(...values), { nil: undefined, freq: 1 })
const moments = optional(...[0, 5, 24, 96, 144, 145.5, 146, 200, 216].map((hours) => begin + hours * hour))

/** What of the rows' addresses lies in each. */
const ranges: ReadonlyMap<AddressRange | undefined, ReadonlyArray<string>> = new Map([
  [parseRange("203.0.113.9"), ["203.0.113.9"]],
  [parseRange("203.0.113.0/24"), ["203.0.113.9", "203.0.113.10"]],
  [parseRange("2001:0DB8::/32"), ["2001:db8::9"]],
  [parseRange("::/0"), ["2001:db8::9"]],
  [parseRange("198.51.100.0/24"), []]
])

const queries = fc.record({
  org: optional(OrgId.make("org0"), OrgId.make("org1"), OrgId.make("none")),
  key: optional(...[0, 1, 2, 3].map((key) => KeyId.make(`key${key}`))),
  model: optional("m0", "m1", "late", "never", "unknown"),
  route: optional("m0@0", "m1@3", "m2@2", "none"),
  surface: optional("chat", "image"),
  user: fc.option(fc.constantFrom("ann", "nobody"), { nil: undefined, freq: 3 }),
  tag: fc.option(fc.constantFrom("blue", "red", "other", "none"), { nil: undefined, freq: 2 }),
  code: fc.option(fc.constantFrom("upstream_error", "stream_error"), { nil: undefined, freq: 4 }),
  status: optional<RequestQuery["status"]>(200, 404, 503, "4xx", "5xx", "ok", "error", "rejected"),
  address: fc.option(fc.constantFrom(...ranges.keys()), { nil: undefined, freq: 2 }),
  since: moments,
  until: moments,
  limit: fc.constantFrom(1, 3, 20, 1000)
})

const Row = Schema.Struct({
  id: Schema.String,
  at: Schema.DateFromSelf,
  orgId: Schema.String,
  keyId: Schema.String,
  model: Schema.NullOr(Schema.String),
  route: Schema.NullOr(Schema.String),
  surface: Schema.String,
  address: Schema.NullOr(Schema.String),
  endUser: Schema.NullOr(Schema.String),
  tag: Schema.NullOr(Schema.String),
  status: Schema.Number,
  code: Schema.NullOr(Schema.String)
})

const hasStatus = ({ code, status }: typeof Row.Type, wanted: RequestQuery["status"]) => {
  if (wanted === "ok") return status < 400 && code === null
  if (wanted === "error") return status >= 500 || code === "stream_error"
  if (wanted === "rejected") return status >= 400 && status < 499
  if (wanted === "4xx" || wanted === "5xx") return `${status}`.startsWith(wanted.charAt(0))
  return wanted === undefined || status === wanted
}

const isAsked = (row: typeof Row.Type, query: RequestQuery) => {
  const { address, code, key, model, org, route, status, surface, tag, user } = query
  const { since = -Infinity, until = Infinity } = query
  const pairs = [
    [org, row.orgId],
    [key, row.keyId],
    [model, row.model],
    [route, row.route],
    [surface, row.surface],
    [user, row.endUser],
    [tag, row.tag],
    [code, row.code]
  ]
  const at = row.at.getTime()
  return (
    pairs.every(([wanted, is]) => wanted === undefined || wanted === is) &&
    hasStatus(row, status) &&
    (address === undefined || ranges.get(address)?.includes(row.address ?? "") === true) &&
    at >= since &&
    at < until
  )
}

const readAll = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return yield* Effect.flatMap(sql`SELECT * FROM request_log ORDER BY id DESC`, Schema.decodeUnknown(Schema.Array(Row)))
})

const scopes = [
  OrganizationScope.all,
  OrganizationScope.only(OrgId.make("org0")),
  OrganizationScope.only(OrgId.make("org1"))
]

/** Every query, page by page, is what all rows leave of it; no page ends at a row that its reader may not see. */
const check = Effect.fnUntraced(function* (queryCount: number, seed: number) {
  const { page } = yield* RequestLog
  const all = yield* readAll
  for (const [index, query] of fc.sample(queries, { numRuns: queryCount, seed }).entries()) {
    const listed: Array<string> = []
    const scope = scopes[index % scopes.length] ?? OrganizationScope.all
    const seen = all.filter(({ orgId }) => scope.org === undefined || orgId === scope.org)
    let after: string | undefined
    do {
      const { next, rows } = yield* page(scope, { ...query, after })
      assert.isAtMost(rows.length, query.limit)
      listed.push(...rows.map(({ id }) => id))
      assert.isTrue(next === undefined || seen.some(({ id }) => id === next), JSON.stringify(query))
      after = next
    } while (after !== undefined && listed.length <= all.length)
    const expected = seen.filter((row) => isAsked(row, query)).map(({ id }) => id)
    assert.deepStrictEqual(listed, expected, JSON.stringify(query))
  }
})

withLayer(RequestLog.layer.pipe(Layer.provideMerge(Postgres.layer)))("a list of requests", (it) => {
  it.effect("is what the filters leave of all rows, in pages without gap or repeat", function* () {
    const sql = yield* SqlClient.SqlClient
    yield* leaveUncounted
    // A model that was asked for before anybody sold it.
    yield* sql`INSERT INTO request_log (id, request_id, at, surface, status, org_id, key_id, model, charge, total_ms)
        SELECT uuid_v7(${new Date(begin)}::timestamptz + i * interval '5 hours'), 'r', ${new Date(begin)}::timestamptz + i * interval '5 hours', 'chat', 404, 'org0', 'key1', 'late', 0, 1
        FROM generate_series(0, 12) AS i`
    // Of one day, an organization's other tags are counted together.
    yield* sql`INSERT INTO usage_tags (day, org_id, tag, number)
        SELECT '2026-03-07', 'org0', 'tag ' || i, i FROM generate_series(1, 1000) AS i`
    yield* sql.unsafe(rows(0.25))
    yield* check(runs(120), 1)
    yield* countUsage
    yield* check(runs(80), 3)
    assert.deepStrictEqual(yield* brokenTotals, [])
    // Pages that end before they are full, because they looked through as many rows as they may.
    yield* Effect.provideService(check(runs(60), 2), SearchLimit, 7)
  })

  it.effect("repeats no row on the page after a cut one, while other requests arrive", function* () {
    const { page } = yield* RequestLog
    const sql = yield* SqlClient.SqlClient
    const org = OrgId.make("busy")
    const write = (id: string) =>
      sql`INSERT INTO request_log (id, request_id, at, surface, status, org_id, key_id, model, charge, total_ms)
        VALUES (${id}, 'r', now(), 'chat', 200, ${org}, 'busy', 'm', 0, 1)`
    const known = Array.from({ length: 8 }, (_, index) => logIdAt(Date.now() - 1000 + index)).toReversed()
    yield* Effect.forEach(known, write)
    const arriving = Statement.setTransformer((statement) =>
      statement.compile()[0].includes("INSERT")
        ? Effect.succeed(statement)
        : Effect.as(Effect.orDie(write(logIdAt())), statement)
    )
    const listed: Array<string> = []
    let after: string | undefined
    do {
      const read = page(OrganizationScope.all, { org, model: "m", limit: 10, after })
      const { next, rows } = yield* read.pipe(Effect.provideService(SearchLimit, 4), Effect.provide(arriving))
      listed.push(...rows.map(({ id }) => id))
      after = next
    } while (after !== undefined)
    assert.deepStrictEqual(
      listed.filter((id) => known.includes(id)),
      known
    )
    assert.lengthOf(new Set(listed), listed.length)
  })

  it.effect("is of the time in which requests came, also if their ids are of a little earlier or later", function* () {
    const { page } = yield* RequestLog
    const sql = yield* SqlClient.SqlClient
    const org = OrgId.make("skewed")
    const ids = [-290, -1, 0, 1, 55].map((seconds) => logIdAt(begin + 1000 * seconds))
    for (const id of ids)
      yield* sql`INSERT INTO request_log (id, request_id, at, surface, status, org_id, key_id, charge, total_ms)
        VALUES (${id}, 'r', ${new Date(begin)}, 'chat', 200, ${org}, 'skewed', 0, 1)`
    const list = (since: number, until: number) =>
      Effect.map(page(OrganizationScope.all, { org, since, until, limit: 10 }), ({ rows }) => rows.map(({ id }) => id))
    assert.deepStrictEqual(yield* list(begin, begin + 1), ids.toReversed())
    assert.deepStrictEqual(yield* list(begin - 1, begin), [])
    assert.deepStrictEqual(yield* list(begin + 1, begin + hour), [])
  })

  it.effect("finds requests by the id that the gateway made, and by the same ids that clients chose", function* () {
    const { list } = yield* RequestLog
    const sql = yield* SqlClient.SqlClient
    const [made, chosen, older] = [logIdAt(begin + 2), logIdAt(begin + 1), logIdAt(begin)]
    for (const [id, name] of [
      [made, requestIdOf(made)],
      [chosen, requestIdOf(made)],
      [older, made]
    ] as const)
      yield* sql`INSERT INTO request_log (id, request_id, at, surface, status, org_id, key_id, charge, total_ms)
        VALUES (${id}, ${name}, ${new Date(begin)}, 'chat', 200, 'named', 'named', 0, 1)`
    const idsOf = (id: string) =>
      Effect.map(list(OrganizationScope.all, { id, limit: 10 }), (rows) => rows.map((row) => row.id))
    assert.deepStrictEqual(yield* idsOf(requestIdOf(made)), [made, chosen])
    assert.deepStrictEqual(yield* idsOf(made), [made, older])
    assert.deepStrictEqual(yield* idsOf(requestIdOf(chosen)), [])
    assert.lengthOf(
      yield* sql`SELECT FROM request_log WHERE org_id = 'named' AND request_id <> 'req_' || replace(id::text, '-', '')`,
      2
    )
  })

  it.effect("stops a search after so many rows, and says where it goes on", function* () {
    const { page } = yield* RequestLog
    const sql = yield* SqlClient.SqlClient
    yield* sql`INSERT INTO request_log (id, request_id, at, surface, status, org_id, key_id, charge, total_ms)
      SELECT uuid_v7(${new Date(begin)}::timestamptz - i * interval '1 hour'), 'r', ${new Date(begin)}::timestamptz - i * interval '1 hour', 'chat', 429,
        'searched', 'searched' || i % 2, 0, 1 FROM generate_series(1, 6) AS i`
    const query = { org: OrgId.make("searched"), address: parseRange("203.0.113.9"), limit: 10 }
    const search = (after?: string) =>
      Effect.provideService(page(OrganizationScope.all, { ...query, after }), SearchLimit, 4)
    const first = yield* search()
    assert.deepStrictEqual(first.rows, [])
    assert.isDefined(first.next)
    assert.isTrue(first.isTruncated)
    assert.deepStrictEqual(yield* search(first.next), { rows: [], next: undefined, isTruncated: false })
  })
})
