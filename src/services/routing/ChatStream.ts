import { Effect, ExecutionStrategy, Exit, Option, Scope } from "effect"
import { type ChatEvent, type ChatRequest, isDelta } from "../../domain/Chat.ts"
import { TimedOut, UpstreamFailed } from "../../domain/Failure.ts"
import type { Route } from "../../domain/Model.ts"
import * as Monotonic from "../Monotonic.ts"
import { type ChatAdapter, type ChatPull, ProviderFailure } from "../Provider.ts"
import type { Attempts } from "./Attempts.ts"
import type { Trial } from "./Trial.ts"

export interface RoutedStream {
  readonly route: Route
  /** Everything up to the first delta and what came with it; without a delta only where the answer is empty. */
  readonly first: ReadonlyArray<ChatEvent>
  /** Later events; fails with none at the whole end, and with what the client is told at a break. */
  readonly pull: Effect.Effect<ReadonlyArray<ChatEvent>, Option.Option<UpstreamFailed | TimedOut>>
}

export interface Opening {
  readonly adapter: ChatAdapter
  readonly request: ChatRequest
  readonly attempts: Attempts
  /** Holds the upstream call once the stream is opened. */
  readonly scope: Scope.Scope
  /** When the stream is cut, on the monotonic clock. */
  readonly endsAt: number
}

/** Opens a stream and reads it up to its first delta: until then another route can still take over. */
export const openStream = ({ adapter, attempts, endsAt, request, scope }: Opening, trial: Trial<Route>) =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const call = yield* Scope.fork(scope, ExecutionStrategy.sequential)
      const source = yield* adapter.stream(trial.route, request).pipe(
        Effect.flatMap((pull) => untilDelta(pull, (events) => (attempts.underway = { route: trial.route, events }))),
        Scope.extend(call),
        restore,
        Effect.onError((cause) => Scope.close(call, Exit.failCause(cause)))
      )
      trial.answered()
      yield* Scope.addFinalizer(
        call,
        Effect.sync(() => trial.left("cancelled"))
      )
      const cut = yield* cutAt(endsAt, call, scope, trial)
      return { route: trial.route, first: source.first, pull: watched(source.pull, cut, trial) }
    })
  )

/** Holds back what is no output: an empty text, usage, a finish without anything before it. */
const untilDelta = Effect.fnUntraced(function* (pull: ChatPull, heard: (events: ReadonlyArray<ChatEvent>) => void) {
  const first: Array<ChatEvent> = []
  while (true) {
    const next = yield* Effect.either(pull)
    if (next._tag === "Right") {
      first.push(...next.right)
      heard(first)
      if (next.right.some(isOutput)) return { first, pull }
      continue
    }
    if (Option.isSome(next.left)) return yield* next.left.value
    if (first.some(({ type }) => type === "finish")) return { first, pull: Effect.fail(Option.none()) }
    return yield* new ProviderFailure({ class: "retry", status: 200, detail: "a stream without output or finish" })
  }
})

const isOutput = (event: ChatEvent): boolean => ("text" in event ? event.text !== "" : isDelta(event))

/** Ends the upstream call when the stream's time is over, whether someone is pulling just then or not. */
const cutAt = (endsAt: number, call: Scope.CloseableScope, scope: Scope.Scope, trial: Trial<Route>) => {
  const cut = { off: false }
  const end = Effect.suspend(() => {
    cut.off = true
    const failure = new ProviderFailure({ class: "timeout", status: 200, detail: "the stream took too long" })
    return Effect.zipRight(trial.failed(failure, false), Scope.close(call, Exit.void))
  })
  return Effect.flatMap(Monotonic.millis, (now) => Effect.sleep(endsAt - now)).pipe(
    Effect.interruptible,
    Effect.zipRight(end),
    Effect.forkIn(scope),
    Effect.as(cut)
  )
}

/** Tells the trial how the stream ends. */
const watched = (pull: ChatPull, cut: { readonly off: boolean }, trial: Trial<Route>): RoutedStream["pull"] => {
  const ended = (end: Option.Option<ProviderFailure>) =>
    Effect.gen(function* () {
      if (cut.off) return yield* Effect.fail(Option.some(new TimedOut()))
      if (Option.isNone(end)) {
        trial.whole()
        return yield* Effect.fail(Option.none())
      }
      yield* trial.failed(end.value, true)
      return yield* Effect.fail(Option.some(end.value.class === "timeout" ? new TimedOut() : new UpstreamFailed()))
    })
  const guarded = Effect.catchAll(pull, ended)
  return Effect.suspend(() => (cut.off ? Effect.fail(Option.some(new TimedOut())) : guarded))
}
