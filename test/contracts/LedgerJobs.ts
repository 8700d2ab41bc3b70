import { Effect, type Layer } from "effect"
import { NanoUsd } from "../../src/domain/Money.ts"
import { Ledger } from "../../src/services/ledger/Ledger.ts"
import { Ids } from "../../src/services/runtime/Ids.ts"
import * as Holds from "../harness/database/Holds.ts"
import { assert, withLayer } from "../harness/It.ts"
import { LedgerBench } from "./LedgerBench.ts"

const usd = (amount: number) => NanoUsd(BigInt(amount) * 1_000_000_000n)

/** What every ledger must do for jobs, whatever it stores its books in. */
export const ledgerJobsContract = (name: string, layer: Layer.Layer<Ledger | LedgerBench, unknown>) =>
  withLayer(layer)(`${name}: a ledger's jobs`, (it) => {
    const arranged = Effect.gen(function* () {
      const bench = yield* LedgerBench
      const ids = yield* Ids
      const ledger = yield* Ledger
      const { key, org } = yield* bench.organization(usd(10))
      const jobOf = (dollars: number) => ({ id: ids.uuid(), org, key, amount: usd(dollars) })
      return { bench, ledger, key, org, jobOf }
    })

    it.effect("are reserved and charged once, however often that is asked for", function* () {
      const { bench, jobOf, ledger, org } = yield* arranged
      const wanted = jobOf(4)
      const hold = yield* ledger.job.hold(wanted)
      assert.deepStrictEqual(hold, wanted)
      assert.deepStrictEqual(yield* ledger.job.hold(wanted), wanted)
      assert.deepStrictEqual(yield* ledger.balance(org), { balance: usd(10), held: usd(4) })
      for (let times = 0; times < 3; times += 1) {
        assert.deepInclude(yield* ledger.job.settle(hold, usd(3)), {
          charged: usd(3),
          wasReleased: false,
          isExceeded: false
        })
      }
      yield* ledger.job.release(hold)
      assert.deepStrictEqual(yield* ledger.job.hold(wanted), wanted)
      assert.deepStrictEqual(yield* ledger.balance(org), { balance: usd(7), held: usd(0) })
      assert.deepStrictEqual(yield* bench.charges(org), [usd(3)])
      assert.isTrue(yield* bench.proved)
    })

    it.effect("that are released cost nothing, and cannot be charged any more", function* () {
      const { bench, jobOf, ledger, org } = yield* arranged
      const hold = yield* ledger.job.hold(jobOf(4))
      yield* ledger.job.release(hold)
      yield* ledger.job.release(hold)
      assert.deepInclude(yield* ledger.job.settle(hold, usd(3)), { charged: NanoUsd(0n), wasReleased: true })
      assert.deepStrictEqual(yield* ledger.balance(org), { balance: usd(10), held: usd(0) })
      assert.deepStrictEqual(yield* bench.charges(org), [])
      assert.isTrue(yield* bench.proved)
    })

    it.effect("are charged no more than they reserved", function* () {
      const { jobOf, ledger } = yield* arranged
      const hold = yield* ledger.job.hold(jobOf(4))
      assert.deepStrictEqual(yield* ledger.job.settle(hold, usd(5)), {
        charged: usd(4),
        isExceeded: true,
        wasReleased: false
      })
    })

    it.effect("are refused what the balance does not cover", function* () {
      const { jobOf, ledger } = yield* arranged
      yield* ledger.job.hold(jobOf(6))
      const refused = yield* Effect.flip(ledger.job.hold(jobOf(5)))
      assert.deepInclude(refused, { _tag: "InsufficientCredits", needed: usd(5), available: usd(4) })
      yield* ledger.job.hold(jobOf(4))
    })

    it.effect("count towards their key's cap from the start, for every kind of request", function* () {
      const { bench, jobOf, key, ledger, org } = yield* arranged
      yield* bench.cap(key, usd(3), "day")
      const request = Effect.scoped(
        Effect.flatMap(Holds.hold(ledger, { org, key, upTo: usd(1) }), (hold) => ledger.settle(hold, usd(1)))
      )
      yield* request
      const job = yield* ledger.job.hold(jobOf(1))
      // A request's own hold does not count: it is an upper bound, most of which comes back.
      yield* Effect.scoped(Effect.zipRight(Holds.hold(ledger, { org, key, upTo: usd(5) }), request))
      const refused = [yield* Effect.flip(request), yield* Effect.flip(ledger.job.hold(jobOf(1)))]
      for (const failure of refused) assert.deepInclude(failure, { _tag: "SpendLimitReached", period: "day" })
      assert.deepStrictEqual(yield* ledger.job.hold(job), job)
      yield* ledger.job.release(job)
      yield* ledger.job.settle(yield* ledger.job.hold(jobOf(1)), usd(1))
      assert.strictEqual((yield* Effect.flip(request))._tag, "SpendLimitReached")
      const other = yield* bench.organization(usd(1))
      yield* bench.cap(other.key, usd(3), "day")
      yield* Effect.scoped(Holds.hold(ledger, { ...other, upTo: usd(1) }))
    })
  })
