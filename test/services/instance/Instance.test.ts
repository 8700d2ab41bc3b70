import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Context, Duration, Effect, Layer, Redacted } from "effect"
import { Database } from "../../../src/database/Database.ts"
import { Instance, Siblings } from "../../../src/services/instance/Instance.ts"
import { InFlight } from "../../../src/services/runtime/InFlight.ts"
import { Timings } from "../../../src/services/runtime/Timings.ts"
import { proxyTo } from "../../harness/database/DatabaseProxy.ts"
import { eventually } from "../../harness/database/Money.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { complete, type ShortTimings } from "../../harness/gateway/ShortTimings.ts"
import { assert, describe, it } from "../../harness/It.ts"

const siblingsOf = (ids: ReadonlyArray<string>): Siblings["Type"] => ({
  register: () => Effect.void,
  ids: Effect.succeed(ids)
})

/** An instance of a process, over the database that this process uses. */
const start = (siblings: ReadonlyArray<string> = [], timings: ShortTimings = {}) =>
  Layer.build(Layer.fresh(Layer.provide(Instance.layer, InFlight.layer))).pipe(
    Effect.map((built) => Context.get(built, Instance)),
    Effect.provideService(Siblings, siblingsOf(siblings)),
    Effect.provideService(Timings, complete(timings))
  )

describe("an instance", () => {
  it.scopedLive("has peers where another lives that stops by itself", function* () {
    yield* Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { hasPeers, id } = yield* start()
      assert.isFalse(yield* hasPeers)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const sibling = yield* start([yield* id])
          assert.isFalse(yield* sibling.hasPeers)
          assert.isTrue(yield* hasPeers)
          yield* sql`UPDATE instances SET beat_at = now() - interval '1 minute' WHERE id = ${yield* sibling.id}`
          assert.isFalse(yield* hasPeers)
        })
      )
    }).pipe(Effect.provide(Postgres.layer))
  })

  it.scopedLive("has peers that are silent for less than its timings say", function* () {
    yield* Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { hasPeers } = yield* start()
      const patient = yield* start([], { silentAfter: Duration.minutes(5) })
      const silent = randomUUID()
      yield* sql`UPDATE instances SET stopped_at = now()`
      yield* sql`INSERT INTO instances (id, beat_at) VALUES (${silent}, now() - interval '1 minute')`
      assert.deepStrictEqual([yield* patient.hasPeers, yield* hasPeers], [true, false])
    }).pipe(Effect.provide(Postgres.layer))
  })

  it.scopedLive("reports overdue heartbeats while the database finishes no writes", function* () {
    yield* Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { isBeating } = yield* start([], { heartbeatEvery: Duration.millis(200) })
      const isNow = (expected: boolean) =>
        eventually(
          Effect.sync(() => isBeating() === expected),
          (is) => is
        )
      assert.isTrue(isBeating())
      yield* Effect.zipRight(sql`LOCK TABLE instances`, isNow(false)).pipe(sql.withTransaction)
      yield* isNow(true)
    }).pipe(Effect.provide(Postgres.layer))
  })

  it.scopedLive("may have peers where the database does not tell", function* () {
    const { cut, freeze, url } = yield* proxyTo(yield* Postgres.freshUrl)
    yield* Effect.gen(function* () {
      const { hasPeers } = yield* start()
      assert.isFalse(yield* hasPeers)
      yield* freeze
      assert.isTrue(yield* hasPeers)
      yield* cut
      assert.isTrue(yield* hasPeers)
    }).pipe(Effect.scoped, Effect.provide(Database.layerUrl(Redacted.make(url))))
  })
})
