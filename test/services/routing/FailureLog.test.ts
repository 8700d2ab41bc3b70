import { Effect, Logger, TestClock } from "effect"
import type { ProviderRouter } from "../../../src/services/routing/ProviderRouter.ts"
import { answers, content, fails, failure, model, ProviderFake, type Step, streams } from "../../fakes/ProviderFake.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { a, complete, outage, routed, streamWhole } from "./RoutedCalls.ts"

/** What is logged while the route `a` takes these steps and the test asks for chats. */
const logged = <A, E>(
  steps: ReadonlyArray<Step>,
  test: (ask: Effect.Effect<void>) => Effect.Effect<A, E>,
  isStream = false
) =>
  Effect.gen(function* () {
    const lines: Array<string> = []
    const logger = Logger.make(({ logLevel, message }) => lines.push(`${logLevel.label} ${String(message)}`))
    yield* routed(new ProviderFake().on(a, ...steps), function* () {
      const ask = isStream ? Effect.scoped(Effect.asVoid(streamWhole(model(a)))) : Effect.asVoid(complete(model(a)))
      yield* test(Effect.provide(Effect.ignore(ask), yield* Effect.context<ProviderRouter>()))
    }).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, logger)))
    return lines
  })

describe("the log of failed attempts", () => {
  it.effect("has one line a minute for a route, with the number of omitted failures", function* () {
    const lines = yield* logged([fails(outage)], (ask) =>
      Effect.gen(function* () {
        yield* ask
        yield* ask
        yield* ask
        yield* TestClock.adjust("1 minute")
        yield* ask
      })
    )
    const line = `WARN Route m@a failed: retry 503: ${outage.detail}`
    assert.deepStrictEqual(lines, [line, `${line} (2 more failures since the last log line)`])
  })

  it.effect("has one line when a circuit opens, with its duration", function* () {
    const lines = yield* logged([fails(outage)], (ask) =>
      Effect.zipRight(Effect.repeatN(ask, 4), Effect.zipRight(TestClock.adjust("2 seconds"), ask))
    )
    assert.deepStrictEqual(lines.slice(1), [
      "WARN Route m@a is skipped for 1s for requests of acme: its circuit opened"
    ])
  })

  it.effect("has account failures, and streams that break after output", function* () {
    const [unpaid] = yield* logged([fails(failure("account", 401))], (ask) => ask)
    assert.match(unpaid ?? "", /^WARN Route m@a failed: account 401: /)
    const [broken] = yield* logged([streams([content("Hel")], outage)], (ask) => ask, true)
    assert.match(broken ?? "", /^WARN Route m@a failed: retry 503: /)
  })

  it.effect("has nothing about invalid requests, refused content or answers", function* () {
    const steps = [fails(failure("request", 400)), fails(failure("moderation", 400)), answers()]
    assert.deepStrictEqual(yield* logged(steps, (ask) => Effect.repeatN(ask, 2)), [])
  })

  it.effect("has a provider's message on one line", function* () {
    const [line] = yield* logged([fails(failure("retry", 500, { detail: "a\nERROR b\u2028c" }))], (ask) => ask)
    assert.strictEqual(line, "WARN Route m@a failed: retry 500: a ERROR b c")
  })
})
