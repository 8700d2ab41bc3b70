import { SqlClient } from "@effect/sql"
import { Context, Effect, Either, FastCheck as fc, Layer, Runtime, Schema } from "effect"
import type { Hold } from "../../src/domain/Hold.ts"
import { NanoUsd } from "../../src/domain/Money.ts"
import { TokenWindows } from "../../src/services/access/RateLimiter.ts"
import { Ledger } from "../../src/services/ledger/Ledger.ts"
import { runs } from "../harness/Cases.ts"
import * as Holds from "../harness/database/Holds.ts"
import { account, anotherProcessWith, ledgers, one } from "../harness/database/MoneyProcess.ts"
import { assert, describe, it } from "../harness/It.ts"
import { type Command, LimitsModel, limits, type Verdict } from "./LimitsModel.ts"

const tokens = fc.oneof({ weight: 5, arbitrary: fc.integer({ min: 1, max: 60 }) }, fc.constant(400))
const hold = fc.nat(9)

const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant<"admit">("admit"), by: fc.nat(1), tokens }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant<"burst">("burst"),
      tokens: fc.array(tokens, { minLength: 2, maxLength: 6 })
    })
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant<"job">("job") }) },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant<"settle">("settle"), hold, used: fc.oneof(fc.nat(30), fc.nat(500)) })
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant<"release">("release"), hold }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant<"step">("step"), seconds: fc.constantFrom(20, 60) }) }
)

const seed = process.env["MODEL_SEED"] === undefined ? {} : { seed: Number(process.env["MODEL_SEED"]) }

const Windows = Schema.decodeUnknown(Schema.Array(Schema.Struct({ used: Schema.NumberFromString })))

const verdictOf = (outcome: Either.Either<unknown, { readonly _tag: string }>): string =>
  Either.isRight(outcome) ? "held" : outcome.left._tag

type Processes = readonly [Ledger["Type"], Ledger["Type"]]

/** By so many microseconds a step has moved the beginning of a window, by which a hold knows it. */
type Moved = Map<string, bigint>

const following = (moved: Moved) =>
  Layer.map(TokenWindows.layer, (context) => {
    const limiter = Context.get(context, TokenWindows)
    const beginning = (window: string) => String(BigInt(window) - (moved.get(window) ?? 0n))
    return Context.make(TokenWindows, {
      ...limiter,
      returnTokens: (owner, taken, unused) =>
        limiter.returnTokens(owner, { ...taken, window: beginning(taken.window) }, unused)
    })
  })

