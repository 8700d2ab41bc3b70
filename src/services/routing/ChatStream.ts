import { Effect, ExecutionStrategy, Exit, Option, Runtime, Scope } from "effect"
import { type ChatEvent, type ChatRequest, isDelta } from "../../domain/Chat.ts"
import { TimedOut, UpstreamFailed } from "../../domain/Failure.ts"
import type { Route } from "../../domain/Model.ts"
import type { Deadlines } from "../runtime/Deadlines.ts"
import type { Attempt } from "./Attempt.ts"
import type { Attempts } from "./Attempts.ts"
import { type ChatAdapter, type ChatPull, ProviderFailure } from "./Provider.ts"

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
  readonly deadlines: Deadlines
  /** When the stream is cut, on the monotonic clock. */
  readonly endsAt: number
}

/** Opens a stream and reads it up to its first delta: until then another route can still take over. */
export const openStream = (opening: Opening, attempt: Attempt<Route>) =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const { adapter, attempts, request, scope } = opening
      const call = yield* Scope.fork(scope, ExecutionStrategy.sequential)
      const source = yield* adapter.stream(attempt.route, request).pipe(
        Effect.flatMap((pull) => untilDelta(pull, (events) => (attempts.underway = { route: attempt.route, events }))),
        Scope.extend(call),
        restore,
        Effect.onError((cause) => Scope.close(call, Exit.failCause(cause)))
      )
      attempt.answered()
      yield* Scope.addFinalizer(
        call,
        Effect.sync(() => attempt.left("cancelled"))
      )
      const cut = yield* cutAt(opening, call, attempt)
      return { route: attempt.route, first: source.first, pull: watched(source.pull, cut, attempt) }
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

interface Cut {
  isOver: boolean
}

/** Ends the upstream call when the stream's time is over, whether someone is pulling just then or not. */
const cutAt = ({ deadlines, endsAt }: Opening, call: Scope.CloseableScope, attempt: Attempt<Route>) =>
  Effect.flatMap(Effect.runtime(), (runtime) => {
    const cut: Cut = { isOver: false }
    const failure = new ProviderFailure({ class: "timeout", status: 200, detail: "the stream took too long" })
    const callOff = deadlines.schedule(endsAt, () => {
      cut.isOver = true
      Runtime.runFork(runtime, Effect.zipRight(attempt.failed(failure, false), Scope.close(call, Exit.void)))
    })
    return Effect.as(Scope.addFinalizer(call, Effect.sync(callOff)), cut)
  })

/** Tells the attempt how the stream ends. */
const watched = (pull: ChatPull, cut: Cut, attempt: Attempt<Route>): RoutedStream["pull"] =>
  Effect.catchAll(pull, (end): Effect.Effect<never, Option.Option<UpstreamFailed | TimedOut>> => {
    if (cut.isOver) return Effect.fail(Option.some(new TimedOut()))
    if (Option.isNone(end)) {
      attempt.whole()
      return Effect.fail(Option.none())
    }
    const told = end.value.class === "timeout" ? new TimedOut() : new UpstreamFailed()
    return Effect.zipRight(attempt.failed(end.value, true), Effect.fail(Option.some(told)))
  })
