import { SqlClient } from "@effect/sql"
import { Duration, Effect, Layer, type Scope } from "effect"
import type { YieldWrap } from "effect/Utils"
import type { Fetcher } from "../../../src/services/media/Fetcher.ts"
import { Timings } from "../../../src/services/runtime/Timings.ts"
import * as WebhookDelivery from "../../../src/services/webhooks/WebhookDelivery.ts"
import { type Leased, makeDeliveryQueue, type Try } from "../../../src/services/webhooks/WebhookDelivery.ts"
import { fetcherFor } from "../../fetching/ForeignServer.ts"
import { eventually } from "../../harness/database/Money.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { complete } from "../../harness/gateway/ShortTimings.ts"
import { assert, describe, liveOver } from "../../harness/It.ts"
import * as Receiver from "./WebhookReceiver.ts"

type Needs = SqlClient.SqlClient | Fetcher | Scope.Scope

/** The runner ends before its database does. */
const test = (
  name: string,
  body: () => Generator<YieldWrap<Effect.Effect<unknown, unknown, Needs>>>,
  timeout?: number
) =>
  liveOver(Layer.merge(Postgres.layer, fetcherFor(["127.0.0.1"])))(name, () => Effect.scoped(Effect.gen(body)), timeout)
const timings = complete({ findDeliveriesEvery: Duration.millis(200) })
const delivered: Try = { status: 204, failure: undefined }

interface Customers {
  /** The beginning of their ids. */
  readonly name: string
  readonly many: number
  readonly endpoints: number
  /** For each endpoint. */
  readonly events: number
  readonly url?: string
}

