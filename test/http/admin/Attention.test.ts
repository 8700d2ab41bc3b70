import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { Dashboard } from "../../../src/services/admin/Dashboard.ts"
import { openAccount } from "../../harness/client/Account.ts"
import { read } from "../../harness/client/AdminClient.ts"
import { logRequest } from "../../harness/database/Rows.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { asOperator, layer } from "../MediaServer.ts"

const told = (at: number, ...kinds: ReadonlyArray<string>) =>
  Effect.map(
    Effect.flatMap(Dashboard, (now) => now.at(at)),
    ({ attention }) =>
      attention.flatMap(({ detail, kind, title }) => (kinds.includes(kind) ? [`${kind}: ${title}: ${detail}`] : []))
  )

const hour = 3_600_000

/** A running instance that publishes the circuits of its routes. */
const publish = Effect.fnUntraced(function* (circuits: Readonly<Record<string, string>>) {
  const sql = yield* SqlClient.SqlClient
  const instance = randomUUID()
  yield* sql`INSERT INTO instances (id) VALUES (${instance})`
  for (const [route, circuit] of Object.entries(circuits)) {
    const [model, provider] = route.split("@")
    yield* sql`
      INSERT INTO route_health (instance_id, route, provider, model, circuit, last_error, last_error_at, requests,
        failures, published_at)
      VALUES (${instance}, ${route}, ${provider}, ${model}, ${circuit}, ${circuit === "closed" ? null : "503 -"}, now(),
        9, 5, now())`
  }
  const stop = sql`UPDATE instances SET stopped_at = now() WHERE id = ${instance}`
  return yield* Effect.addFinalizer(() => Effect.orDie(stop))
})