/** Runs the commands on a key with both limits and on its model side by side, and fails where they differ. */
const runCommands = Effect.fnUntraced(function* (both: Processes, moved: Moved, commands: ReadonlyArray<Command>) {
  const { bench, ids, key, org } = yield* account(1_000n * one)
  const sql = yield* SqlClient.SqlClient
  const model = new LimitsModel()
  const held: Array<{ readonly hold: Hold; readonly by: number }> = []
  moved.clear()
  const currentWindow = Effect.map(
    sql<{ readonly window: string }>`SELECT window_id(started_at)::text AS window FROM token_windows
      WHERE key_id = ${key}`,
    ([found]) => found?.window ?? ""
  )
  const at = (by: number) => both[by] ?? both[0]
  const chosen = (number: number) => {
    const index = number % Math.max(1, held.length)
    const [expected, actual] = [model.holds[index], held[index]]
    return expected === undefined || actual === undefined ? undefined : { expected, ...actual }
  }

  const ask = (by: number, amount: number) => {
    const { concurrency, tpm } = limits
    const wanted = { org, key, upTo: NanoUsd(1n), concurrency, tokens: { limit: tpm, amount } }
    return Effect.either(
      Effect.tap(
        Effect.map(Holds.admit(at(by), wanted), (hold) => ({ hold })),
        Effect.flatMap(currentWindow, (window) => Effect.sync(() => moved.set(window, moved.get(window) ?? 0n)))
      )
    )
  }
  const note = (by: number, amount: number, outcome: Effect.Effect.Success<ReturnType<typeof ask>>): void => {
    if (Either.isLeft(outcome)) return
    held.push({ ...outcome.right, by })
    model.admit(amount)
  }

  const burst = Effect.fnUntraced(function* (wanted: ReadonlyArray<number>) {
    const isUntouched = !model.isRunning || model.used === 0
    const outcomes = yield* Effect.forEach(wanted, (amount, index) => ask(index % 2, amount), {
      concurrency: "unbounded"
    })
    for (const [index, outcome] of outcomes.entries()) note(index % 2, wanted[index] ?? 0, outcome)
    const admitted = wanted.filter((_, index) => outcomes[index] !== undefined && Either.isRight(outcomes[index]))
    const isFirstAlone = isUntouched && admitted.length === 1
    assert.isTrue(admitted.length === 0 || isFirstAlone || model.used <= limits.tpm, `${model.used} tokens`)
    assert.isAtMost(model.open, limits.concurrency)
    for (const [index, outcome] of outcomes.entries()) {
      if (Either.isRight(outcome)) continue
      const verdict = verdictOf(outcome)
      if (verdict === "TokensLimited") assert.isAbove(model.used + (wanted[index] ?? 0), limits.tpm)
      else assert.deepStrictEqual({ verdict, open: model.open }, { verdict: "ConcurrencyLimited", open: 3 })
    }
  })

  const run = Effect.fnUntraced(function* (command: Command) {
    if (command.do === "burst") return yield* burst(command.tokens)
    if (command.do === "step") {
      model.step(command.seconds)
      for (const [window, by] of moved) moved.set(window, by + BigInt(command.seconds) * 1_000_000n)
      yield* sql`UPDATE token_windows SET started_at = started_at - ${command.seconds} * interval '1 second'
        WHERE key_id = ${key}`
      return
    }
    if (command.do === "admit") {
      const expected: Verdict = model.verdictOf(command.tokens)
      const outcome = yield* ask(command.by, command.tokens)
      assert.strictEqual(verdictOf(outcome), expected)
      return note(command.by, command.tokens, outcome)
    }
    if (command.do === "job") {
      const expected = model.verdictOfJob
      const job = { id: ids.uuid(), org, key, amount: NanoUsd(1n) }
      assert.strictEqual(
        verdictOf(yield* Effect.either(both[0].job.hold(job, { concurrency: limits.concurrency }))),
        expected
      )
      if (expected !== "held") return
      held.push({ hold: job, by: 0 })
      return model.admitJob()
    }
    const one = chosen(command.hold)
    if (one === undefined) return
    const { by, expected, hold } = one
    const used = command.do === "settle" ? command.used : 0
    const ledger = at(by)
    if (!expected.isOpen) return
    model.close(expected, used)
    if (expected.isJob) yield* ledger.job.release(hold)
    else if (command.do === "release") yield* Holds.release(ledger, hold)
    else yield* ledger.settle(hold, NanoUsd(1n), { usedTokens: used })
  })

  for (const command of commands) {
    yield* run(command)
    assert.strictEqual(yield* bench.openHolds(org), model.open)
    const [window] = yield* Effect.flatMap(sql`SELECT used FROM token_windows WHERE key_id = ${key}`, Windows)
    assert.strictEqual(window?.used ?? 0, model.used)
    assert.isAtLeast(model.used, 0)
  }
})

describe("the limits of a key at two processes", () => {
  it.live(
    "do what their model does: never above the limit, and not refused while there is room",
    () =>
      Effect.gen(function* () {
        const moved: Moved = new Map()
        const left = Context.get(yield* anotherProcessWith(following(moved)), Ledger)
        const right = Context.get(yield* anotherProcessWith(following(moved)), Ledger)
        const run = Runtime.runPromise(yield* Effect.runtime<Layer.Layer.Success<typeof ledgers>>())
        const property = fc.asyncProperty(fc.array(command, { minLength: 1, maxLength: 14 }), (commands) =>
          run(runCommands([left, right], moved, commands))
        )
        yield* Effect.promise(() => fc.assert(property, { numRuns: runs(100), ...seed }))
      }).pipe(Effect.scoped, Effect.provide(ledgers)),
    600_000
  )
})