/** Organizations `name1`, `name2`, ... with endpoints `name1-1`, ... and what waits for them. */
const addCustomers = Effect.fnUntraced(function* (given: Customers) {
  const { endpoints, events, many, name, url = "http://hooks.example" } = given
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    INSERT INTO organizations (id, name) SELECT ${name} || o, ${name} || o FROM generate_series(1, ${many}::integer) AS o`
  yield* sql`
    INSERT INTO webhook_endpoints (id, org_id, url, secret)
    SELECT ${name} || o || '-' || e, ${name} || o, ${url} || '/' || o || '/' || e, 'whsec_AAAA'
    FROM generate_series(1, ${many}::integer) AS o, generate_series(1, ${endpoints}::integer) AS e`
  yield* sql`
    INSERT INTO webhook_deliveries (event_id, org_id, endpoint_id, url, type, data)
    SELECT gen_random_uuid(), org_id, id, url, 'video.completed', '{}'
    FROM webhook_endpoints, generate_series(1, ${events}::integer) WHERE org_id LIKE ${`${name}%`}`
})

const slowOrganizations = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`SELECT DISTINCT org_id FROM webhook_slow_lanes`
)

/** A runner whose tries at `dead…` never end. */
const runWithDeadHosts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const hanging: Array<Leased> = []
  const answered: Array<string> = []
  const send = (leased: Leased) =>
    Effect.suspend(() => {
      if (leased.orgId.startsWith("dead")) {
        hanging.push(leased)
        return Effect.never
      }
      answered.push(leased.orgId)
      return Effect.succeed(delivered)
    })
  yield* Effect.provideService(WebhookDelivery.makeRunner(makeDeliveryQueue(sql), send), Timings, timings)
  const maxOf = (property: "destination" | "orgId") =>
    Math.max(...hanging.map((one) => hanging.filter((other) => other[property] === one[property]).length))
  return {
    answered: (org: string) =>
      eventually(
        Effect.sync(() => answered.includes(org)),
        (is) => is
      ),
    hanging: (many: number) =>
      eventually(
        Effect.sync(() => hanging.length),
        (length) => length >= many
      ),
    perOrganization: () => maxOf("orgId"),
    perDestination: () => maxOf("destination"),
    all: hanging
  }
})

describe.concurrent("webhooks of an organization", () => {
  test("do not wait for 12 organizations whose endpoints never answer, at first or later tries", function* () {
    const sql = yield* SqlClient.SqlClient
    const silent = yield* Receiver.make(() => undefined)
    const alive = yield* Receiver.make(Receiver.ok)
    yield* addCustomers({ name: "dead", many: 12, endpoints: 8, events: 30, url: silent.url })
    yield* addCustomers({ name: "alive", many: 1, endpoints: 1, events: 1, url: alive.url })
    yield* Effect.provideService(Layer.build(WebhookDelivery.layer), Timings, timings)
    yield* alive.received(1)
    assert.deepStrictEqual(yield* sql`SELECT id FROM webhook_deliveries WHERE org_id LIKE 'dead%' AND tries > 0`, [])
    yield* eventually(slowOrganizations, ({ length }) => length === 12, "90 seconds")
    // Retries come before new deliveries.
    yield* sql`UPDATE webhook_deliveries SET next_at = now() WHERE next_at IS NOT NULL AND lease IS NULL`
    const before = silent.all.length
    yield* addCustomers({ name: "later", many: 1, endpoints: 1, events: 5, url: alive.url })
    yield* alive.received(6)
    // All running tries may end now, and as many may follow.
    assert.isBelow(silent.all.length - before, 128)
  }, 180_000)

  test("do not wait for slow endpoints, however many organizations have them", function* () {
    const sql = yield* SqlClient.SqlClient
    yield* addCustomers({ name: "dead", many: 300, endpoints: 3, events: 5 })
    yield* sql`INSERT INTO webhook_slow_lanes (lane, org_id) SELECT id, org_id FROM webhook_endpoints`
    const { all, answered, hanging, perDestination, perOrganization } = yield* runWithDeadHosts
    // The last slots are for organizations without a running delivery.
    yield* hanging(32)
    yield* addCustomers({ name: "alive", many: 3, endpoints: 2, events: 30 })
    for (const org of ["alive1", "alive2", "alive3"]) yield* answered(org)
    yield* eventually(
      sql`SELECT id FROM webhook_deliveries WHERE org_id LIKE 'alive%' AND state <> 'delivered'`,
      ({ length }) => length === 0
    )
    assert.deepStrictEqual([all.length, perDestination(), perOrganization()], [32, 1, 1])
  })

  test("get a slot although others fill all shared slots with new hosts", function* () {
    const { all, answered, hanging, perDestination, perOrganization } = yield* runWithDeadHosts
    yield* addCustomers({ name: "dead", many: 3, endpoints: 20, events: 100 })
    yield* hanging(48)
    assert.deepStrictEqual([all.length, perOrganization(), perDestination() <= 4], [48, 16, true])
    yield* addCustomers({ name: "alive", many: 1, endpoints: 1, events: 1 })
    yield* answered("alive1")
    yield* addCustomers({ name: "dead-more", many: 10, endpoints: 20, events: 10 })
    yield* hanging(64)
    yield* addCustomers({ name: "alive-later", many: 20, endpoints: 1, events: 5 })
    for (const n of [1, 7, 20]) yield* answered(`alive-later${n}`)
    assert.isBelow(all.length, 96)
    assert.isAtMost(perOrganization(), 16)
  })

  test("have four slots beside its slow endpoints, which have two", function* () {
    const sql = yield* SqlClient.SqlClient
    yield* addCustomers({ name: "dead", many: 1, endpoints: 20, events: 10 })
    yield* sql`INSERT INTO webhook_slow_lanes (lane, org_id) SELECT id, org_id FROM webhook_endpoints LIMIT 10`
    const { all, answered, hanging } = yield* runWithDeadHosts
    yield* hanging(6)
    yield* addCustomers({ name: "alive", many: 1, endpoints: 1, events: 1 })
    yield* answered("alive1")
    assert.lengthOf(all, 6)
  })
})
