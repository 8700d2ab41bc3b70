import { Array as Arr, Duration, Effect, Either, Ref } from "effect"
import type { StoredResult } from "../../../src/services/idempotency/Idempotency.ts"
import { ledgers } from "../../harness/database/MoneyProcess.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { arranged, first, isFirst, mortalProcess, outcome, result, withFirstClaim } from "./Claims.ts"

withLayer(ledgers)("idempotency keys under load and over time", (it) => {
  it.effect("a result is replayed for 24 hours, and a running claim does not expire", function* () {
    const { age, asked, idempotency, payment } = yield* arranged
    const other = { ...asked, fingerprint: "g" }
    yield* withFirstClaim(asked, function* (claim) {
      yield* age("20 hours")
      yield* claim.finalize(result, yield* payment)
    })
    yield* age("239 minutes")
    assert.strictEqual(yield* outcome(idempotency, asked), "Replay")
    yield* age("1 minute")
    yield* withFirstClaim(other, function* () {
      yield* age("25 hours")
      assert.strictEqual(yield* outcome(idempotency, other), "IdempotencyConflict")
    })
    assert.strictEqual(yield* outcome(idempotency, asked), "First")
  })

  it.scoped("exactly one of 50 concurrent claims over two processes is first", function* () {
    const { asked, idempotency, payment } = yield* arranged
    const there = (yield* mortalProcess).idempotency
    const race = Effect.forEach(
      Array.from({ length: 50 }, (_, index) => (index % 2 === 0 ? idempotency : there)),
      (one) => Effect.either(one.claim(asked)),
      { concurrency: "unbounded" }
    )
    const raced = yield* Effect.scoped(
      Effect.gen(function* () {
        const all = yield* race
        const claims = all.flatMap((one) => (Either.isRight(one) ? [one.right] : []))
        assert.lengthOf(claims.filter(isFirst), 1)
        yield* Effect.forEach(claims.filter(isFirst), (claim) =>
          Effect.flatMap(payment, (hold) => claim.finalize(result, hold))
        )
        return all
      })
    )
    assert.deepStrictEqual(
      raced.flatMap((one) => (Either.isLeft(one) ? [one.left._tag] : [])),
      Array.from({ length: 49 }, () => "IdempotencyConflict")
    )
    const replays = yield* Effect.scoped(race)
    assert.deepStrictEqual(
      replays,
      Array.from({ length: 50 }, () => Either.right({ _tag: "Replay", result }))
    )
  })

  it.scoped("exactly one of many takes over", function* () {
    const there = (yield* mortalProcess).idempotency
    for (const left of ["working", "expired"] as const) {
      const { age, asked, idempotency, payment } = yield* arranged
      const dead = yield* mortalProcess
      const claim = yield* Effect.flatMap(dead.idempotency.claim(asked), first)
      if (left === "expired") yield* claim.finalize(result, yield* payment)
      yield* age("1 day")
      yield* dead.die("swept")
      const raced = yield* Effect.forEach(
        Array.from({ length: 30 }, (_, index) => (index % 2 === 0 ? idempotency : there)),
        (one) => Effect.either(one.claim(asked)),
        { concurrency: "unbounded" }
      )
      assert.lengthOf(
        raced.filter((one) => Either.isRight(one) && isFirst(one.right)),
        1,
        left
      )
      assert.lengthOf(
        raced.filter((one) => Either.isLeft(one) && one.left._tag === "IdempotencyConflict"),
        29,
        left
      )
    }
  })

  it.effect("a failed deletion is retried, and its key is released anyway", function* () {
    const { age, asked, idempotency, org, payment } = yield* arranged
    yield* Effect.flatMap(idempotency.claim(asked), first).pipe(
      Effect.flatMap((claim) => Effect.flatMap(payment, (hold) => claim.finalize({ of: org }, hold))),
      Effect.scoped
    )
    yield* idempotency.prune(Duration.days(1), () => Effect.succeed(true))
    yield* age("24 hours")
    const told = yield* Ref.make<ReadonlyArray<unknown>>([])
    const prune = (isForgotten: boolean) =>
      idempotency.prune(Duration.days(1), (one) => Effect.as(Ref.update(told, Arr.append(one)), isForgotten))
    yield* prune(false)
    assert.strictEqual(yield* outcome(idempotency, asked), "First")
    yield* prune(false)
    yield* prune(true)
    yield* Ref.update(told, Arr.append("gone"))
    assert.strictEqual(yield* prune(true), 0)
    assert.deepStrictEqual(yield* Ref.get(told), [{ of: org }, { of: org }, { of: org }, "gone"])
  })

  it.scoped("old keys and their results are removed, and running ones stay", function* () {
    const { age, asked, idempotency, payment } = yield* arranged
    const forgotten = yield* Ref.make<ReadonlyArray<unknown>>([])
    const prune = idempotency.prune(Duration.days(1), (one) =>
      Effect.as(
        Ref.update(forgotten, (all) => [...all, one]),
        true
      )
    )
    const keep = (kept: StoredResult) =>
      Effect.gen(function* () {
        const claim = yield* Effect.flatMap(idempotency.claim(asked), first)
        yield* claim.finalize(kept, yield* payment)
      }).pipe(Effect.scoped)
    yield* prune
    yield* Ref.set(forgotten, [])
    yield* keep({ media: "old" })
    yield* age("23 hours")
    assert.strictEqual(yield* prune, 0)
    yield* age("1 hour")
    yield* keep({ media: "new" })
    yield* prune
    assert.deepStrictEqual(yield* Ref.get(forgotten), [{ media: "old" }])
    assert.strictEqual(yield* outcome(idempotency, asked), "Replay")

    const running = { ...asked, key: "running" }
    const claim = yield* Effect.flatMap(idempotency.claim(running), first)
    yield* age("24 hours")
    assert.strictEqual(yield* prune, 1)
    assert.deepStrictEqual(yield* Ref.get(forgotten), [{ media: "old" }, { media: "new" }])
    assert.strictEqual(yield* prune, 0)
    assert.strictEqual(yield* outcome(idempotency, asked), "First")
    yield* claim.finalize(result, yield* payment)
    assert.strictEqual(yield* outcome(idempotency, { ...running, fingerprint: "g" }), "First")
  })
})
