import { Effect, FastCheck as fc } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { Instance } from "../../../src/services/instance/Instance.ts"
import * as HoldSql from "../../../src/services/ledger/HoldSql.ts"
import { runWith } from "../../../src/services/sql/Statement.ts"
import { moneyOf } from "../../harness/database/Money.ts"
import { account, ledgers } from "../../harness/database/MoneyProcess.ts"
import { assert, withLayer } from "../../harness/It.ts"

const holds = fc.array(
  fc.record({
    payer: fc.nat(1),
    amount: fc.constantFrom(0n, 1n, 4n, 9n, 30n),
    rateLimit: fc.option(fc.constantFrom(2, 5), { nil: undefined }),
    hasFittedHold: fc.boolean()
  }),
  { minLength: 1, maxLength: 6 }
)

const cases = fc.record({
  balances: fc.tuple(fc.constantFrom(0n, 10n, 40n), fc.constantFrom(3n, 100n)),
  caps: fc.tuple(fc.option(fc.constantFrom(0n, 5n)), fc.constant(null)),
  batches: fc.array(holds, { minLength: 1, maxLength: 3 }),
  isFenced: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) })
})

/** Limits that nothing reaches. */
const ample = () => ({
  concurrency: 1_000_000_000,
  tokens: { use: { limit: 1_000_000_000, window: undefined, allowance: undefined }, amount: 1 }
})

withLayer(ledgers)("the variants of the statement that places holds", (it) => {
  it.effect(
    "place, refuse and count the same: for new holds, for any holds, and for keys with limits",
    function* () {
      const alive = yield* (yield* Instance).id
      for (const { balances, batches, caps, isFenced } of fc.sample(cases, { numRuns: 60, seed: 1 })) {
        const judged = yield* Effect.forEach(["new", "any", "limited"] as const, (kind) =>
          Effect.gen(function* () {
            const payers = yield* Effect.forEach(balances, account)
            const { bench, ids, sql } = payers[0] ?? assert.fail()
            for (const [index, { key }] of payers.entries()) {
              const cap = caps[index]
              if (cap !== undefined && cap !== null) yield* bench.cap(key, NanoUsd(cap), "day")
            }
            const results = yield* Effect.forEach(batches, (batch) => {
              const placing = batch.map(({ amount, payer, ...hold }) => {
                const { key, org } = payers[payer] ?? assert.fail()
                const limits = kind === "limited" ? ample() : {}
                return { ...hold, id: ids.uuid(), key, org, amount: NanoUsd(amount), ...limits }
              })
              const placed = runWith(sql, HoldSql.place(isFenced ? ids.uuid() : alive, placing, kind === "new"))
              return Effect.map(placed, (results) => results.map((result) => ({ ...result, tokens: undefined })))
            })
            return { results, money: yield* Effect.forEach(payers, ({ org }) => moneyOf(org)) }
          })
        )
        assert.deepStrictEqual(judged[0], judged[1])
        assert.deepStrictEqual(judged[0], judged[2])
      }
    },
    180_000
  )
})
