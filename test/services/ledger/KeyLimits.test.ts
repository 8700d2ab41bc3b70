import { Context, Effect, Either, Layer } from "effect"
import type { Hold } from "../../../src/domain/Hold.ts"
import { NanoUsd } from "../../../src/domain/Money.ts"
import type { TokenAllowance } from "../../../src/services/access/RateLimiter.ts"
import { Instance } from "../../../src/services/instance/Instance.ts"
import type { Allowances } from "../../../src/services/ledger/HoldPlacement.ts"
import * as HoldSql from "../../../src/services/ledger/HoldSql.ts"
import { sweep } from "../../../src/services/ledger/HoldSweeper.ts"
import { Ledger } from "../../../src/services/ledger/Ledger.ts"
import { runWith } from "../../../src/services/sql/SqlStatement.ts"
import * as Holds from "../../harness/database/Holds.ts"
import { losing } from "../../harness/database/LostStatements.ts"
import { times } from "../../harness/database/Money.ts"
import { account, anotherProcess, ledgers, observedProcess, one } from "../../harness/database/MoneyProcess.ts"
import { assert, withLayer } from "../../harness/It.ts"

const cent = NanoUsd(10_000_000n)

const customer = Effect.fnUntraced(function* (credits: bigint = 100n * one) {
  const opened = yield* account(credits)
  const { key, ledger, org, sql } = opened
  const used = Effect.map(
    sql<{ readonly used: string }>`SELECT used FROM token_windows WHERE key_id = ${key}`,
    ([window]) => (window === undefined ? undefined : Number(window.used))
  )
  /** The window is as old as it is after so many more seconds. */
  const age = (seconds: number) =>
    sql`UPDATE token_windows SET started_at = started_at - ${seconds} * interval '1 second' WHERE key_id = ${key}`
  const admit = (options: { readonly concurrency?: number; readonly tpm?: number; readonly tokens?: number }) =>
    Effect.suspend(() => {
      const { concurrency, tokens: amount = 1, tpm: limit } = options
      const tokens = limit === undefined ? undefined : { limit, amount }
      /** What the key has left, as it was told last. */
      const left: { tokens?: TokenAllowance } = {}
      const onAllowed = (allowed: Allowances) => Object.assign(left, allowed)
      const admitted = Holds.admit(ledger, { org, key, upTo: cent, concurrency, tokens, onAllowances: onAllowed })
      return Effect.map(admitted, (hold) => ({ hold, left }))
    })
  return { ...opened, used, age, admit }
})

const openOf = (outcomes: ReadonlyArray<Either.Either<unknown, unknown>>) => outcomes.filter(Either.isRight).length

