import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { Dashboard } from "../../../src/services/admin/Dashboard.ts"
import { openAccount } from "../../harness/client/Account.ts"
import { adminAt, hire, read } from "../../harness/client/AdminClient.ts"
import { logRequest } from "../../harness/database/Rows.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { layer, MediaServer } from "../MediaServer.ts"

const nowAt = (at: string) => Effect.flatMap(Dashboard, (now) => now.at(Date.parse(at)))

const attentionAt = (at: number, kind: string) =>
  Effect.map(
    Effect.flatMap(Dashboard, (now) => now.at(at)),
    ({ attention }) => attention.filter((one) => one.kind === kind)
  )

withLayer(layer)("what happens now", (it) => {
  it.effect("is nothing over an empty database", function* () {
    const { url } = yield* MediaServer
    const { token } = yield* hire("read")
    const now = read(yield* adminAt(url, token)("/now"))
    const none = { requests: 0, errors: 0, refusals: 0, charge_usd: 0 }
    const figures = { ...none, cost_usd: 0, margin_usd: 0, cost_unknown: 0 }
    const timed = { first_byte_p50_ms: null, first_byte_p95_ms: null }
    assert.deepStrictEqual(now.today, { ...figures, ...timed })
    assert.deepStrictEqual(now.yesterday, { ...figures, ...timed })
    assert.lengthOf(now.hours, 48)
    assert.deepStrictEqual(now.hours[47], { hour: Math.floor(now.at / 3600) * 3600, ...none })
    assert.deepStrictEqual(now.holds, { open: 0, amount_usd: 0, oldest: null })
    assert.deepStrictEqual([now.circuits, now.attention], [[], []])
    assert.strictEqual((yield* adminAt(url, "ggo_wrong")("/now")).status, 401)
  })

  it.effect("compares today with the same span of yesterday, in UTC and over midnight", function* () {
    const log = (at: string, more: object = {}) =>
      logRequest({ at, charge: 100, cost: 40, route: "m@p", provider: "p", first_byte_ms: 10, ...more })
    yield* log("2026-03-09T23:59:59.999Z", { charge: 7, cost: null })
    yield* log("2026-03-10T00:00:00.000Z")
    yield* log("2026-03-10T00:10:00.000Z", { status: 429, charge: 0, cost: null, first_byte_ms: null })
    yield* log("2026-03-10T23:59:59.999Z", { charge: 50 })
    yield* log("2026-03-11T00:00:00.000Z", { charge: 3, first_byte_ms: 30 })
    yield* log("2026-03-11T00:00:01.000Z", { status: 503, charge: 0, cost: null })
    // Of an instance whose clock is ahead.
    yield* log("2026-03-11T00:45:00.000Z", { charge: 1 })
    yield* log("2026-03-12T00:00:00.000Z", { charge: 1_000 })

    const late = yield* nowAt("2026-03-11T00:30:00Z")
    assert.deepInclude(late.today, { requests: 3, errors: 1, refusals: 0, charge_usd: 4n, cost_usd: 80n })
    assert.deepInclude(late.yesterday, { requests: 2, errors: 0, refusals: 1, charge_usd: 100n, cost_usd: 40n })
    assert.deepInclude(late.today, { first_byte_p50_ms: 10, first_byte_p95_ms: 30 })
    assert.deepInclude(late.yesterday, { first_byte_p50_ms: 10, first_byte_p95_ms: 10 })
    const filled = late.hours.filter(({ requests }) => requests > 0)
    assert.deepStrictEqual(
      filled.map(({ charge_usd, hour, requests }) => [hour.toISOString(), requests, charge_usd]),
      [
        ["2026-03-09T23:00:00.000Z", 1, 7n],
        ["2026-03-10T00:00:00.000Z", 2, 100n],
        ["2026-03-10T23:00:00.000Z", 1, 50n],
        ["2026-03-11T00:00:00.000Z", 3, 4n]
      ]
    )
    assert.strictEqual(late.hours[0]?.hour.toISOString(), "2026-03-09T01:00:00.000Z")
    const before = yield* nowAt("2026-03-10T23:59:59.999Z")
    assert.deepInclude(before.today, { requests: 3, charge_usd: 150n })
    assert.deepInclude(before.yesterday, { requests: 0, charge_usd: 0n })
  })

  it.effect("lists organizations that run low until they have a week's credits", function* () {
    const sql = yield* SqlClient.SqlClient
    const { key, org } = yield* openAccount({ nanoUsd: 2_000_000_000n })
    const at = Date.UTC(2026, 3, 10, 12)
    yield* logRequest({ org_id: org, key_id: key, at: new Date(at - 86_400_000), charge: 7_000_000_000 })
    const [low, ...others] = yield* attentionAt(at, "low_balance")
    assert.isEmpty(others)
    assert.deepInclude(low, { org, href: `#/organizations/${org}` })
    assert.strictEqual(low?.detail, "2.0 days left: 2 USD available, 1 USD spent a day.")
    assert.isEmpty(yield* attentionAt(at + 9 * 86_400_000, "low_balance"))
    yield* sql`UPDATE organizations SET suspended_at = now() WHERE id = ${org}`
    assert.isEmpty(yield* attentionAt(at, "low_balance"))
    yield* sql`UPDATE organizations SET suspended_at = NULL, balance = 7000000000 WHERE id = ${org}`
    assert.isEmpty(yield* attentionAt(at, "low_balance"))
  })

  it.effect("lists holds that stay open, and what all of them come to", function* () {
    const sql = yield* SqlClient.SqlClient
    const { key, org } = yield* openAccount({})
    const [instance, hold] = [randomUUID(), randomUUID()]
    yield* sql`INSERT INTO instances (id) VALUES (${instance})`
    yield* sql`INSERT INTO holds (id, org_id, key_id, amount, instance_id, created_at)
        VALUES (${hold}, ${org}, ${key}, 1500000000, ${instance}, '2026-04-01T00:00:00Z')`
    const early = yield* nowAt("2026-04-01T01:59:00Z")
    assert.deepInclude(early.holds, { open: 1, amount_usd: 1_500_000_000n })
    assert.deepInclude(early.holds.oldest, { id: hold, org })
    assert.isEmpty(early.attention.filter(({ kind }) => kind === "old_hold"))
    const at = Date.parse("2026-04-01T02:30:00Z")
    const [old] = yield* attentionAt(at, "old_hold")
    assert.deepInclude(old, { org, detail: "1.5 USD have been held for 150 minutes." })
    yield* sql`UPDATE holds SET state = 'released', closed_at = now() WHERE id = ${hold}`
    assert.isEmpty(yield* attentionAt(at, "old_hold"))
    assert.strictEqual((yield* nowAt("2026-04-01T02:30:00Z")).holds.open, 0)
  })

  it.effect("lists videos that do not finish until they are over", function* () {
    const sql = yield* SqlClient.SqlClient
    const { key, org } = yield* openAccount({})
    const [hold, id] = [randomUUID(), `vid_${randomUUID()}`]
    yield* sql`INSERT INTO holds (id, org_id, key_id, amount) VALUES (${hold}, ${org}, ${key}, 5)`
    yield* sql`INSERT INTO videos (id, org_id, key_id, hold_id, request_id, model, seconds, price, prompt, created_at,
          deadline, status, step)
        VALUES (${id}, ${org}, ${key}, ${hold}, 'r', 'm', 8, 5, '', '2026-04-02T00:00:00Z', '2026-04-02T01:00:00Z',
          'queued', 'submit')`
    const at = Date.parse("2026-04-02T00:44:00Z")
    assert.isEmpty(yield* attentionAt(at, "stuck_video"))
    const [stuck] = yield* attentionAt(at + 120_000, "stuck_video")
    assert.deepInclude(stuck, { org, href: `#/videos/${id}`, detail: "It has been queued for 46 minutes." })
    yield* sql`UPDATE videos SET status = 'failed', step = 'over', completed_at = now(), error_code = 'timeout',
          error_message = 'late', next_at = NULL WHERE id = ${id}`
    assert.isEmpty(yield* attentionAt(at + 120_000, "stuck_video"))
  })

  it.effect("lists webhooks that were given up until they are replayed", function* () {
    const sql = yield* SqlClient.SqlClient
    const { org } = yield* openAccount({})
    const event = `evt_${randomUUID()}`
    yield* sql`INSERT INTO webhook_deliveries (event_id, org_id, url, type, data, state, failure, next_at)
        VALUES (${event}, ${org}, 'https://x.test/<script>', 'credits.low', '{}', 'failed', 'status 500', NULL)`
    const at = Date.now()
    const [failed] = yield* attentionAt(at, "webhook_failed")
    assert.deepInclude(failed, {
      org,
      detail: "1 event failed after all tries for https://x.test/<script>: status 500"
    })
    assert.isEmpty(yield* attentionAt(at + 8 * 86_400_000, "webhook_failed"))
    yield* sql`UPDATE webhook_deliveries SET state = 'pending', next_at = now() WHERE event_id = ${event}`
    assert.isEmpty(yield* attentionAt(at, "webhook_failed"))
  })

  it.effect("lists webhooks that are tried in vain from ten minutes on", function* () {
    const sql = yield* SqlClient.SqlClient
    const { org } = yield* openAccount({})
    yield* sql`INSERT INTO webhook_deliveries (event_id, org_id, url, type, data, created_at, tries, failure, next_at)
        VALUES (${`evt_${randomUUID()}`}, ${org}, 'https://y.test/', 'credits.low', '{}', '2026-04-03T00:00:00Z', 4, 'status 500', '2026-04-03T01:00:00Z')`
    const at = Date.parse("2026-04-03T00:00:00Z")
    const ofOrg = (time: number) =>
      Effect.map(attentionAt(time, "webhook_failing"), (all) => all.filter((one) => one.org === org))
    assert.isEmpty(yield* ofOrg(at + 9 * 60_000))
    const [failing] = yield* ofOrg(at + 11 * 60_000)
    assert.deepInclude(failing, { detail: "1 event retried for more than 10 minutes for https://y.test/: status 500" })
    yield* sql`UPDATE webhook_deliveries SET state = 'delivered', next_at = NULL WHERE org_id = ${org}`
    assert.isEmpty(yield* ofOrg(at + 11 * 60_000))
  })

  it.effect("lists circuits, disabled routes, and instances that refuse or differ in their catalog", function* () {
    const sql = yield* SqlClient.SqlClient
    const [one, two] = [randomUUID(), randomUUID()]
    yield* sql`INSERT INTO instances (id) VALUES (${one}), (${two})`
    yield* sql`INSERT INTO instance_catalogs (instance_id, host, pid, generation, fingerprint, models, problem)
        VALUES (${one}, 'a', 1, 0, 'aaa', 3, NULL), (${two}, 'b', 2, 0, 'bbb', 3, 'catalog.yaml:3: wrong')`
    yield* sql`
        INSERT INTO route_health (instance_id, route, provider, model, circuit, open_until, last_error, last_error_at,
          latency_ms, requests, failures, published_at)
        VALUES (${one}, 'm@p', 'p', 'm', 'open', '2026-04-01T00:01:00Z', '503 overloaded', '2026-04-01', 1, 9, 9, now()),
          (${two}, 'm@p', 'p', 'm', 'closed', NULL, NULL, NULL, 1, 9, 0, now()),
          (${two}, 'm@q', 'q', 'm', 'half_open', NULL, 'odd', '2026-03-01', 1, 9, 9, now())`
    yield* sql`INSERT INTO route_controls (route, disabled_at, note) VALUES ('m@r', now(), 'too dear')`
    const { attention, circuits } = yield* Effect.flatMap(Dashboard, (now) => now.at(Date.now()))
    assert.deepStrictEqual(
      circuits.map(({ last_error, note, route, state }) => [route, state, last_error, note]),
      [
        ["m@p", "open", "503 overloaded", null],
        ["m@q", "half_open", "odd", null],
        ["m@r", "disabled", null, "too dear"]
      ]
    )
    assert.strictEqual(circuits[0]?.until?.toISOString(), "2026-04-01T00:01:00.000Z")
    const told = (kind: string) => attention.flatMap((one) => (one.kind === kind ? [[one.title, one.detail]] : []))
    assert.deepStrictEqual(told("circuit"), [["m@p is not called", "503 overloaded"]])
    assert.deepStrictEqual(told("route_disabled"), [["m@r is disabled", "too dear"]])
    const problems = told("catalog_problem")
    assert.deepStrictEqual(problems[0], ["b:2 rejected the catalog", "catalog.yaml:3: wrong"])
    assert.strictEqual(problems[1]?.[0], "Instances serve different catalogs")
    assert.include(problems[1]?.[1], "a:1 aaa")

    yield* sql`UPDATE instances SET stopped_at = now() WHERE id = ${two}`
    yield* sql`UPDATE route_health SET circuit = 'closed' WHERE instance_id = ${one}`
    yield* sql`UPDATE route_controls SET disabled_at = NULL`
    const after = yield* Effect.flatMap(Dashboard, (now) => now.at(Date.now()))
    assert.deepStrictEqual([after.circuits, after.attention], [[], []])
  })

  it.effect("is read once for all who ask within a second", function* () {
    const { url } = yield* MediaServer
    const { token } = yield* hire("read")
    const admin = adminAt(url, token)
    yield* admin("/now")
    const answers = yield* Effect.all(
      Array.from({ length: 10 }, () => admin("/now")),
      { concurrency: "unbounded" }
    )
    assert.isAtMost(new Set(answers.map(({ text }) => text)).size, 2)
  })
})
