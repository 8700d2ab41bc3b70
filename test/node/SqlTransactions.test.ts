import { SqlError } from "@effect/sql/SqlError"
import { PgClient } from "@effect/sql-pg"
import { Cause, Context, Effect, Layer } from "effect"
import * as Pg from "pg"
import { failLostTransactions } from "../../src/node/Postgres.ts"
import * as Postgres from "../harness/database/Postgres.ts"
import { assert, describe, it } from "../harness/It.ts"

/** Why a transaction fails that loses its connection before its COMMIT. */
const causeOf = (prepare: (client: PgClient.PgClient) => void) =>
  Effect.gen(function* () {
    const url = yield* Postgres.emptyUrl
    const pool = yield* Effect.acquireRelease(
      Effect.sync(() => new Pg.Pool({ connectionString: url }).on("error", () => {})),
      (made) => Effect.promise(() => made.end())
    )
    const client = Context.get(
      yield* Layer.build(PgClient.layerFromPool({ acquire: Effect.succeed(pool) })),
      PgClient.PgClient
    )
    prepare(client)
    const lose = Effect.ignore(client`SELECT pg_terminate_backend(pg_backend_pid())`)
    return yield* Effect.flip(Effect.sandbox(client.withTransaction(lose)))
  })

describe("a transaction that is lost before its COMMIT", () => {
  it.scopedLive("is a defect to the library itself", function* () {
    const cause = yield* causeOf(() => {})
    assert.isTrue(Cause.isDieType(cause) && cause.defect instanceof SqlError)
  })

  it.scopedLive("is a failure", function* () {
    const cause = yield* causeOf(failLostTransactions)
    assert.isTrue(Cause.isFailType(cause) && cause.error instanceof SqlError)
  })
})