withLayer(ledgers)("the limits of a key", (it) => {
  it.scoped("limit concurrent holds across two processes", function* () {
    const { admit, bench, key, ledger, org } = yield* customer()
    const other = Context.get(yield* anotherProcess, Ledger)
    const outcomes = yield* Effect.forEach(
      times(100),
      (index) => Effect.either(Holds.admit(index % 2 === 0 ? ledger : other, { org, key, upTo: cent, concurrency: 5 })),
      { concurrency: "unbounded" }
    )
    assert.strictEqual(openOf(outcomes), 5)
    assert.strictEqual(yield* bench.openHolds(org), 5)
    for (const outcome of outcomes) {
      if (Either.isLeft(outcome)) assert.deepInclude(outcome.left, { _tag: "ConcurrencyLimited", limit: 5 })
    }
    const [first] = outcomes.filter(Either.isRight)
    if (first !== undefined)
      yield* Effect.zipRight(Holds.release(ledger, first.right), Holds.release(other, first.right))
    yield* admit({ concurrency: 5 })
    assert.strictEqual((yield* Effect.flip(admit({ concurrency: 5 })))._tag, "ConcurrencyLimited")
    yield* admit({ concurrency: 6 })
  })

  it.effect("count holds placed before the limit was set, and open jobs", function* () {
    const { admit, ids, key, ledger, org } = yield* customer()
    const jobOf = () => ({ id: ids.uuid(), org, key, amount: cent })
    yield* admit({})
    const job = yield* ledger.job.hold(jobOf(), { concurrency: 2 })
    assert.deepStrictEqual(yield* ledger.job.hold(job, { concurrency: 2 }), job)
    for (const refused of [
      yield* Effect.flip(admit({ concurrency: 2 })),
      yield* Effect.flip(ledger.job.hold(jobOf(), { concurrency: 2 }))
    ])
      assert.deepInclude(refused, { _tag: "ConcurrencyLimited", limit: 2 })
    yield* ledger.job.settle(job, cent)
    yield* admit({ concurrency: 2 })
    assert.strictEqual((yield* Effect.flip(ledger.job.hold(jobOf(), { concurrency: 2 })))._tag, "ConcurrencyLimited")
  })

  it.effect("free the slots of a dead process once its holds are swept", function* () {
    const { admit, ids, key, org, sql } = yield* customer()
    const dead = ids.uuid()
    yield* sql`INSERT INTO instances (id) VALUES (${dead})`
    yield* runWith(sql, HoldSql.place(dead, [{ id: ids.uuid(), org, key, amount: cent, rateLimit: undefined }]))
    assert.strictEqual((yield* Effect.flip(admit({ concurrency: 1 })))._tag, "ConcurrencyLimited")
    yield* sql`UPDATE instances SET beat_at = now() - interval '1 minute' WHERE id = ${dead}`
    yield* sweep
    yield* admit({ concurrency: 1 })
  })

  it.effect("reserve the tokens of a hold, and return unused ones", function* () {
    const { admit, ledger, used } = yield* customer()
    const { hold, left } = yield* admit({ tpm: 100, tokens: 70 })
    assert.deepStrictEqual(left.tokens, { limit: 100, remaining: 30, resetSeconds: 60 })
    const refused = yield* Effect.flip(admit({ tpm: 100, tokens: 31 }))
    assert.deepInclude(refused, { _tag: "TokensLimited", limit: 100 })
    yield* ledger.settle(hold, cent, { usedTokens: 20 })
    assert.strictEqual(left.tokens?.remaining, 80)
    assert.strictEqual(yield* used, 20)
    const second = yield* admit({ tpm: 100, tokens: 80 })
    assert.strictEqual(yield* used, 100)
    yield* Holds.release(ledger, second.hold)
    yield* Holds.release(ledger, second.hold)
    assert.strictEqual(yield* used, 20)
    const third = yield* admit({ tpm: 100, tokens: 10 })
    yield* ledger.settle(third.hold, cent, { usedTokens: 1_000 })
    assert.strictEqual(yield* used, 30)
  })

  it.effect("admit one request of any size in an unused window, and no other", function* () {
    const { admit, ledger, used } = yield* customer()
    const outcomes = yield* Effect.forEach(times(8), () => Effect.either(admit({ tpm: 100, tokens: 5_000 })), {
      concurrency: "unbounded"
    })
    assert.strictEqual(openOf(outcomes), 1)
    assert.strictEqual(yield* used, 5_000)
    assert.strictEqual((yield* Effect.flip(admit({ tpm: 100, tokens: 1 })))._tag, "TokensLimited")
    const [first] = outcomes.filter(Either.isRight)
    if (first !== undefined) yield* Holds.release(ledger, first.right.hold)
    assert.strictEqual(yield* used, 0)
    yield* admit({ tpm: 100, tokens: 101 })
  })

  it.effect("return no tokens to another window than the hold's", function* () {
    const { admit, age, ledger, used } = yield* customer()
    const { hold, left: before } = yield* admit({ tpm: 100, tokens: 90 })
    yield* age(60)
    const next = yield* admit({ tpm: 100, tokens: 50 })
    assert.deepStrictEqual(next.left.tokens, { limit: 100, remaining: 50, resetSeconds: 60 })
    yield* Holds.release(ledger, hold)
    assert.strictEqual(yield* used, 50)
    assert.deepStrictEqual(before.tokens, { limit: 100, remaining: 50, resetSeconds: 60 })
    yield* age(20)
    const { left } = yield* admit({ tpm: 100, tokens: 1 })
    assert.deepStrictEqual(left.tokens, { limit: 100, remaining: 49, resetSeconds: 40 })
  })

  it.effect("are checked in order, and a refused hold uses nothing", function* () {
    const { bench, key, ledger, org, used } = yield* customer()
    const refusal = (rateLimit: number, concurrency: number, amount: number, upTo = cent) =>
      Effect.map(
        Effect.flip(Holds.admit(ledger, { org, key, upTo, rateLimit, concurrency, tokens: { limit: 10, amount } })),
        ({ _tag }) => _tag
      )
    yield* Holds.admit(ledger, { org, key, upTo: cent, tokens: { limit: 10, amount: 8 } })
    const rich = NanoUsd(1_000n * one)
    assert.strictEqual(yield* refusal(9, 1, 5, rich), "TokensLimited")
    assert.strictEqual(yield* refusal(9, 1, 2, rich), "ConcurrencyLimited")
    assert.strictEqual(yield* refusal(9, 2, 2, rich), "InsufficientCredits")
    yield* bench.cap(key, NanoUsd(0n), "day")
    assert.strictEqual(yield* refusal(9, 1, 5, rich), "SpendLimitReached")
    assert.strictEqual(yield* refusal(1, 1, 5, rich), "RateLimited")
    assert.strictEqual(yield* used, 8)
    assert.strictEqual(yield* bench.openHolds(org), 1)
  })

  it.effect("ignore holds of the batch that were refused", function* () {
    const { key, ledger, org, used } = yield* customer()
    const wanted = [900, 20, 900, 20, 20, 20]
    yield* Holds.admit(ledger, { org, key, upTo: cent, tokens: { limit: 100, amount: 10 } })
    const byTokens = yield* Effect.forEach(
      wanted,
      (amount) => Effect.either(Holds.admit(ledger, { org, key, upTo: cent, tokens: { limit: 100, amount } })),
      { concurrency: "unbounded" }
    )
    assert.deepStrictEqual(
      byTokens.map(Either.isRight),
      wanted.map((amount) => amount === 20)
    )
    assert.strictEqual(yield* used, 90)
    const poor = yield* customer(10n * one)
    const sizes = [100n, 1n, 100n, 100n, 1n, 1n]
    const byPlaces = yield* Effect.forEach(
      sizes,
      (size) =>
        Effect.either(
          Holds.admit(poor.ledger, { org: poor.org, key: poor.key, upTo: NanoUsd(size * one), concurrency: 3 })
        ),
      { concurrency: "unbounded" }
    )
    assert.deepStrictEqual(
      byPlaces.map(Either.isRight),
      sizes.map((size) => size === 1n)
    )
  })
})