withLayer(layer)("what needs an operator", (it) => {
  const down = Effect.suspend(() => told(Date.now(), "model_down"))

  it.scoped("is a model whose only route waits for its next probe", function* () {
    yield* publish({ "lone@a": "half_open", "other@a": "closed" })
    assert.deepStrictEqual(yield* down, ["model_down: lone is down: No route works (lone@a: 503 -)."])
  })

  it.scoped("is a model that one instance has no working route for, until another route is enabled", function* () {
    const sql = yield* SqlClient.SqlClient
    yield* publish({ "two@a": "closed", "two@b": "closed" })
    yield* publish({ "two@a": "open", "two@b": "closed" })
    assert.isEmpty(yield* down)
    yield* sql`INSERT INTO route_controls (route, disabled_at) VALUES ('two@b', now())`
    const said = "model_down: two is down: No route works (two@a: 503 -; two@b is disabled)."
    assert.deepStrictEqual(yield* down, [said])
    assert.deepStrictEqual(yield* told(Date.now(), "route_disabled"), [
      "route_disabled: two@b is disabled: There is no note."
    ])
    yield* sql`DELETE FROM route_controls`
    assert.isEmpty(yield* down)
  })

  it.effect("is a model of which nothing but failures came lately, though its circuits are closed", function* () {
    const at = Date.UTC(2026, 4, 1, 12)
    const fail = (model: string, minutesAgo: number, more: object) =>
      logRequest({ model, at: new Date(at - minutesAgo * 60_000), ...more })
    const broken = [{ status: 502, code: "upstream_error" }, { code: "stream_error" }, { status: 504, code: "timeout" }]
    for (const [index, more] of broken.entries()) {
      yield* fail("dead", index, more)
      yield* fail("mixed", index, more)
      yield* fail("old", 16 + index, more)
      yield* fail("busy", index, { status: 503, code: null })
      yield* fail("refusing", index, { status: 400, code: null })
    }
    yield* fail("dead", 1, { status: 400 })
    yield* fail("mixed", 5, {})
    yield* fail("rare", 1, { status: 502, code: "upstream_error" })
    assert.deepStrictEqual(yield* told(at, "model_down"), [
      "model_down: dead is down: All of its last 3 requests failed."
    ])
    assert.isEmpty(yield* told(at + hour, "model_down"))
  })

  const minute = 60_000
  const logMany = (count: number, row: Readonly<Record<string, unknown>>) =>
    Effect.forEach(Array.from({ length: count }), () => logRequest(row))

  it.effect("are many requests that failed within 15 minutes, whatever the customers' own errors", function* () {
    const at = Date.UTC(2026, 4, 2, 12)
    const recent = new Date(at - minute)
    const rates = (now: number) => told(now, "high_error_rate")
    yield* logMany(6, { model: "talk", at: recent, status: 502, code: "upstream_error" })
    yield* logMany(3, { model: "draw", at: recent, code: "stream_error" })
    yield* logMany(30, { model: "talk", at: recent })
    yield* logMany(20, { model: "talk", at: new Date(at - 16 * minute), status: 502, code: "upstream_error" })
    yield* logMany(40, { model: "talk", at: recent, status: 400, code: null })
    yield* logMany(40, { at: recent, status: 429, code: "rate_limit_exceeded" })
    yield* logMany(40, { model: "talk", at: recent, status: 499, code: "client_closed" })
    // Each instant has its own hour, because alerts are cached for a minute of the clock.
    assert.isEmpty(yield* rates(at))
    const next = at + hour
    yield* logMany(6, { model: "talk", at: new Date(next - minute), status: 502, code: "upstream_error" })
    yield* logMany(4, { model: "draw", at: new Date(next - minute), code: "stream_error" })
    yield* logMany(30, { model: "talk", at: new Date(next - minute) })
    yield* logMany(90, { model: "talk", at: new Date(next - minute), status: 404, code: "model_not_found" })
    assert.deepStrictEqual(yield* rates(next), [
      "high_error_rate: 25 % of requests fail: 10 of the last 40 requests within 15 minutes failed. Most frequent: 502 upstream_error of talk (6)."
    ])
    const third = at + 2 * hour
    yield* logMany(10, { model: "talk", at: new Date(third - minute), status: 503, code: null })
    yield* logMany(191, { model: "talk", at: new Date(third - minute) })
    assert.isEmpty(yield* rates(third))
  })

  it.effect("is a route whose attempts all failed within 15 minutes, though failover hides it", function* () {
    const sql = yield* SqlClient.SqlClient
    const at = Date.UTC(2026, 4, 3, 12)
    const answered = { route: "talk@good", provider: "good", outcome: "ok", status: 200, ms: 5 }
    const attempt = (route: string, outcome: string, status?: number, detail?: string) => ({
      route,
      provider: route.replace("talk@", ""),
      outcome,
      ms: 5,
      ...(status !== undefined && { status }),
      ...(detail !== undefined && { detail })
    })
    const log = (minutesAgo: number, ...failed: ReadonlyArray<object>) =>
      logRequest({ model: "talk", at: new Date(at - minutesAgo * minute), attempts: [...failed, answered] })
    // One refused account is enough.
    yield* log(1, attempt("talk@refused", "account", 401, "401 invalid_api_key Incorrect API key provided."))
    yield* log(1, attempt("talk@refused", "skipped"))
    yield* log(1, attempt("talk@poor", "account", 402, "402 insufficient_balance"))
    yield* log(2, attempt("talk@poor", "retry", 500, "500 oops"))
    yield* log(3, attempt("talk@poor", "retry", 500, "500 oops"))
    for (const minutesAgo of [1, 2, 3]) {
      yield* log(minutesAgo, attempt("talk@slow", "timeout", undefined, "no response within 60000 ms"))
      yield* log(minutesAgo, attempt("talk@mixed", "retry", 503, "503 overloaded"))
      yield* log(minutesAgo, attempt("talk@disabled", "retry", 500, "500 oops"))
      yield* log(14 + minutesAgo, attempt("talk@old", "retry", 500, "500 oops"))
      // A rejected request is the customer's, and a cancelled call nobody's.
      yield* log(minutesAgo, attempt("talk@strict", "request", 400, "400 no"), attempt("talk@left", "cancelled"))
      // The route was not called, because it does not support the request.
      yield* log(minutesAgo, attempt("talk@small", "retry", undefined, "talk@small: the route cannot edit"))
      yield* log(minutesAgo, attempt("", "network"))
      yield* log(minutesAgo, attempt("talk@hostile", "network", undefined, "reset\u202eby\u2028peer"))
    }
    yield* log(4, attempt("talk@slow", "retry", 503, "503 overloaded"))
    yield* log(4, attempt("talk@mixed", "ok", 200))
    yield* log(1, attempt("talk@rare", "retry", 500, "500 oops"))
    yield* sql`INSERT INTO route_controls (route, disabled_at) VALUES ('talk@disabled', now())`
    assert.deepStrictEqual(yield* told(at, "route_failing"), [
      "route_failing: Every attempt of talk@hostile fails: 3 attempts within 15 minutes failed with network error: reset by peer.",
      "route_failing: Every attempt of talk@poor fails: 3 attempts within 15 minutes failed, 1 of them with 402 account refused: insufficient_balance. Check the credential of poor, and the account's balance and permissions.",
      "route_failing: Every attempt of talk@refused fails: 1 attempt within 15 minutes failed with 401 authentication failed: invalid_api_key Incorrect API key provided. Check the credential of refused.",
      "route_failing: Every attempt of talk@slow fails: 4 attempts within 15 minutes failed, 3 of them with timeout: no response within 60000 ms."
    ])
    assert.isEmpty(yield* told(at + hour, "route_failing"))
    yield* sql`DELETE FROM route_controls`
  })

  it.effect("counts the attempts of videos once, by their jobs", function* () {
    const sql = yield* SqlClient.SqlClient
    const { key, org } = yield* openAccount({})
    const at = Date.UTC(2026, 4, 4, 12)
    const attempts = [{ route: "film@clips", provider: "clips", outcome: "account", status: 401, ms: 5 }]
    for (const minutesAgo of [1, 16]) {
      const hold = randomUUID()
      const created = new Date(at - minutesAgo * minute)
      yield* sql`INSERT INTO holds (id, org_id, key_id, amount) VALUES (${hold}, ${org}, ${key}, 5)`
      yield* sql`INSERT INTO videos (id, org_id, key_id, hold_id, request_id, model, seconds, price, prompt, created_at,
          deadline, attempts)
        VALUES (${`vid_${hold}`}, ${org}, ${key}, ${hold}, 'r', 'film', 8, 5, '', ${created}, ${new Date(at + hour)},
          ${JSON.stringify(attempts)}::jsonb)`
    }
    // The request log repeats the first attempt of a video.
    yield* logRequest({ surface: "video", model: "film", at: new Date(at - minute), attempts })
    const { attention } = yield* Effect.flatMap(Dashboard, (now) => now.at(at))
    assert.deepStrictEqual(
      attention.filter(({ kind }) => kind === "route_failing"),
      [
        {
          kind: "route_failing",
          title: "Every attempt of film@clips fails",
          detail: "1 attempt within 15 minutes failed with 401 authentication failed. Check the credential of clips.",
          href: "#/models/film"
        }
      ]
    )
    yield* sql`DELETE FROM videos`
  })

  it.effect("is a model sold below cost, failed attempts included, outside of the sandbox", function* () {
    const at = Date.UTC(2026, 4, 10, 12)
    const sell = (model: string, charge: number, more: object) =>
      logRequest({ model, charge, at: new Date(at - hour), route: `${model}@p`, provider: "p", ...more })
    const attempts = [{ provider: "q", route: "cheap@q", outcome: "timeout", cost_nano: 700 }]
    yield* sell("cheap", 1_000, { cost: 400, attempts })
    yield* sell("dear", 1_000, { cost: 400 })
    yield* sell("tried", 1_000, { cost: 2_000, route: "tried@sandbox", provider: "sandbox" })
    const said = ["sold_below_cost: cheap is sold below cost: 0.0000001 USD were lost within a day."]
    assert.deepStrictEqual(yield* told(at, "sold_below_cost", "cost_unknown"), said)
    assert.isEmpty(yield* told(at + 26 * hour, "sold_below_cost", "cost_unknown"))
  })

  it.effect("is a discount below the catalog's costs, with a link to its only organization", function* () {
    const { admin } = yield* asOperator("write")
    const name = randomUUID()
    const { id } = read(yield* admin("/organizations", { body: { name, discount_percent: 20.01 } }), 201)
    yield* admin("/organizations", { body: { name: randomUUID(), discount_percent: 20 } })
    yield* admin("/organizations", { body: { name: randomUUID(), discount_percent: -50 } })
    const { attention } = read(yield* admin("/now"))
    assert.deepStrictEqual(
      attention.filter(({ kind }: { kind: string }) => kind === "discount_below_cost"),
      [
        {
          kind: "discount_below_cost",
          title: `1 price is below cost at the discount of ${name}`,
          detail: "The discount is 20.01 %. Lower it, or raise the prices.",
          org: id,
          org_name: name,
          href: `#/organizations/${id}`
        }
      ]
    )
  })

  it.effect("are requests of which nobody knows the cost, those of the sandbox aside", function* () {
    const at = Date.UTC(2026, 4, 20, 12)
    for (const [route, charge] of [
      ["m@p", 5],
      ["m@p", 5],
      ["n@q", 5],
      ["free@q", 0],
      ["m@sandbox-b", 5]
    ] as const) {
      const [model, provider] = route.split("@")
      yield* logRequest({ model, route, provider, charge, cost: null, at: new Date(at - hour) })
    }
    assert.deepStrictEqual(yield* told(at, "sold_below_cost", "cost_unknown"), [
      "cost_unknown: 3 requests have no known cost: Within a day, on m@p, n@q. Set a cost for these routes in the catalog."
    ])
    assert.isEmpty(yield* told(at + 26 * hour, "cost_unknown"))
  })

  it.effect("are routes whose provider states other costs than the catalog, by both amounts", function* () {
    const at = Date.UTC(2026, 4, 25, 12)
    const log = (route: string, cost: number | null, stated_cost: number | null) => {
      const [model, provider] = route.split("@")
      return logRequest({ model, route, provider, charge: 9_000_000_000, cost, stated_cost, at: new Date(at - hour) })
    }
    yield* log("drifts@p", 1_000_000_000, 1_020_000_000)
    yield* log("drifts@p", 1_000_000_000, 1_020_000_000)
    yield* log("falls@p", 100_000_000, 80_000_000)
    // Within a percent, within a cent, and of which only one of both is known.
    yield* log("within@p", 5_000_000_000, 5_050_000_000)
    yield* log("small@p", 1_000_000, 11_000_000)
    yield* log("halves@p", 5_000_000_000, null)
    yield* log("halves@p", null, 3_000_000_000)
    yield* log("halves@p", 1_000_000_000, 1_000_000_000)
    assert.deepStrictEqual(yield* told(at, "cost_drift"), [
      "cost_drift: The cost of drifts@p differs from the catalog: In the last day the provider reported 2.04 USD. The cost by the catalog is 2 USD.",
      "cost_drift: The cost of falls@p differs from the catalog: In the last day the provider reported 0.08 USD. The cost by the catalog is 0.1 USD."
    ])
    assert.isEmpty(yield* told(at + 26 * hour, "cost_drift"))
  })

  it.effect("are webhooks that have failed for ten minutes, until they arrive", function* () {
    const sql = yield* SqlClient.SqlClient
    const { org } = yield* openAccount({})
    const write = (url: string, tries: number, at: string) => sql`
      INSERT INTO webhook_deliveries (event_id, org_id, url, type, data, created_at, tries, failure, next_at)
      VALUES (${`evt_${randomUUID()}`}, ${org}, ${url}, 'credits.low', '{}', ${at}, ${tries},
        ${tries === 0 ? null : "status 500"}, '2026-06-01T13:00:00Z')`
    yield* write("https://slow.test/", 5, "2026-06-01T11:40:00Z")
    yield* write("https://slow.test/", 4, "2026-06-01T11:48:00Z")
    yield* write("https://young.test/", 2, "2026-06-01T11:52:00Z")
    yield* write("https://waiting.test/", 0, "2026-06-01T10:00:00Z")
    const at = Date.UTC(2026, 5, 1, 12)
    const [only, ...others] = yield* told(at, "webhook_failing")
    assert.isEmpty(others)
    assert.match(only ?? "", /: 2 events retried for more than 10 minutes for https:\/\/slow\.test\/: status 500$/)
    yield* sql`UPDATE webhook_deliveries SET state = 'delivered', next_at = NULL WHERE org_id = ${org}`
    assert.isEmpty(yield* told(at, "webhook_failing"))
  })
})
