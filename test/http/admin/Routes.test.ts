import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { Audit } from "../../../src/services/admin/AuditLog.ts"
import { RouteControls } from "../../../src/services/control/RouteControls.ts"
import { hostileTexts, read, refusals } from "../../harness/client/AdminClient.ts"
import { assertRefused, badRequest } from "../../harness/client/HttpCalls.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { asOperator, layer } from "../MediaServer.ts"

const untried = {
  circuit: "closed",
  open_for_organizations: 0,
  open_until: null,
  last_error: null,
  last_error_at: null,
  latency_ms: null,
  requests: 0,
  failures: 0,
  instances: 0
}

const prepared = Effect.gen(function* () {
  const operator = yield* asOperator("write")
  const { admin } = operator
  const routes = Effect.map(admin("/routes"), (answer) => {
    const { data, ...rest } = read(answer)
    const byId = new Map<string, Record<string, unknown>>(data.map((one: { id: string }) => [one.id, one]))
    return { byId, rest }
  })
  const change = (action: string, body: unknown, headers = {}) => admin(`/routes/${action}`, { body, headers })
  return { ...operator, routes, change }
})

withLayer(layer)("routes at the admin API", (it) => {
  it.effect("each is listed with its price, its cost and why it is off", function* () {
    const { routes } = yield* prepared
    const { byId, rest } = yield* routes
    assert.deepStrictEqual(rest, { sandbox: false, has_more: false, next: null })
    assert.deepStrictEqual(byId.get("plain@clips"), {
      id: "plain@clips",
      model: "plain",
      provider: "clips",
      ...untried,
      in_catalog: true,
      disabled_at: null,
      note: null,
      surface: "image",
      preference: 1,
      weight: 1,
      off_reason: null,
      margins: [{ unit: "1K image", price_usd: 0.04, cost_usd: null, margin_usd: null, margin_pct: null }],
      loss: false
    })
    assert.deepInclude(byId.get("dear@absent"), {
      in_catalog: true,
      preference: 2,
      weight: 3,
      off_reason: "ABSENT_KEY is not set",
      margins: [{ unit: "1K image", price_usd: 0.04, cost_usd: 0.05, margin_usd: -0.01, margin_pct: -25 }],
      loss: true
    })
    assert.deepInclude(byId.get("talk@first#2"), { surface: "chat", weight: 3, loss: false })
  })

  it.effect("what instances know of a route is summed up, also of one that only another has", function* () {
    const { routes } = yield* prepared
    const sql = yield* SqlClient.SqlClient
    const publish = (circuit: string, error: string, requests: number, age: number) => sql`
        WITH other AS (INSERT INTO instances (id) VALUES (${randomUUID()}) RETURNING id)
        INSERT INTO route_health
        SELECT id, route, 'clips', 'x', ${circuit}, now() + interval '1 minute', ${error},
          now() - ${age} * interval '1 second', 100, ${requests}, 1, now(), ${requests}
        FROM other, unnest(ARRAY['bare@clips', 'foreign@clips']) AS route`
    yield* publish("closed", "503 busy", 3, 5)
    yield* publish("open", "<script>alert(1)</script>", 1, 1)
    const { byId } = yield* routes
    const known = {
      circuit: "open",
      open_for_organizations: 3,
      last_error: "<script>alert(1)</script>",
      latency_ms: 100,
      requests: 4,
      failures: 2,
      instances: 2
    }
    assert.deepInclude(byId.get("bare@clips"), { ...known, in_catalog: true })
    const elsewhere = { in_catalog: false, surface: null, preference: null, weight: null, margins: [], loss: false }
    assert.deepInclude(byId.get("foreign@clips"), { ...known, ...elsewhere })
  })

  it.effect("one is disabled with a note, enabled and reset, each with its row of the audit", function* () {
    const { change, name: actor, routes } = yield* prepared
    const route = "film@clips"
    const disabled = read(yield* change("disable", { route, note: "wrong answers" }))
    assert.deepInclude(disabled, { id: route, disabled: true, note: "wrong answers" })
    assert.deepInclude((yield* routes).byId.get(route), { disabled_at: disabled.disabled_at, note: "wrong answers" })
    const enabled = { id: route, disabled: false, disabled_at: null, note: null }
    assert.deepStrictEqual(read(yield* change("enable", { route })), enabled)
    assert.deepStrictEqual(read(yield* change("reset", { route })), enabled)
    const sql = yield* SqlClient.SqlClient
    assert.deepStrictEqual(yield* sql`SELECT resets FROM route_controls WHERE route = ${route}`, [{ resets: 1 }])
    const rows = yield* (yield* Audit).list(OrganizationScope.all, { actor, limit: 10 })
    assert.deepStrictEqual(
      rows.map(({ action, after, before, target }) => [action, target, before, after]),
      [
        ["routes.reset", route, enabled, enabled],
        ["routes.enable", route, disabled, enabled],
        ["routes.disable", route, null, disabled]
      ]
    )
  })

  it.effect("a repeated reset with its key resets once", function* () {
    const { change } = yield* prepared
    const headers = { "idempotency-key": randomUUID() }
    const reset = change("reset", { route: "draw@clips" }, headers)
    const answers = yield* Effect.all([reset, reset], { concurrency: "unbounded" })
    const replays = answers.filter((answer) => answer.headers.get("idempotency-replayed") === "true")
    assert.lengthOf(replays, 1)
    const sql = yield* SqlClient.SqlClient
    assert.deepStrictEqual(yield* sql`SELECT resets FROM route_controls WHERE route = 'draw@clips'`, [{ resets: 1 }])
    yield* sql`INSERT INTO route_controls (route, disabled_at) VALUES ('gone@nowhere', now())`
    const enable = change("enable", { route: "gone@nowhere" }, { "idempotency-key": randomUUID() })
    const enabled = read(yield* enable)
    assert.deepStrictEqual(read(yield* enable), enabled)
    const other = yield* change("reset", { route: "bare@clips" }, headers)
    assertRefused(other, badRequest("The `Idempotency-Key` was used for another change."))
  })

  it.effect("one that is off can be disabled; an unknown one cannot", function* () {
    const { change } = yield* prepared
    assert.isTrue(read(yield* change("disable", { route: "dear@absent" })).disabled)
    read(yield* change("enable", { route: "dear@absent" }))
    for (const action of ["disable", "enable", "reset"]) {
      const refusal = badRequest("There is no route plane@nowhere. Known routes: ", "route").message
      const { status, text } = yield* change(action, { route: "plane@nowhere" })
      assert.strictEqual(status, 400)
      assert.include(text, refusal)
    }
    assertRefused(yield* change("reset", {}), badRequest("`route` must be a route's id.", "route"))
    const problem = "`note` must be a non-blank string of at most 1000 characters."
    for (const note of [" ", "x".repeat(1001)]) {
      assertRefused(yield* change("disable", { route: "bare@clips", note }), badRequest(problem, "note"))
    }
    for (const text of hostileTexts) {
      assert.strictEqual((yield* change("enable", { route: text })).status, 400)
      const { status } = yield* change("disable", { route: "bare@clips", note: text })
      assert.include([200, 400], status)
      const controls = yield* (yield* RouteControls).disabled
      const note = controls.find(({ id }) => id === "bare@clips")?.note
      if (status === 200) assert.strictEqual(note, text.replace(/[\p{Cc}\p{Cs}]/gu, "?"))
    }
  })

  it.effect("a reader sees them and changes none", function* () {
    const { admin } = yield* asOperator("read")
    read(yield* admin("/routes"))
    for (const action of ["disable", "enable", "reset"]) {
      assertRefused(yield* admin(`/routes/${action}`, { body: { route: "bare@clips" } }), refusals.needs("write"))
    }
  })
})