/** The answer to the first statement that places limited holds is lost, and no other. */
const forgettingOnce = losing("answer", "taken_tokens AS")

withLayer(Layer.provideMerge(observedProcess(), forgettingOnce))("a repeated statement", (it) => {
  it.effect("uses no second slot and no tokens twice, and returns them", function* () {
    const { admit, bench, ledger, org, used } = yield* customer()
    const { hold, left } = yield* admit({ concurrency: 1, tpm: 100, tokens: 60 })
    assert.strictEqual(left.tokens?.remaining, 40)
    assert.strictEqual(yield* used, 60)
    assert.strictEqual(yield* bench.openHolds(org), 1)
    yield* Holds.release(ledger, hold)
    assert.strictEqual(yield* used, 0)
  })

  it.effect("returns no tokens to a window that began after the hold", function* () {
    const { age, ids, key, org, sql } = yield* customer()
    const instance = yield* (yield* Instance).id
    const tokens = { limit: 100, amount: 60 }
    const wanted: Hold = { id: ids.uuid(), org, key, amount: cent }
    const place = Effect.map(
      runWith(sql, HoldSql.place(instance, [{ ...wanted, rateLimit: undefined, tokens }])),
      ([placed]) => placed?.tokens ?? assert.fail("no window")
    )
    assert.isString((yield* place).window)
    assert.isString((yield* place).window)
    yield* age(60)
    const { used, window } = yield* place
    assert.deepStrictEqual({ used, window }, { used: 0, window: undefined })
    const next = { ...wanted, id: ids.uuid(), rateLimit: undefined, tokens }
    yield* runWith(sql, HoldSql.place(instance, [next]))
    assert.deepInclude(yield* place, { used: 60, window: undefined })
  })
})
