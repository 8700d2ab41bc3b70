import { Deferred, Effect, Option } from "effect"
import type { ChatAnswer, ChatRequest } from "../../domain/Chat.ts"
import type { Route } from "../../domain/Model.ts"
import { everything } from "../../services/catalog/Adapters.ts"
import { TokenCounter } from "../../services/chat/TokenCounter.ts"
import type { ChatAdapter, ChatPull, ProviderFailure } from "../../services/routing/Provider.ts"
import * as EventLoop from "../../services/runtime/EventLoop.ts"
import { deltasOf, endOf } from "./Deltas.ts"
import { cancelled, cutFailure, type Faults, inject, readFaults } from "./Faults.ts"
import { limited } from "./Limits.ts"
import { scriptFor } from "./Script.ts"
import { textsOf } from "./Texts.ts"

/** What one picture counts for, whatever its size. */
const imageTokens = 85
/** Deltas that arrive together where no gap is asked for. */
const together = 4

type Closed = Effect.Effect<never, Option.Option<ProviderFailure>>

/** Fails once the scope has closed, so that a pull that waits out a gap does not outlive its stream. */
const untilClosed = Effect.acquireRelease(Deferred.make<never, Option.Option<ProviderFailure>>(), (closed) =>
  Deferred.fail(closed, Option.some(cancelled))
).pipe(Effect.map((closed): Closed => Deferred.await(closed)))

const pullOf = (answer: ChatAnswer, { cut, gap = 0 }: Faults, closed: Closed): ChatPull => {
  const deltas = deltasOf(answer)
  const breaks = cut !== undefined && cut <= deltas.length
  const events = breaks ? deltas.slice(0, cut) : [...deltas, ...endOf(answer)]
  const size = gap > 0 ? 1 : together
  let at = 0
  const next = Effect.suspend(() => {
    if (at >= events.length) return Effect.fail(breaks ? Option.some(cutFailure(cut)) : Option.none())
    const upTo = at < deltas.length ? Math.min(at + size, deltas.length) : events.length
    const found = events.slice(at, upTo)
    at = upTo
    return Effect.succeed(found)
  })
  const later = Effect.zipRight(Effect.raceFirst(Effect.sleep(gap), closed), next)
  return Effect.suspend(() => (gap > 0 && at > 0 && at < deltas.length ? later : next))
}

function* textsIn({ messages }: ChatRequest): Generator<string> {
  for (const message of messages) yield* textsOf(message)
}

const faultsOf = (route: Route, request: ChatRequest): Effect.Effect<Faults> =>
  EventLoop.run(readFaults(route, textsIn(request)), request.isLarge)

export const make = (tokens: typeof TokenCounter.Service): ChatAdapter => {
  const answerTo = Effect.fnUntraced(function* (request: ChatRequest) {
    const { answer, completion, reasoning } = yield* limited(tokens.count, request, scriptFor(request))
    const prompt = yield* tokens.prompt(request, imageTokens)
    return { ...answer, usage: { prompt, completion, cached: 0, cacheWrite: 0, reasoning } }
  })

  return {
    features: everything,
    complete: Effect.fn("Sandbox.complete")(function* (route: Route, request: ChatRequest) {
      const faults = yield* faultsOf(route, request)
      yield* inject(faults)
      const answer = yield* answerTo(request)
      if (faults.cut !== undefined && faults.cut <= deltasOf(answer).length) return yield* cutFailure(faults.cut)
      return answer
    }),
    stream: Effect.fn("Sandbox.stream")(function* (route: Route, request: ChatRequest) {
      const faults = yield* faultsOf(route, request)
      yield* inject(faults)
      const answer = yield* answerTo(request)
      return yield* Effect.map(untilClosed, (closed) => pullOf(answer, faults, closed))
    })
  }
}
