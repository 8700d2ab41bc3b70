import { Effect, Logger, LogLevel } from "effect"
import { assert, describe, it } from "../harness/It.ts"
import * as Chaos from "./Chaos.ts"
import * as Schedule from "./Schedule.ts"

const { CHAOS_MINUTES = "", CHAOS_SEED = "s30" } = process.env
const seed = CHAOS_SEED
const isLong = CHAOS_MINUTES !== ""
const options: Chaos.Options = isLong
  ? { seed, millis: Number(CHAOS_MINUTES) * 60_000, pace: 1, hurry: false }
  : { seed, millis: 20_000, pace: 0.2, hurry: true }
const again = isLong
  ? `npm run chaos -- --minutes ${CHAOS_MINUTES} --seed ${seed}`
  : `CHAOS_SEED=${seed} npx vitest run test/chaos/Chaos.test.ts`

describe("chaos", () => {
  it("the same seed makes the same schedule, and another seed another", () => {
    const of = (name: string) => Schedule.make({ seed: name, millis: 600_000, pace: 1 })
    assert.deepStrictEqual(of("a"), of("a"))
    assert.notDeepEqual(of("a"), of("b"))
    const kinds = new Set(of("a").map(({ fault }) => fault.kind))
    assert.strictEqual(kinds.size, 21, "ten minutes have every fault")
  })

  it.live(
    "two gateways lose, double and hide nothing under faults of every part",
    () =>
      Effect.gen(function* () {
        const report = yield* Chaos.run(options)
        const text = Chaos.show(report, again)
        yield* Effect.sync(() => process.stdout.write(`chaos, seed ${seed}: ${text}\n`))
        assert.isAbove(report.history.calls.length, 100, "there was load")
        assert.deepStrictEqual(
          report.findings.map(({ detail, rule }) => `${rule}: ${detail}`),
          []
        )
      }).pipe(Effect.scoped, Logger.withMinimumLogLevel(LogLevel.None)),
    options.millis + 240_000
  )
})
