import { Deferred, Duration, Effect, Exit, Fiber, Scope } from "effect"
import { insertClaim, saveResult, writeTombstone } from "../../../src/services/idempotency/Idempotency.ts"
import { Instance } from "../../../src/services/instance/Instance.ts"
import { Ids } from "../../../src/services/runtime/Ids.ts"
import { productionTimings } from "../../../src/services/runtime/Timings.ts"
import { waitingForLock } from "../../harness/database/Money.ts"
import { ledgers } from "../../harness/database/MoneyProcess.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { arranged, deaths, first, mortalProcess, outcome, result, withFirstClaim } from "./Claims.ts"

withLayer(ledgers)("an idempotency key", (it) => {
  it.effect("a key is claimed by one request at a time, and released when its scope closes", function* () {
    const { asked, idempotency } = yield* arranged
    yield* withFirstClaim(asked, function* () {
      assert.strictEqual(yield* outcome(idempotency, asked), "IdempotencyConflict")
      assert.strictEqual(yield* outcome(idempotency, asked), "IdempotencyConflict")
    })
    assert.strictEqual(yield* outcome(idempotency, asked), "First")
  })

  it.effect("a final result is replayed at once, and always", function* () {
    const { asked, idempotency, payment } = yield* arranged
    yield* withFirstClaim(asked, function* (claim) {
      const hold = yield* payment
      yield* claim.finalize(result, hold)
      yield* claim.finalize(result, hold)
      yield* claim.bind(result, hold)
      assert.deepStrictEqual(yield* idempotency.claim(asked), { _tag: "Replay", result })
    })
    assert.deepStrictEqual(yield* Effect.scoped(idempotency.claim(asked)), { _tag: "Replay", result })
  })

  it.effect("a key exists while its request runs and once it has a result, only for its organization", function* () {
    const { asked, idempotency, payment } = yield* arranged
    const known = () => idempotency.exists(asked)
    assert.isFalse(yield* known())
    yield* withFirstClaim(asked, function* (claim) {
      assert.isTrue(yield* known())
      yield* claim.finalize(result, yield* payment)
    })
    assert.isTrue(yield* known())
    assert.isFalse(yield* idempotency.exists({ ...asked, key: `${asked.key}-other` }))
    const other = asked.endpoint === "images" ? "videos" : "images"
    assert.isFalse(yield* idempotency.exists({ ...asked, endpoint: other }))
  })

  it.effect("a bound result conflicts while its request runs, and is final after it", function* () {
    const { asked, idempotency, payment } = yield* arranged
    yield* withFirstClaim(asked, function* (claim) {
      const hold = yield* payment
      yield* claim.bind(result, hold)
      yield* claim.bind(result, hold)
      assert.strictEqual(yield* outcome(idempotency, asked), "IdempotencyConflict")
    })
    assert.deepStrictEqual(yield* Effect.scoped(idempotency.claim(asked)), { _tag: "Replay", result })
  })

  it.effect("a bound key can be released", function* () {
    const { asked, idempotency, payment } = yield* arranged
    yield* withFirstClaim(asked, function* (claim) {
      const hold = yield* payment
      yield* claim.bind(result, hold)
      yield* claim.releaseKey
      assert.strictEqual((yield* Effect.flip(claim.bind(result, hold)))._tag, "IdempotencyConflict")
      assert.strictEqual(yield* outcome(idempotency, asked), "First")
    })
    assert.strictEqual(yield* outcome(idempotency, asked), "First")
  })

  it.effect("a different request under the same key is refused, while the first runs and after it", function* () {
    const { asked, idempotency, payment } = yield* arranged
    const other = { ...asked, fingerprint: "g" }
    yield* withFirstClaim(asked, function* (claim) {
      const refused = yield* Effect.flip(idempotency.claim(other))
      assert.deepInclude(refused, { _tag: "InvalidRequest", param: null })
      assert.include(refused.message, "`Idempotency-Key`")
      yield* claim.finalize(result, yield* payment)
    })
    assert.strictEqual(yield* outcome(idempotency, other), "InvalidRequest")
    assert.strictEqual(yield* outcome(idempotency, asked), "Replay")
  })

  it.scoped("keys of other organizations and endpoints are other keys", function* () {
    const { asked, idempotency } = yield* arranged
    yield* idempotency.claim(asked)
    for (const other of [(yield* arranged).asked, { ...asked, endpoint: "videos" } as const, { ...asked, key: "K" }]) {
      assert.strictEqual(yield* outcome(idempotency, other), "First")
    }
  })

  it.effect("a result is stored if and only if its transaction commits", function* () {
    const { asked, idempotency, payment, sql } = yield* arranged
    for (const method of ["finalize", "bind"] as const) {
      yield* withFirstClaim(asked, function* (claim) {
        const given = claim[method](result, yield* payment)
        yield* Effect.flip(sql.withTransaction(Effect.zipRight(given, Effect.fail("rolled back"))))
        assert.strictEqual(yield* outcome(idempotency, asked), "IdempotencyConflict")
      })
      assert.strictEqual(yield* outcome(idempotency, asked), "First")
    }
  })

  it.scoped("the unfinished key of a dead process goes to the next request, even a different one", function* () {
    for (const how of deaths) {
      const { asked, idempotency, payment } = yield* arranged
      const dead = yield* mortalProcess
      const late = yield* Scope.make()
      const lost = yield* Effect.flatMap(Scope.extend(dead.idempotency.claim(asked), late), first)
      assert.strictEqual(yield* outcome(idempotency, asked), "IdempotencyConflict")
      yield* dead.die(how)

      const other = { ...asked, fingerprint: "g" }
      const scope = yield* Scope.make()
      const claim = yield* Effect.flatMap(Scope.extend(idempotency.claim(other), scope), first)
      yield* lost.finalize({ late: true }, yield* payment)
      assert.strictEqual((yield* Effect.flip(lost.bind({ late: true }, yield* payment)))._tag, "IdempotencyConflict")
      yield* lost.releaseKey
      yield* Scope.close(late, Exit.void)
      assert.strictEqual(yield* outcome(idempotency, other), "IdempotencyConflict")
      yield* claim.finalize(result, yield* payment)
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(yield* Effect.scoped(idempotency.claim(other)), { _tag: "Replay", result })
    }
  })

  it.scoped("the bound result of a dead process is final", function* () {
    for (const how of deaths) {
      const { asked, idempotency, payment } = yield* arranged
      const dead = yield* mortalProcess
      const scope = yield* Scope.make()
      const bound = yield* Effect.flatMap(Scope.extend(dead.idempotency.claim(asked), scope), first)
      const hold = yield* payment
      yield* bound.bind(result, hold)
      yield* dead.die(how)
      assert.strictEqual(yield* outcome(idempotency, { ...asked, fingerprint: "g" }), "InvalidRequest")
      assert.deepStrictEqual(yield* Effect.scoped(idempotency.claim(asked)), { _tag: "Replay", result })
      yield* bound.bind(result, hold)
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(yield* outcome(idempotency, asked), "Replay")
    }
  })
})

