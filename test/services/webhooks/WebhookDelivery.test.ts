import type { ServerResponse } from "node:http"
import { SqlClient } from "@effect/sql"
import { Context, Duration, Effect, Exit, Layer, Redacted, Scope, Struct } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { Timings } from "../../../src/services/runtime/Timings.ts"
import * as WebhookDelivery from "../../../src/services/webhooks/WebhookDelivery.ts"
import { webhookSecretOf, writeNotice } from "../../../src/services/webhooks/WebhookEvents.ts"
import { type DeliveryQuery, Webhooks } from "../../../src/services/webhooks/Webhooks.ts"
import { fetcherFor } from "../../fetching/ForeignServer.ts"
import { eventually, times } from "../../harness/database/Money.ts"
import { account, ledgers } from "../../harness/database/MoneyProcess.ts"
import { complete } from "../../harness/gateway/ShortTimings.ts"
import { assert, withLayer } from "../../harness/It.ts"
import * as Receiver from "./WebhookReceiver.ts"

const fetcher = fetcherFor(["127.0.0.1"])
const layer = Webhooks.layer.pipe(Layer.provideMerge(fetcher), Layer.provideMerge(ledgers))

/** An organization, what it is sent, and what became of that. */
const customer = Effect.gen(function* () {
  const { org } = yield* account(0n)
  const sql = yield* SqlClient.SqlClient
  const webhooks = yield* Webhooks
  const deliveries = (query: Partial<DeliveryQuery> = {}) =>
    webhooks.deliveries(OrganizationScope.all, { org, limit: 100, ...query })
  return {
    org,
    sql,
    webhooks,
    deliveries,
    write: (data: object, url?: string) => writeNotice(sql, { org, type: "video.completed", url, data }),
    over: eventually(deliveries(), (all) => all.every(({ state }) => state !== "pending")),
    /** Nobody rests any longer. */
    hurry: sql`UPDATE webhook_deliveries SET next_at = now() WHERE org_id = ${org} AND next_at IS NOT NULL AND lease IS NULL`
  }
})

const running = Layer.build(WebhookDelivery.layer).pipe(
  Effect.provideService(Timings, complete({ findDeliveriesEvery: Duration.millis(200) }))
)

