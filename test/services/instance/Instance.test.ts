import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Redacted } from "effect"
import { Database } from "../../../src/database/Database.ts"
import { Instance, Siblings } from "../../../src/services/instance/Instance.ts"
import { InFlight } from "../../../src/services/runtime/InFlight.ts"
import { doorTo } from "../../harness/database/DatabaseProxy.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { assert, describe, it } from "../../harness/It.ts"

const siblingsOf = (ids: ReadonlyArray<string>): Siblings["Type"] => ({
  register: () => Effect.void,
  ids: Effect.succeed(ids)
})

/** An instance of a process, over the database that this process uses. */
const start = (siblings: ReadonlyArray<string> = []) =>
  Layer.build(Layer.fresh(Layer.provide(Instance.layer, InFlight.layer))).pipe(
    Effect.map((built) => Context.get(built, Instance)),
    Effect.provideService(Siblings, siblingsOf(siblings))
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

  it.scopedLive("may have peers where the database does not tell", function* () {
    const { cut, freeze, url } = yield* doorTo(yield* Postgres.freshUrl)
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