withLayer(ledgers)("a claim of an idempotency key", (it) => {
  const claimed = Effect.gen(function* () {
    const own = yield* arranged
    const claim = { ...own.asked, id: own.ids.uuid(), instance: yield* (yield* Instance).id }
    return { ...own, claim }
  })

  it.effect("a statement that arrives after the claim was abandoned claims no key", function* () {
    const { asked, claim, idempotency, sql } = yield* claimed
    yield* writeTombstone(sql, claim)
    assert.isTrue(Exit.isFailure(yield* Effect.exit(insertClaim(sql, claim, productionTimings.deadAfter))))
    assert.strictEqual(yield* outcome(idempotency, asked), "First")
  })

  it.effect("nor does one that had arrived before", function* () {
    const { asked, claim, idempotency, sql } = yield* claimed
    yield* insertClaim(sql, claim, productionTimings.deadAfter)
    yield* insertClaim(sql, claim, productionTimings.deadAfter)
    assert.strictEqual(yield* outcome(idempotency, asked), "IdempotencyConflict")
    yield* writeTombstone(sql, claim)
    yield* writeTombstone(sql, claim)
    assert.strictEqual(yield* outcome(idempotency, asked), "First")
    assert.isTrue(Exit.isFailure(yield* Effect.exit(insertClaim(sql, claim, productionTimings.deadAfter))))
  })

  it.effect("abandoning a claim does not change its result", function* () {
    const { asked, claim, idempotency, payment, sql } = yield* claimed
    const hold = yield* payment
    for (const state of ["bound", "done"] as const) {
      const each = { ...claim, id: (yield* Ids).uuid(), key: state }
      yield* insertClaim(sql, each, productionTimings.deadAfter)
      yield* saveResult(sql, each.id, state, { result, hold })
      yield* writeTombstone(sql, each)
      yield* insertClaim(sql, each, productionTimings.deadAfter)
      const again = yield* Effect.scoped(idempotency.claim({ ...asked, key: state }))
      assert.deepStrictEqual(again, { _tag: "Replay", result })
    }
  })

  it.effect("a claim of a process newer than the query is not taken over", function* () {
    const { asked, claim, idempotency, sql } = yield* claimed
    const newer = (yield* Ids).uuid()
    const begun = yield* Deferred.make<void>()
    const claiming = yield* Effect.gen(function* () {
      yield* insertClaim(sql, claim, productionTimings.deadAfter)
      yield* Deferred.succeed(begun, undefined)
      yield* waitingForLock("generation-gateway")
      yield* sql`INSERT INTO instances (id) VALUES (${newer})`
      yield* sql`
            UPDATE idempotency_keys SET instance_id = ${newer}, created_at = clock_timestamp() WHERE claim = ${claim.id}`
    }).pipe(sql.withTransaction, Effect.fork)
    yield* Deferred.await(begun)
    assert.strictEqual(yield* outcome(idempotency, asked), "IdempotencyConflict")
    yield* Fiber.join(claiming)
  })

  it.effect("a failed request leaves no row", function* () {
    const { asked, idempotency, org, sql } = yield* claimed
    yield* Effect.scoped(Effect.flatMap(idempotency.claim(asked), first))
    assert.deepStrictEqual(yield* sql`SELECT * FROM idempotency_keys WHERE org_id = ${org}`, [])
  })

  it.effect("all old keys are removed, however many there are", function* () {
    const { claim, idempotency, org, payment, sql } = yield* claimed
    const hold = yield* payment
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
})
