import { SqlClient } from "@effect/sql"
import { assert, layer as withLayer } from "@effect/vitest"
import { Deferred, Duration, Effect, Exit, Fiber, Layer } from "effect"
import { Idempotency } from "../../../src/services/idempotency/Idempotency.ts"
import * as Statements from "../../../src/services/idempotency/Statements.ts"
import { Ids } from "../../../src/services/runtime/Ids.ts"
import { Instance } from "../../../src/services/runtime/Instance.ts"
import { idempotencyContract } from "../../contracts/Idempotency.ts"
import { IdempotencyBench } from "../../contracts/IdempotencyBench.ts"
import { first, outcome, request, result } from "../../contracts/IdempotencyClaims.ts"
import { idempotencyRaces } from "../../contracts/IdempotencyRaces.ts"
import * as IdempotencyFake from "../../fakes/IdempotencyFake.ts"
import * as Bench from "../../harness/database/IdempotencyBench.ts"
import { waitingForLock } from "../../harness/database/Money.ts"
import * as Postgres from "../../harness/database/Postgres.ts"

const real = Bench.layer.pipe(Layer.provideMerge(Bench.observedProcess), Layer.provideMerge(Postgres.layer))

idempotencyContract("in memory", IdempotencyFake.layer)
idempotencyContract("PostgreSQL", real)
idempotencyRaces("in memory", IdempotencyFake.layer)
idempotencyRaces("PostgreSQL", real)

withLayer(real, { excludeTestServices: true, timeout: "60 seconds" })("keys in PostgreSQL", (it) => {
  const arranged = Effect.gen(function* () {
    const bench = yield* IdempotencyBench
    const org = yield* bench.organization
    const claim = { ...request(org), id: (yield* Ids).uuid(), instance: yield* (yield* Instance).id }
    return { bench, claim, idempotency: yield* Idempotency, org, sql: yield* SqlClient.SqlClient }
  })

  it.effect("a statement that arrives after it was given up takes no key", () =>
    Effect.gen(function* () {
      const { claim, idempotency, org, sql } = yield* arranged
      yield* Statements.tombstone(sql, claim)
      assert.isTrue(Exit.isFailure(yield* Effect.exit(Statements.claim(sql, claim))))
      assert.strictEqual(yield* outcome(idempotency, request(org)), "First")
    })
  )

  it.effect("nor does one that had arrived before", () =>
    Effect.gen(function* () {
      const { claim, idempotency, org, sql } = yield* arranged
      yield* Statements.claim(sql, claim)
      yield* Statements.claim(sql, claim)
      assert.strictEqual(yield* outcome(idempotency, request(org)), "IdempotencyConflict")
      yield* Statements.tombstone(sql, claim)
      yield* Statements.tombstone(sql, claim)
      assert.strictEqual(yield* outcome(idempotency, request(org)), "First")
      assert.isTrue(Exit.isFailure(yield* Effect.exit(Statements.claim(sql, claim))))
    })
  )

  it.effect("giving up a claim leaves what was made of it", () =>
    Effect.gen(function* () {
      const { bench, claim, idempotency, org, sql } = yield* arranged
      const hold = yield* bench.payment(org)
      for (const state of ["bound", "done"] as const) {
        const each = { ...claim, id: (yield* Ids).uuid(), key: state }
        yield* Statements.claim(sql, each)
        yield* Statements.give(sql, each.id, state, { result, hold })
        yield* Statements.tombstone(sql, each)
        yield* Statements.claim(sql, each)
        const again = yield* Effect.scoped(idempotency.claim({ ...request(org), key: state }))
        assert.deepStrictEqual(again, { _tag: "Replay", result })
      }
    })
  )

  it.effect("a claim of a process newer than the question is not taken over", () =>
    Effect.gen(function* () {
      const { claim, idempotency, org, sql } = yield* arranged
      const newer = (yield* Ids).uuid()
      const begun = yield* Deferred.make<void>()
      const claiming = yield* Effect.gen(function* () {
        yield* Statements.claim(sql, claim)
        yield* Deferred.succeed(begun, undefined)
        yield* waitingForLock("generation-gateway")
        yield* sql`INSERT INTO instances (id) VALUES (${newer})`
        yield* sql`
          UPDATE idempotency_keys SET instance_id = ${newer}, created_at = clock_timestamp() WHERE claim = ${claim.id}`
      }).pipe(sql.withTransaction, Effect.fork)
      yield* Deferred.await(begun)
      assert.strictEqual(yield* outcome(idempotency, request(org)), "IdempotencyConflict")
      yield* Fiber.join(claiming)
    })
  )

  it.effect("a request that failed leaves nothing behind", () =>
    Effect.gen(function* () {
      const { idempotency, org, sql } = yield* arranged
      yield* Effect.scoped(Effect.flatMap(idempotency.claim(request(org)), first))
      assert.deepStrictEqual(yield* sql`SELECT * FROM idempotency_keys WHERE org_id = ${org}`, [])
    })
  )

  it.effect("however many there are, all that are old are removed", () =>
    Effect.gen(function* () {
      const { bench, claim, idempotency, org, sql } = yield* arranged
      const hold = yield* bench.payment(org)
      yield* sql`
        INSERT INTO idempotency_keys (claim, org_id, endpoint, key, fingerprint, state, instance_id, result, hold_id, created_at)
        SELECT gen_random_uuid(), ${org}, 'images', n, 'f', 'done', ${claim.instance}, '{}', ${hold}, now() - interval '2 days'
        FROM generate_series(1, 1300) AS n`
      let forgotten = 0
      const [removed, also] = yield* Effect.all(
        Array.from({ length: 2 }, () =>
          idempotency.prune(Duration.days(1), () => Effect.sync(() => (forgotten += 1) > 0))
        ),
        { concurrency: 2 }
      )
      assert.strictEqual((removed ?? 0) + (also ?? 0), 1300)
      assert.isAtLeast(forgotten, 1300)
      assert.deepStrictEqual(yield* sql`SELECT * FROM idempotency_keys WHERE org_id = ${org}`, [])
    })
  )
})
