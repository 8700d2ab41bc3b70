import { Deferred, Effect, Exit, Fiber, type Layer } from "effect"
import * as fc from "effect/FastCheck"
import { NanoUsd } from "../../src/domain/Money.ts"
import { Ledger } from "../../src/services/ledger/Ledger.ts"
import * as Holds from "../harness/database/Holds.ts"
import { assert, withLayer } from "../harness/It.ts"
import { LedgerBench } from "./LedgerBench.ts"

const usd = (amount: number) => NanoUsd(BigInt(amount) * 1_000_000_000n)

const openAccount = Effect.fnUntraced(function* (balance: bigint) {
  const ledger = yield* Ledger
  const bench = yield* LedgerBench
  const { key, org } = yield* bench.organization(balance)
  /** A request that is held and then charged. */
  const pay = (upTo: NanoUsd, cost: NanoUsd) =>
    Effect.scoped(Effect.flatMap(Holds.hold(ledger, { org, key, upTo }), (hold) => ledger.settle(hold, cost)))
  return { bench, key, ledger, org, pay }
})

/** What every ledger must do, whatever it stores its books in. */
export const ledgerContract = (name: string, layer: Layer.Layer<Ledger | LedgerBench, unknown>) =>
  withLayer(layer)(`${name}: the contract of a ledger`, (it) => {
    it.effect("a hold lowers what is available and leaves the balance", function* () {
      const { key, ledger, org } = yield* openAccount(usd(10))
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* Holds.hold(ledger, { org, key, upTo: usd(4) })
          assert.deepStrictEqual(yield* ledger.balance(org), { balance: usd(10), held: usd(4) })
        })
      )
      assert.deepStrictEqual(yield* ledger.balance(org), { balance: usd(10), held: usd(0) })
    })

    it.effect("settling charges the cost once and frees the rest", function* () {
      const { bench, ledger, org, pay } = yield* openAccount(usd(10))
      const settled = yield* pay(usd(4), usd(1))
      assert.deepStrictEqual(settled, { charged: usd(1), isExceeded: false, wasReleased: false })
      assert.deepStrictEqual(yield* ledger.balance(org), { balance: usd(9), held: usd(0) })
      assert.deepStrictEqual(yield* bench.charges(org), [usd(1)])
      assert.isTrue(yield* bench.proved)
    })

    it.effect("a charge is cut to its hold, and says so", function* () {
      const { ledger, org, pay } = yield* openAccount(usd(10))
      const settled = yield* pay(usd(2), usd(5))
      assert.deepStrictEqual(settled, { charged: usd(2), isExceeded: true, wasReleased: false })
      assert.deepStrictEqual((yield* ledger.balance(org)).balance, usd(8))
    })

    it.effect("no amount is too large to be understood", function* () {
      const { key, ledger, org, pay } = yield* openAccount(usd(10))
      const immense = NanoUsd(10n ** 30n)
      const refused = yield* Effect.flip(Effect.scoped(Holds.hold(ledger, { org, key, upTo: immense })))
      assert.strictEqual(refused._tag, "InsufficientCredits")
      const settled = yield* pay(usd(2), immense)
      assert.deepStrictEqual(settled, { charged: usd(2), isExceeded: true, wasReleased: false })
    })

    it.effect("a cost of zero is a charge of zero", function* () {
      const { bench, org, pay } = yield* openAccount(usd(1))
      yield* pay(usd(1), NanoUsd(0n))
      assert.deepStrictEqual(yield* bench.charges(org), [0n])
      assert.isTrue(yield* bench.proved)
    })

    it.effect("a hold that the balance cannot cover is refused, to the nano-dollar", function* () {
      const { key, ledger, org } = yield* openAccount(usd(1))
      const refused = yield* Effect.flip(Effect.scoped(Holds.hold(ledger, { org, key, upTo: NanoUsd(usd(1) + 1n) })))
      assert.deepInclude(refused, { _tag: "InsufficientCredits", needed: NanoUsd(usd(1) + 1n), available: usd(1) })
      assert.isTrue(Exit.isSuccess(yield* Effect.exit(Effect.scoped(Holds.hold(ledger, { org, key, upTo: usd(1) })))))
    })

    it.effect("with nothing available even a hold of zero is refused", function* () {
      const ledger = yield* Ledger
      const bench = yield* LedgerBench
      const nothing = yield* bench.organization(0n)
      const refused = yield* Effect.flip(Effect.scoped(Holds.hold(ledger, { ...nothing, upTo: NanoUsd(0n) })))
      assert.deepInclude(refused, { _tag: "InsufficientCredits", needed: NanoUsd(0n), available: 0n })
      const all = yield* bench.organization(usd(1))
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* Holds.hold(ledger, { ...all, upTo: usd(1) })
          const second = yield* Effect.flip(Holds.hold(ledger, { ...all, upTo: NanoUsd(0n) }))
          assert.strictEqual(second._tag, "InsufficientCredits")
        })
      )
    })

    it.effect("a shared hold takes all of the balance alone, and a quarter of it beside others", function* () {
      const { bench, key, ledger, org } = yield* openAccount(usd(8))
      const share = (upTo: NanoUsd) => Effect.scoped(Holds.hold(ledger, { org, key, upTo, canReduceHold: true }))
      assert.isTrue(Exit.isSuccess(yield* Effect.exit(share(usd(8)))))
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* Holds.hold(ledger, { org, key, upTo: usd(1) })
          assert.strictEqual((yield* Effect.flip(share(NanoUsd(usd(2) + 1n))))._tag, "InsufficientCredits")
          assert.isTrue(Exit.isSuccess(yield* Effect.exit(share(usd(2)))))
          yield* Holds.hold(ledger, { org, key, upTo: NanoUsd(usd(2) + 1n) })
        })
      )
      assert.isTrue(yield* bench.proved)
    })

    it.effect("a negative balance admits nothing", function* () {
      const ledger = yield* Ledger
      const account = yield* (yield* LedgerBench).organization(-5n)
      const refused = yield* Effect.flip(Effect.scoped(Holds.hold(ledger, { ...account, upTo: NanoUsd(0n) })))
      assert.deepInclude(refused, { _tag: "InsufficientCredits", needed: NanoUsd(0n), available: -5n })
    })

    it.effect("an interrupted request gives its hold back", function* () {
      const { bench, key, ledger, org } = yield* openAccount(usd(10))
      const held = yield* Deferred.make<void>()
      const request = yield* Effect.fork(
        ledger.withHold({ org, key, upTo: usd(5) }, () =>
          Effect.zipRight(Deferred.succeed(held, undefined), Effect.never)
        )
      )
      yield* Deferred.await(held)
      yield* Fiber.interrupt(request)
      assert.deepStrictEqual(yield* ledger.balance(org), { balance: usd(10), held: usd(0) })
      assert.strictEqual(yield* bench.openHolds(org), 0)
      assert.deepStrictEqual(yield* bench.charges(org), [])
    })

    it.effect("what was released cannot be settled any more", function* () {
      const { bench, key, ledger, org } = yield* openAccount(usd(10))
      const settled = yield* Effect.scoped(
        Effect.gen(function* () {
          const hold = yield* Holds.hold(ledger, { org, key, upTo: usd(5) })
          yield* Holds.release(ledger, hold)
          yield* Holds.release(ledger, hold)
          return yield* ledger.settle(hold, usd(1))
        })
      )
      assert.deepStrictEqual(settled, { charged: NanoUsd(0n), isExceeded: false, wasReleased: true })
      assert.deepStrictEqual(yield* ledger.balance(org), { balance: usd(10), held: usd(0) })
      assert.isTrue(yield* bench.proved)
    })

    it.effect("200 at once on a balance for 50 admit exactly 50", function* () {
      const { bench, ledger, org, pay } = yield* openAccount(usd(50))
      const outcomes = yield* Effect.forEach(Array.from({ length: 200 }), () => pay(usd(1), usd(1)).pipe(Effect.exit), {
        concurrency: "unbounded"
      })
      assert.strictEqual(outcomes.filter(Exit.isSuccess).length, 50)
      assert.deepStrictEqual(yield* ledger.balance(org), { balance: usd(0), held: usd(0) })
      assert.strictEqual((yield* bench.charges(org)).length, 50)
      assert.isTrue(yield* bench.proved)
    })

    it.effect("a large hold in the crowd does not bar the small ones behind it", function* () {
      const { key, ledger, org } = yield* openAccount(usd(10))
      const sizes = [100, 1, 1, 100, 1, 1, 1, 100, 1, 1, 1, 1, 1]
      const outcomes = yield* Effect.scoped(
        Effect.forEach(sizes, (size) => Effect.exit(Holds.hold(ledger, { org, key, upTo: usd(size) })), {
          concurrency: "unbounded"
        })
      )
      assert.deepStrictEqual(
        outcomes.map(Exit.isSuccess),
        sizes.map((size) => size === 1)
      )
    })

    it.effect("a key over its cap is refused before the balance is looked at", function* () {
      const { bench, key, ledger, org, pay } = yield* openAccount(usd(10))
      yield* bench.cap(key, usd(2), "week")
      const spend = pay(usd(2), usd(1))
      yield* spend
      yield* spend
      const refused = yield* Effect.flip(Effect.scoped(Holds.hold(ledger, { org, key, upTo: usd(100) })))
      assert.deepInclude(refused, { _tag: "SpendLimitReached", period: "week" })
    })

    it.effect("no order of holds, settlements and releases makes or loses money", function* () {
      const ledger = yield* Ledger
      const bench = yield* LedgerBench
      const step = fc.record({
        upTo: fc.bigInt({ min: 0n, max: 12n }),
        cost: fc.option(fc.bigInt({ min: 0n, max: 15n }), { nil: undefined })
      })
      const scripts = fc.sample(fc.array(step, { minLength: 1, maxLength: 12 }), 25)
      for (const script of scripts) {
        const { key, org } = yield* bench.organization(30n)
        yield* Effect.forEach(
          script,
          ({ cost, upTo }) =>
            Effect.scoped(
              Effect.flatMap(Holds.hold(ledger, { org, key, upTo: NanoUsd(upTo) }), (hold) =>
                cost === undefined ? Effect.void : ledger.settle(hold, NanoUsd(cost))
              )
            ).pipe(Effect.ignore),
          { concurrency: 4 }
        )
        const charged = (yield* bench.charges(org)).reduce((sum, amount) => sum + amount, 0n)
        const { balance, held } = yield* ledger.balance(org)
        assert.strictEqual<bigint>(balance, 30n - charged)
        assert.strictEqual<bigint>(held, 0n)
        assert.isTrue(balance >= 0n)
      }
      assert.isTrue(yield* bench.proved)
    })
  })