withLayer(layer)("webhooks", (it) => {
  it.scoped("are signed for each endpoint with its secret, and have the same id", function* () {
    const { org, over, webhooks, write } = yield* customer
    const receiver = yield* Receiver.make(Receiver.ok)
    const first = yield* webhooks.add({ org, url: `${receiver.url}/first` })
    const second = yield* webhooks.add({ org, url: `${receiver.url}/second?a=b` })
    yield* write({ id: "vid_1", text: "größer" })
    yield* running
    const received = yield* receiver.received(2)
    const states = yield* over
    for (const [path, { secret }] of [
      ["/first", first],
      ["/second?a=b", second]
    ] as const) {
      const one = received.find((each) => each.path === path) ?? assert.fail(`nothing at ${path}`)
      const payload = Receiver.verified(Redacted.value(secret), one)
      assert.deepInclude(payload, { type: "video.completed", data: { id: "vid_1", text: "größer" } })
      assert.match(one.body, /^\{"type":"video\.completed","timestamp":"\d{4}-\d\d-\d\dT[\d:.]+Z","data":\{/)
      assert.strictEqual(one.headers["content-type"], "application/json")
      assert.throws(() => Receiver.verified("whsec_AAAA", one))
      assert.throws(() => Receiver.verified(Redacted.value(secret), { ...one, body: `${one.body} ` }))
    }
    assert.strictEqual(new Set(received.map(Receiver.idOf)).size, 1)
    assert.match(states[0]?.id ?? "", /^evt_[0-9a-f]{32}$/)
    assert.deepStrictEqual(
      states.map(({ status, tries }) => [status, tries]),
      [
        [204, 1],
        [204, 1]
      ]
    )
  })

  it.scoped(
    "for the URL of a request are signed with the organization's secret, and sent once where an endpoint has it",
    function* () {
      const { org, over, sql, webhooks, write } = yield* customer
      const receiver = yield* Receiver.make(Receiver.ok)
      const [{ secret } = { secret: "" }] = yield* webhookSecretOf(sql, org)
      assert.strictEqual(Redacted.value(yield* webhooks.secret(org, { reissue: false })), secret)
      yield* write({}, `${receiver.url}/request`)
      const { endpoint } = yield* webhooks.add({ org, url: `${receiver.url}/both` })
      yield* write({}, endpoint.url)
      yield* running
      yield* over
      const [one, ...others] = receiver.all.toSorted((a, b) => b.path.localeCompare(a.path))
      assert.deepStrictEqual([one?.path, others.map(({ path }) => path)], ["/request", ["/both"]])
      assert.deepInclude(Receiver.verified(secret, one ?? assert.fail()), { data: {} })
      const reissued = Redacted.value(yield* webhooks.secret(org, { reissue: true }))
      assert.notStrictEqual(reissued, secret)
      assert.throws(() => Receiver.verified(reissued, one ?? assert.fail()))
    }
  )

  it.scoped("are repeated under the same id until they are received, and the endpoint shows what failed", function* () {
    const { deliveries, hurry, org, over, webhooks, write } = yield* customer
    let answers = 0
    const receiver = yield* Receiver.make((response) => response.writeHead(++answers < 3 ? 500 : 200).end("thanks"))
    const { secret } = yield* webhooks.add({ org, url: receiver.url })
    yield* write({ n: 1 })
    yield* running
    yield* eventually(Effect.zipRight(hurry, deliveries()), ([one]) => one?.state === "delivered")
    assert.deepStrictEqual(
      receiver.all.map((one) => [Receiver.idOf(one), Receiver.verified(Redacted.value(secret), one)]),
      receiver.all.map(() => [Receiver.idOf(receiver.all[0] ?? assert.fail()), JSON.parse(receiver.all[0]?.body ?? "")])
    )
    const [done] = yield* over
    assert.deepInclude(done, { state: "delivered", tries: 3, status: 200, failure: null, next_at: null })
    const [endpoint] = yield* webhooks.list(org)
    assert.deepInclude(endpoint, { failure: "status 500", pending: 0, disabled_at: null })
  })

  it.scoped("are given up after eight tries, and sent again when they are replayed", function* () {
    const { deliveries, hurry, org, webhooks, write } = yield* customer
    let isUp = false
    const receiver = yield* Receiver.make((response) => response.writeHead(isUp ? 200 : 503).end())
    yield* webhooks.add({ org, url: receiver.url })
    yield* write({})
    yield* running
    const [failed] = yield* eventually(
      Effect.zipRight(hurry, deliveries({ state: "failed" })),
      ({ length }) => length > 0
    )
    assert.deepInclude(failed, { state: "failed", tries: 8, status: 503, failure: "status 503", next_at: null })
    assert.lengthOf(receiver.all, 8)
    isUp = true
    const replayed = yield* webhooks.replay(OrganizationScope.all, failed?.id ?? "")
    assert.deepStrictEqual(
      replayed.map(({ state, tries }) => [state, tries]),
      [["pending", 0]]
    )
    yield* eventually(deliveries(), ([one]) => one?.state === "delivered")
    assert.strictEqual(new Set(receiver.all.map(Receiver.idOf)).size, 1)
    assert.strictEqual((yield* Effect.flip(webhooks.replay(OrganizationScope.all, "evt_none")))._tag, "EventNotFound")
  })

  it.scoped("disable an endpoint that answers 410, with all that waits for it, until it is enabled", function* () {
    const { deliveries, org, over, sql, webhooks, write } = yield* customer
    let isGone = true
    const receiver = yield* Receiver.make((response) => response.writeHead(isGone ? 410 : 200).end())
    const { endpoint } = yield* webhooks.add({ org, url: receiver.url })
    yield* Effect.forEach(times(9), (n) => write({ n }))
    yield* running
    const all = yield* over
    assert.isTrue(all.every(({ state }) => state === "failed"))
    assert.isBelow(receiver.all.length, 9)
    const [disabled] = yield* webhooks.list(org)
    assert.deepInclude(disabled, { failure: "status 410", pending: 0 })
    assert.isNotNull(disabled?.disabled_at)
    yield* write({ n: 9 })
    assert.lengthOf(yield* deliveries(), 9)
    const [first] = all
    assert.strictEqual(
      (yield* Effect.flip(webhooks.replay(OrganizationScope.all, first?.id ?? "")))._tag,
      "EventNotFound"
    )
    isGone = false
    assert.deepInclude(yield* webhooks.enable(OrganizationScope.all, endpoint.id), { disabled_at: null })
    yield* write({ n: 10 })
    yield* eventually(deliveries(), ([newest]) => newest?.state === "delivered")
    yield* webhooks.remove(OrganizationScope.all, endpoint.id)
    assert.deepStrictEqual([yield* deliveries(), yield* webhooks.list(org)], [[], []])
    assert.strictEqual(
      (yield* Effect.flip(webhooks.remove(OrganizationScope.all, endpoint.id)))._tag,
      "EndpointNotFound"
    )
    assert.deepStrictEqual(yield* sql`SELECT id FROM webhook_endpoints WHERE id = ${endpoint.id}`, [])
  })

  it.scoped("do not disable an endpoint by a 410 that was on its way when it was enabled", function* () {
    const { deliveries, org, webhooks, write } = yield* customer
    const asked: Array<ServerResponse> = []
    const receiver = yield* Receiver.make((response) => void asked.push(response))
    const answer = (status: number) => asked.shift()?.writeHead(status).end()
    const { endpoint } = yield* webhooks.add({ org, url: receiver.url })
    yield* Effect.forEach(times(2), (n) => write({ n }))
    yield* running
    yield* eventually(
      Effect.sync(() => asked.length),
      (many) => many === 2
    )
    answer(410)
    yield* eventually(webhooks.list(org), ([one]) => one?.disabled_at !== null)
    yield* webhooks.enable(OrganizationScope.all, endpoint.id)
    answer(410)
    yield* write({ n: 3 })
    yield* eventually(
      Effect.sync(() => asked.length),
      (many) => many === 1
    )
    yield* Effect.sleep("300 millis")
    answer(200)
    yield* eventually(deliveries(), ([newest]) => newest?.state === "delivered")
    assert.deepInclude((yield* webhooks.list(org))[0], { disabled_at: null })
  })

  it.scoped("that were written for an endpoint while it was removed are dropped, and nothing waits", function* () {
    const { deliveries, org, sql, webhooks, write } = yield* customer
    const receiver = yield* Receiver.make(Receiver.ok)
    yield* webhookSecretOf(sql, org)
    const { endpoint: removed } = yield* webhooks.add({ org, url: `${receiver.url}/removed` })
    yield* write({})
    yield* sql`DELETE FROM webhook_endpoints WHERE id = ${removed.id}`
    yield* webhooks.add({ org, url: `${receiver.url}/kept` })
    yield* write({})
    yield* running
    yield* eventually(deliveries(), (all) => all.length === 1 && all[0]?.state === "delivered")
    assert.deepStrictEqual(receiver.all.map(Struct.get("path")), ["/kept"])
  })

  it.scoped("of other endpoints do not wait for one that never answers", function* () {
    const { deliveries, org, webhooks, write } = yield* customer
    const silent = yield* Receiver.make(() => undefined)
    const { endpoint: dead } = yield* webhooks.add({ org, url: silent.url })
    yield* Effect.forEach(times(100), (n) => write({ n }))
    const alive = yield* Receiver.make(Receiver.ok)
    const { endpoint: living } = yield* webhooks.add({ org, url: alive.url })
    yield* Effect.forEach(times(20), (n) => write({ n }))
    yield* running
    yield* alive.received(20)
    yield* eventually(deliveries(), (all) =>
      all.every(({ endpoint, state }) => endpoint !== living.id || state === "delivered")
    )
    assert.lengthOf(silent.all, 4)
    yield* webhooks.remove(OrganizationScope.all, dead.id)
  })

  it.scoped("of other organizations do not wait for one whose endpoints never answer, however many", function* () {
    const dead = yield* customer
    const silent = yield* Receiver.make(() => undefined)
    yield* Effect.forEach(times(20), (n) => dead.webhooks.add({ org: dead.org, url: `${silent.url}/${n}` }))
    yield* Effect.forEach(times(5), (n) => dead.write({ n }))
    const other = yield* customer
    const alive = yield* Receiver.make(Receiver.ok)
    yield* other.webhooks.add({ org: other.org, url: alive.url })
    yield* other.write({})
    yield* running
    yield* alive.received(1)
    assert.isBelow(silent.all.length, 32)
    yield* dead.sql`DELETE FROM webhook_deliveries WHERE org_id = ${dead.org}`
  })

  it.scoped("are sent once by any number of instances, and by another when one stops while it sends", function* () {
    const { org, over, webhooks, write } = yield* customer
    let isSlow = true
    const receiver = yield* Receiver.make((response) => (isSlow ? undefined : Receiver.ok(response)))
    yield* webhooks.add({ org, url: receiver.url })
    yield* write({ n: 0 })
    const first = yield* Scope.make()
    yield* Scope.extend(running, first)
    yield* receiver.received(1)
    isSlow = false
    yield* Scope.close(first, Exit.void)
    yield* Effect.replicateEffect(running, 3)
    yield* over
    assert.lengthOf(receiver.all, 2)
    yield* Effect.forEach(times(60), (n) => write({ n }), { concurrency: 4 })
    yield* over
    assert.lengthOf(new Set(receiver.all.map(Receiver.idOf)), 61)
    assert.lengthOf(receiver.all, 62)
  })

  it.scoped("are refused at addresses inside, when an endpoint is added and when it is sent to", function* () {
    const { deliveries, org, sql, webhooks, write } = yield* customer
    const strict = fetcherFor([], { names: () => Effect.succeed(["127.0.0.1"]) })
    const outside = yield* Layer.build(Layer.provide(Webhooks.layer, strict))
    const { add } = Context.get(outside, Webhooks)
    for (const url of ["http://127.0.0.1/", "http://localhost/", "ftp://a.example/", "https://a.example:8443/", "x"]) {
      const { message } = yield* Effect.flip(add({ org, url }))
      assert.match(message, /^The URL is refused: /, url)
    }
    assert.deepStrictEqual(yield* webhooks.list(org), [])
    const receiver = yield* Receiver.make(Receiver.ok)
    const { endpoint } = yield* add({ org, url: "https://rebound.example/hook" })
    yield* write({})
    yield* sql`INSERT INTO webhook_secrets (org_id, secret) VALUES (${org}, 'whsec_AAAA')`
    yield* write({}, receiver.url)
    yield* Layer.build(Layer.provide(WebhookDelivery.layer, strict))
    const tried = yield* eventually(deliveries(), (all) => all.length === 3 && all.every(({ tries }) => tries === 1))
    for (const { failure } of tried) assert.match(failure ?? "", /^refused: .*(is loopback|no public address)/)
    assert.lengthOf(receiver.all, 0)
    yield* webhooks.remove(OrganizationScope.all, endpoint.id)
  })

  it.scoped("are removed once they are old and over", function* () {
    const { deliveries, org, sql, webhooks, write } = yield* customer
    const { endpoint } = yield* webhooks.add({ org, url: "http://127.0.0.1:9/" })
    yield* Effect.forEach(times(3), (n) => write({ n }))
    const [newest, middle, oldest] = yield* deliveries()
    const age = (event: string | undefined, state: string) =>
      sql`UPDATE webhook_deliveries SET created_at = now() - interval '3 days', state = ${state},
          next_at = CASE WHEN ${state} = 'pending' THEN now() + interval '1 day' END WHERE event_id = ${event ?? ""}`
    yield* age(oldest?.id, "failed")
    yield* age(middle?.id, "pending")
    assert.strictEqual(yield* webhooks.prune(Duration.days(2)), 1)
    assert.deepStrictEqual((yield* deliveries()).map(Struct.get("id")), [newest?.id, middle?.id])
    yield* webhooks.remove(OrganizationScope.all, endpoint.id)
  })
})
