import { Effect, FastCheck as fc, Layer, Logger, LogLevel, Runtime } from "effect"
import { LedgerAdmin } from "../../src/services/ledger/LedgerAdmin.ts"
import { runs } from "../harness/Cases.ts"
import { bench } from "../harness/database/MoneyProcess.ts"
import * as Postgres from "../harness/database/Postgres.ts"
import { assert, describe, it } from "../harness/It.ts"
import { cases } from "./LedgerCases.ts"
import { type Command, keys, orgs } from "./LedgerModel.ts"
import { processes, runCommands } from "./LedgerRun.ts"

const by = fc.nat(1)
const amount = fc.oneof(fc.nat(12), fc.nat(120))
const key = fc.nat(keys.length - 1)
const hold = fc.nat(9)

const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant<"top up">("top up"),
      org: fc.nat(orgs.length - 1),
      amount: fc.integer({ min: 1, max: 50 })
    })
  },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant<"hold">("hold"), by, key, amount, canReduceHold: fc.boolean() })
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant<"burst">("burst"),
      key,
      amounts: fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 2, maxLength: 6 })
    })
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant<"hold for a job">("hold for a job"), by, key, amount }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant<"settle">("settle"), by, hold, cost: amount }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant<"release">("release"), hold }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant<"refund">("refund"), by, hold }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant<"race">("race"), hold, costs: fc.tuple(amount, amount) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant<"crash">("crash"), by }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant<"step">("step"), seconds: fc.constantFrom(15, 30, 60) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant<"sweep">("sweep") }) }
)

const seed = process.env["MODEL_SEED"] === undefined ? {} : { seed: Number(process.env["MODEL_SEED"]) }

const services = bench.pipe(Layer.provideMerge(LedgerAdmin.layer), Layer.provideMerge(Postgres.layer))

describe("the ledger of two processes", () => {
  it.live(
    "does what its model does, whatever is asked of it, and its books balance",
    () =>
      Effect.gen(function* () {
        const both = yield* processes
        const run = Runtime.runPromise(yield* Effect.runtime<Layer.Layer.Success<typeof services>>())
        for (const kept of cases) yield* runCommands(both, kept)
        const property = fc.asyncProperty(fc.array(command, { minLength: 1, maxLength: 14 }), (commands) =>
          run(runCommands(both, commands))
        )
        yield* Effect.promise(() => fc.assert(property, { numRuns: runs(400), ...seed }))
        assert.deepStrictEqual((yield* (yield* LedgerAdmin).verify).violations, [])
      }).pipe(Effect.scoped, Effect.provide(services), Logger.withMinimumLogLevel(LogLevel.None)),
    600_000
  )
})
