/**
 * A provider without a provider, for trying the gateway offline. Its answers depend on nothing but the request: they
 * keep to max_tokens, stop, tools, tool_choice and response_format, show reasoning for a reasoning_effort, and say how
 * many pictures they see. With tools and no tool_choice it calls those that the last user message names, or else the
 * first one, and answers in text once results have come back.
 *
 * Bad weather is asked for in the prompt, in the text of any message. A bracket may hold several switches, and a
 * prompt several brackets; what is unknown or malformed is ignored.
 *
 * - `[sandbox status=503]` fails with this status, 400 to 599
 * - `[sandbox delay=5000]` waits this many ms before answering or failing
 * - `[sandbox gap=100]` waits this many ms between the deltas of a stream
 * - `[sandbox cut=3]` breaks off after this many deltas; an answer in one piece breaks as well
 * - `[sandbox moderation]` refuses the content
 * - `routes=1` in a bracket limits it to the model's first route, `routes=2` to its first two: providers named
 *   `sandbox`, `sandbox-b` and so on
 */
import { Deferred, Effect, Option } from "effect"
import type { ChatAnswer, ChatRequest } from "../domain/Chat.ts"
import type { Route } from "../domain/Model.ts"
import type { ChatPull, Provider, ProviderFailure } from "../services/Provider.ts"
import { Tokens } from "../services/Tokens.ts"
import { deltasOf, endOf } from "./sandbox/Deltas.ts"
import { limited } from "./sandbox/Limits.ts"
import { scriptFor } from "./sandbox/Script.ts"
import { brokenOff, cancelled, failureIn, type Weather, weatherOn } from "./sandbox/Weather.ts"

/** What one picture counts for, whatever its size. */
const imageTokens = 85
/** Deltas that arrive together where the weather asks for no gap. */
const together = 4

type Closed = Effect.Effect<never, Option.Option<ProviderFailure>>

/** Fails once the scope has closed, so that a pull that waits out a gap does not outlive its stream. */
const untilClosed = Effect.acquireRelease(Deferred.make<never, Option.Option<ProviderFailure>>(), (closed) =>
  Deferred.fail(closed, Option.some(cancelled))
).pipe(Effect.map((closed): Closed => Deferred.await(closed)))

const pullOf = (answer: ChatAnswer, { cut, gap = 0 }: Weather, closed: Closed): ChatPull => {
  const deltas = deltasOf(answer)
  const breaks = cut !== undefined && cut <= deltas.length
  const events = breaks ? deltas.slice(0, cut) : [...deltas, ...endOf(answer)]
  const size = gap > 0 ? 1 : together
  let at = 0
  const next = Effect.suspend(() => {
    if (at >= events.length) return Effect.fail(breaks ? Option.some(brokenOff(cut)) : Option.none())
    const upTo = at < deltas.length ? Math.min(at + size, deltas.length) : events.length
    const found = events.slice(at, upTo)
    at = upTo
    return Effect.succeed(found)
  })
  const later = Effect.zipRight(Effect.raceFirst(Effect.sleep(gap), closed), next)
  return Effect.suspend(() => (gap > 0 && at > 0 && at < deltas.length ? later : next))
}

export const make: Effect.Effect<Provider, never, Tokens> = Effect.gen(function* () {
  const tokens = yield* Tokens

  const answerTo = Effect.fnUntraced(function* (request: ChatRequest) {
    const { answer, completion, reasoning } = yield* limited(tokens.count, request, scriptFor(request))
    const prompt = yield* tokens.prompt(request, imageTokens)
    return { ...answer, usage: { prompt, completion, cached: 0, cacheWrite: 0, reasoning } }
  })

  const endure = (weather: Weather): Effect.Effect<void, ProviderFailure> =>
    Effect.zipRight(weather.delay === undefined ? Effect.void : Effect.sleep(weather.delay), failureIn(weather))

  return {
    adapter: "sandbox",
    chat: {
      complete: Effect.fn("Sandbox.complete")(function* (route: Route, request: ChatRequest) {
        const weather = weatherOn(route, request)
        yield* endure(weather)
        const answer = yield* answerTo(request)
        if (weather.cut !== undefined && weather.cut <= deltasOf(answer).length) return yield* brokenOff(weather.cut)
        return answer
      }),
      stream: Effect.fn("Sandbox.stream")(function* (route: Route, request: ChatRequest) {
        const weather = weatherOn(route, request)
        yield* endure(weather)
        const answer = yield* answerTo(request)
        return yield* Effect.map(untilClosed, (closed) => pullOf(answer, weather, closed))
      })
    }
  }
})
