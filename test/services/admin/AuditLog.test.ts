import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Deferred, Effect, Either, Fiber, Layer, Schema } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { CurrentActor } from "../../../src/services/admin/Actor.ts"
import { Audit } from "../../../src/services/admin/AuditLog.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { assert, withLayer } from "../../harness/It.ts"

/** The audit log of another instance, over the same database. Each of its transactions calls `onCommit` at its end. */
const otherInstance = (onCommit: Effect.Effect<void>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const withTransaction: typeof sql.withTransaction = (self) => Effect.zipLeft(sql.withTransaction(self), onCommit)
    const slow = new Proxy(sql, {
      get: (target, name) => (name === "withTransaction" ? withTransaction : Reflect.get(target, name))
    })
    return yield* Effect.provide(
      Audit,
      Layer.provide(Layer.fresh(Audit.layer), Layer.succeed(SqlClient.SqlClient, slow))
    )
  })

const actor = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const operator = `opr_${randomUUID()}`
  yield* sql`INSERT INTO operators (id, name, role, token_hash)
    VALUES (${operator}, ${operator}, 'write', sha256(convert_to(${operator}, 'UTF8')))`
  return CurrentActor.of({
    name: operator,
    via: "api",
    role: "write",
    operator,
    scope: OrganizationScope.all,
    idempotencyKey: randomUUID()
  })
})

const recordingOf = <E>(run: Effect.Effect<string, E>) => ({
  action: "models.test",
  target: "talk",
  input: { model: "talk" },
  record: Schema.Struct({ by: Schema.String }),
  run,
  recordOf: (by: string) => ({ by })
})

withLayer(Layer.provideMerge(Audit.layer, Postgres.layer))(
  "recordings with one idempotency key on two instances",
  (it) => {
    it.scoped("the second runs if the first fails between its conflict and its replay", function* () {
      const [hasBegun, hasMet, hasFailed] = [
        yield* Deferred.make<void>(),
        yield* Deferred.make<void>(),
        yield* Deferred.make<void>()
      ]
      const first = yield* Audit
      const second = yield* otherInstance(
        Effect.zipRight(Deferred.succeed(hasMet, undefined), Deferred.await(hasFailed))
      )
      const fail = Deferred.succeed(hasBegun, undefined).pipe(
        Effect.zipRight(Deferred.await(hasMet)),
        Effect.zipRight(Effect.fail("2 tests are running"))
      )
      const asActor = Effect.provideService(CurrentActor, yield* actor)
      const failing = yield* Effect.fork(Effect.either(asActor(first.record(recordingOf(fail)))))
      yield* Deferred.await(hasBegun)
      const repeated = yield* Effect.fork(Effect.either(asActor(second.record(recordingOf(Effect.succeed("second"))))))
      assert.deepStrictEqual(yield* Fiber.join(failing), Either.left("2 tests are running"))
      yield* Deferred.succeed(hasFailed, undefined)
      assert.deepStrictEqual(yield* Fiber.join(repeated), Either.right({ record: { by: "second" }, value: "second" }))
    })

    it.scoped("the second conflicts while the first runs, and replays its result after that", function* () {
      const [hasBegun, mayEnd] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const first = yield* Audit
      const second = yield* otherInstance(Effect.void)
      const run = Deferred.succeed(hasBegun, undefined).pipe(
        Effect.zipRight(Deferred.await(mayEnd)),
        Effect.as("first")
      )
      const asActor = Effect.provideService(CurrentActor, yield* actor)
      const running = yield* Effect.fork(asActor(first.record(recordingOf(run))))
      yield* Deferred.await(hasBegun)
      const repeat = asActor(second.record(recordingOf(Effect.dieMessage("it runs twice"))))
      assert.strictEqual((yield* Effect.flip(repeat))._tag, "RecordingUnfinished")
      yield* Deferred.succeed(mayEnd, undefined)
      assert.deepStrictEqual((yield* Fiber.join(running)).record, { by: "first" })
      assert.deepStrictEqual(yield* repeat, { record: { by: "first" }, value: undefined })
    })
  }
)
