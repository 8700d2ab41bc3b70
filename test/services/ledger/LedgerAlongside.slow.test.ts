import { SqlClient } from "@effect/sql"
import { SqlError } from "@effect/sql/SqlError"
import { Effect, Fiber, Layer } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { refundFailed } from "../../../src/services/ledger/Refunds.ts"
import * as Holds from "../../harness/database/Holds.ts"
import { eventually, lock, moneyOf, waitingForLock } from "../../harness/database/Money.ts"
import { account, impatient, ledgers, observedProcess, one } from "../../harness/database/MoneyProcess.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { first, mortalProcess, outcome, result } from "../idempotency/Claims.ts"

withLayer(ledgers)("a charge with an effect in its transaction", (it) => {
  it.effect("commits together with it", function* () {
    const { asked, bench, idempotency, key, ledger, org } = yield* account(100n * one)
    const settled = yield* Effect.scoped(
      Effect.gen(function* () {
        const claim = yield* Effect.flatMap(idempotency.claim(asked), first)
        const hold = yield* Holds.hold(ledger, { org, key, upTo: one })
        return yield* ledger.settle(hold, NanoUsd(5n * one), { effect: claim.finalize(result, hold.id) })
      })
    )
    assert.deepStrictEqual(settled, { charged: one, isExceeded: true, wasReleased: false })
    assert.deepStrictEqual(yield* Effect.scoped(idempotency.claim(asked)), { _tag: "Replay", result })
    assert.deepStrictEqual(yield* bench.charges(org), [one])
    assert.isTrue(yield* bench.proved)
  })

  it.scoped("is not made for a request whose key another one claimed, even before its hold is swept", function* () {
    const { asked, bench, idempotency, key, ledger, org } = yield* account(100n * one)
    const dying = yield* mortalProcess
    const claim = yield* Effect.flatMap(dying.idempotency.claim(asked), first)
    const hold = yield* Holds.hold(dying.ledger, { org, key, upTo: one })
    yield* dying.die("silent")
    const next = yield* Effect.flatMap(idempotency.claim(asked), first)
    assert.deepStrictEqual(yield* dying.ledger.settle(hold, one, { effect: claim.finalize({ late: true }, hold.id) }), {
      charged: NanoUsd(0n),
      isExceeded: false,
      wasReleased: true
    })
    assert.deepStrictEqual(yield* ledger.balance(org), { balance: NanoUsd(100n * one), held: NanoUsd(0n) })
    const paid = yield* Holds.hold(ledger, { org, key, upTo: one })
    yield* ledger.settle(paid, one, { effect: next.finalize(result, paid.id) })
    assert.deepStrictEqual(yield* idempotency.claim(asked), { _tag: "Replay", result })
    assert.deepStrictEqual(yield* bench.charges(org), [one])
    assert.isTrue(yield* bench.proved)
  })

  it.effect("that is refunded removes the result and restores the key's spend", function* () {
    const { asked, bench, idempotency, key, ledger, org } = yield* account(100n * one)
    yield* bench.cap(key, one, "total")
    const sql = yield* SqlClient.SqlClient
    const pay = Effect.gen(function* () {
      const claim = yield* Effect.flatMap(idempotency.claim(asked), first)
      const hold = yield* Holds.hold(ledger, { org, key, upTo: one })
      yield* ledger.settle(hold, one, { effect: claim.finalize(result, hold.id) })
      return hold
    }).pipe(Effect.scoped)
    const { id } = yield* pay
    assert.strictEqual(yield* outcome(idempotency, asked), "Replay")
    yield* refundFailed(sql, id)
    yield* pay
    yield* refundFailed(sql, id)
    assert.strictEqual(yield* outcome(idempotency, asked), "Replay")
    assert.strictEqual((yield* ledger.balance(org)).balance, NanoUsd(99n * one))
    assert.isTrue(yield* bench.proved)
  })

  it.scoped("waits for others without blocking the rest of the database", function* () {
    const { bench, key, ledger, org } = yield* account(100n * one)
    const hold = Holds.hold(ledger, { org, key, upTo: one })
    const holds = yield* Effect.forEach(Array.from({ length: 30 }), () => hold, { concurrency: "unbounded" })
    const { unlock } = yield* lock(org)
    const settling = yield* Effect.fork(
      Effect.forEach(holds, (held) => ledger.settle(held, one, { effect: Effect.void }), { concurrency: "unbounded" })
    )
    yield* waitingForLock("generation-gateway")
    const elsewhere = yield* bench.organization(one)
    const held = yield* Holds.hold(ledger, { ...elsewhere, upTo: one })
    yield* Effect.timeout(ledger.settle(held, one), "5 seconds")
    assert.isNull(settling.unsafePoll())
    yield* unlock
    yield* Fiber.join(settling)
    assert.lengthOf(yield* bench.charges(org), 30)
    assert.isTrue(yield* bench.proved)
  })
})

