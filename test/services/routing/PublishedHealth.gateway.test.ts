import { SqlClient } from "@effect/sql"
import { Duration, Effect, Layer, Ref, Struct } from "effect"
import type { RouteReport } from "../../../src/services/routing/CircuitRegistry.ts"
import { ProviderRouter } from "../../../src/services/routing/ProviderRouter.ts"
import { PublishedHealth } from "../../../src/services/routing/PublishedHealth.ts"
import { Timings } from "../../../src/services/runtime/Timings.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { complete } from "../../harness/gateway/ShortTimings.ts"
import { assert, withLayer } from "../../harness/It.ts"

const healthy = (route: string, more: Partial<RouteReport> = {}): RouteReport => ({
  route,
  provider: "acme",
  model: "m",
  circuit: "closed",
  openUntil: undefined,
  openForOrganizations: 0,
  lastError: undefined,
  lastErrorAt: undefined,
  latencyMs: undefined,
  requests: 1,
  failures: 0,
  ...more
})

const register = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ readonly id: string }>`
    INSERT INTO instances (id) VALUES (gen_random_uuid()) RETURNING id`
  return row?.id ?? ""
})

/** An instance that publishes whatever the ref says, for as long as the scope lasts. */
const instance = Effect.fnUntraced(function* (health: Ref.Ref<ReadonlyArray<RouteReport>>) {
  const id = yield* register
  const router = Layer.mock(ProviderRouter, { health: Ref.get(health) })
  yield* Layer.build(Layer.provide(PublishedHealth.publisher(Effect.succeed(id)), router)).pipe(
    Effect.provideService(Timings, complete({ publishHealthEvery: Duration.millis(200) }))
  )
  return id
})

const list = Effect.flatMap(PublishedHealth, (board) => board.list)

const until = <A, E, R>(look: Effect.Effect<ReadonlyArray<A>, E, R>, done: (rows: ReadonlyArray<A>) => boolean) =>
  Effect.repeat(Effect.delay(look, "50 millis"), { until: done }).pipe(Effect.timeout("20 seconds"))

withLayer(Layer.provideMerge(PublishedHealth.layer, Postgres.layer))(
  "the health of a running instance's routes",
  (it) => {
    it.scoped("is listed until it stops", function* () {
      const known = healthy("m@acme", {
        circuit: "open",
        openUntil: 1_700_000_001_500,
        lastError: "retry 503: \u0000\ud83d broken",
        lastErrorAt: 1_700_000_000_250,
        latencyMs: 12.5,
        requests: 9,
        failures: 5
      })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const id = yield* instance(yield* Ref.make<ReadonlyArray<RouteReport>>([known, healthy("m@other")]))
          const [first, second] = yield* until(list, (rows) => rows.length === 2)
          assert.strictEqual(second?.route, "m@other")
          assert.isNull(second?.lastError)
          assert.isNull(second?.openUntil)
          assert.deepInclude(first, {
            ...known,
            instanceId: id,
            openUntil: new Date(1_700_000_001_500),
            lastError: "retry 503: ?? broken",
            lastErrorAt: new Date(1_700_000_000_250),
            latencyMs: 12.5
          })
        })
      )
      assert.deepStrictEqual(yield* list, [])
    })

    it.scoped("is written only if it has changed", function* () {
      const health = yield* Ref.make<ReadonlyArray<RouteReport>>([healthy("m@a"), healthy("m@b")])
      yield* instance(health)
      const before = yield* until(list, (rows) => rows.length === 2)
      yield* Ref.set(health, [healthy("m@a", { requests: 2 }), healthy("m@b")])
      const after = yield* until(list, (rows) => rows[0]?.requests === 2)
      assert.notDeepEqual(after[0]?.publishedAt, before[0]?.publishedAt)
      assert.deepStrictEqual(after[1]?.publishedAt, before[1]?.publishedAt)
    })

    it.scoped("is removed for routes that a reload has removed", function* () {
      const health = yield* Ref.make<ReadonlyArray<RouteReport>>([healthy("m@a"), healthy("m@b")])
      yield* instance(health)
      yield* until(list, (rows) => rows.length === 2)
      yield* Ref.set(health, [healthy("m@b")])
      yield* until(list, (rows) => rows.length === 1 && rows[0]?.route === "m@b")
      yield* Ref.set(health, [healthy("m@a"), healthy("m@b")])
      yield* until(list, (rows) => rows.length === 2)
    })

    it.scoped("is listed with that of the other live instances", function* () {
      const sql = yield* SqlClient.SqlClient
      const health = yield* Ref.make<ReadonlyArray<RouteReport>>([healthy("m@a")])
      const ids = [yield* instance(health), yield* instance(health)]
      const both = yield* until(list, (rows) => rows.length === 2)
      assert.sameMembers(both.map(Struct.get("instanceId")), ids)
      yield* sql`UPDATE instances SET beat_at = now() - interval '1 minute' WHERE id = ${ids[0] ?? ""}`
      const left = yield* list
      assert.deepStrictEqual(left.map(Struct.get("instanceId")), ids.slice(1))
    })

    it.scoped("replaces that of dead instances", function* () {
      const sql = yield* SqlClient.SqlClient
      const dead = yield* register
      yield* sql`
              INSERT INTO route_health (instance_id, route, provider, model, circuit, requests, failures, published_at)
              VALUES (${dead}, 'm@a', 'acme', 'm', 'closed', 1, 0, now())`
      yield* sql`UPDATE instances SET stopped_at = now() WHERE id = ${dead}`
      yield* instance(yield* Ref.make<ReadonlyArray<RouteReport>>([]))
      assert.deepStrictEqual(yield* sql`SELECT * FROM route_health WHERE instance_id = ${dead}`, [])
    })

    it.scoped("is written again after the table was unreachable", function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`ALTER TABLE route_health RENAME TO hidden`
      yield* instance(yield* Ref.make<ReadonlyArray<RouteReport>>([healthy("m@a")]))
      yield* Effect.sleep("300 millis")
      yield* sql`ALTER TABLE hidden RENAME TO route_health`
      yield* until(list, (rows) => rows.length === 1)
    })
  }
)