withLayer(Layer.provideMerge(observedProcess(), Postgres.layerWith({ maxConnections: 1 })))(
  "charges with effects in their transactions over a single connection",
  (it) => {
    it.effect("all end", function* () {
      const { bench, idempotency, key, ledger, org, asked } = yield* account(100n * one)
      const settled = yield* Effect.forEach(
        Array.from({ length: 12 }, (_, index) => ({ ...asked, key: `k${index}` })),
        (each) =>
          Effect.gen(function* () {
            const claim = yield* Effect.flatMap(idempotency.claim(each), first)
            const hold = yield* Holds.hold(ledger, { org, key, upTo: one })
            return yield* ledger.settle(hold, one, { effect: claim.finalize(result, hold.id) })
          }).pipe(Effect.scoped),
        { concurrency: "unbounded" }
      )
      assert.isTrue(settled.every(({ charged, wasReleased }) => charged === one && !wasReleased))
      assert.lengthOf(yield* bench.charges(org), 12)
      assert.isTrue(yield* bench.proved)
    })
  }
)

withLayer(Layer.provide(ledgers, impatient))("a charge that cannot be completed", (it) => {
  it.effect("is not made, and releases the idempotency key, if the effect in its transaction fails", function* () {
    const { asked, bench, idempotency, key, ledger, org } = yield* account(100n * one)
    const refused = new SqlError({ cause: new Error("refused"), message: "refused" })
    yield* Effect.scoped(
      Effect.gen(function* () {
        const claim = yield* Effect.flatMap(idempotency.claim(asked), first)
        const hold = yield* Holds.hold(ledger, { org, key, upTo: one })
        const alongside = Effect.zipRight(claim.finalize(result, hold.id), refused)
        const failed = yield* Effect.timeout(Effect.flip(ledger.settle(hold, one, { effect: alongside })), "13 seconds")
        assert.strictEqual(failed._tag, "SettleFailed")
      })
    )
    yield* eventually(moneyOf(org), ({ openHolds }) => openHolds === 0)
    assert.deepStrictEqual(yield* bench.charges(org), [])
    assert.strictEqual(yield* outcome(idempotency, asked), "First")
    assert.isTrue(yield* bench.proved)
  })

  it.effect("is not made after its time limit, although its transaction still runs", function* () {
    const { asked, bench, idempotency, key, ledger, org } = yield* account(100n * one)
    yield* Effect.scoped(
      Effect.gen(function* () {
        const claim = yield* Effect.flatMap(idempotency.claim(asked), first)
        const hold = yield* Holds.hold(ledger, { org, key, upTo: one })
        const { unlock } = yield* lock(org)
        const settling = ledger.settle(hold, one, { effect: claim.finalize(result, hold.id) })
        const failed = yield* Effect.timeout(Effect.flip(settling), "12 seconds")
        assert.strictEqual(failed._tag, "SettleFailed")
        yield* unlock
      })
    )
    yield* eventually(moneyOf(org), ({ openHolds }) => openHolds === 0)
    assert.deepStrictEqual(yield* bench.charges(org), [])
    assert.strictEqual(yield* outcome(idempotency, asked), "First")
    assert.isTrue(yield* bench.proved)
  })
})
