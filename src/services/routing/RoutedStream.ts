import { Effect, ExecutionStrategy, Exit, FiberId, Option, Runtime, Scope } from "effect"
import { type ChatEvent, type ChatRequest, isDelta } from "../../domain/Chat.ts"
import { TimedOut, UpstreamFailed } from "../../domain/Failure.ts"
import type { Route } from "../../domain/Model.ts"
import { type Attempt, streamTimeout } from "./Attempt.ts"
import type { RoutingServices } from "./Failover.ts"
import { type ChatAdapter, type ChatPull, ProviderFailure } from "./Provider.ts"

export interface RoutedStream {
  readonly route: Route
  /** Call it with the events of each `pull`. */
  readonly observe: (events: ReadonlyArray<ChatEvent>) => void
  /** Everything up to the first delta; without a delta only where the answer is empty. */
  readonly first: ReadonlyArray<ChatEvent>
  /** Fails with none at the end, and with the client's error at a break. */
  readonly pull: Effect.Effect<ReadonlyArray<ChatEvent>, Option.Option<UpstreamFailed | TimedOut>>
}

export interface StreamClient {
  /** Ends the connection of a client that keeps the stream waiting, now or for much of its time; else false. */
  readonly disconnectStalled: () => boolean
}

export interface StreamOptions {
  /** Deadlines up to the first delta count from then, on the monotonic clock. */
  readonly since?: number | undefined
  readonly client?: StreamClient | undefined
}

interface OpenedStream extends RoutedStream {
  readonly call: Scope.CloseableScope
  end: Exit.Exit<void, ProviderFailure>
}

const clientLeft = Exit.interrupt(FiberId.none)
const outOfTime = Exit.fail(streamTimeout)

export const openStream = (
  adapter: ChatAdapter,
  request: ChatRequest,
  attempt: Attempt<Route>,
  scope: Scope.Scope,
  { client }: StreamOptions
) =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const { route } = attempt
      const call = yield* Scope.fork(scope, ExecutionStrategy.sequential)
      const source = yield* adapter.stream(route, request).pipe(
        Effect.flatMap((pull) => untilDelta(pull, attempt)),
        Scope.extend(call),
        restore,
        Effect.onError((cause) => Scope.close(call, Exit.failCause(cause)))
      )
      const opened: OpenedStream = {
        route,
        observe: (events) => attempt.traceEvents(events),
        first: source.first,
        call,
        end: clientLeft,
        pull: Effect.catchAll(source.pull, (end) => endStream(opened, end, client))
      }
      return opened
    })
  )

/** Holds back an empty text, usage, and a finish without content. */
const untilDelta = Effect.fnUntraced(function* (pull: ChatPull, attempt: Attempt<Route>) {
  const first: Array<ChatEvent> = []
  while (true) {
    const next = yield* Effect.either(pull)
    if (next._tag === "Right") {
      first.push(...next.right)
      attempt.received = { route: attempt.route, events: first }
      if (next.right.some(({ type }) => type === "begin")) attempt.beginOutput()
      attempt.traceEvents(next.right)
      if (next.right.some(isDelta)) return { first, pull }
      continue
    }
    if (Option.isSome(next.left)) return yield* next.left.value
    if (first.some(({ type }) => type === "finish")) return { first, pull: Effect.fail(Option.none()) }
    return yield* new ProviderFailure({ class: "retry", status: 200, detail: "a stream without output or finish" })
  }
})

/** The end of the stream's time is a departure where the client keeps it waiting, else a break. */
export const watch = (
  { deadlines }: RoutingServices,
  endsAt: number,
  attempt: Attempt<Route>,
  opened: OpenedStream,
  { client }: StreamOptions
) =>
  Effect.flatMap(Effect.runtime(), (runtime) => {
    const cancel = deadlines.schedule(endsAt, () => {
      if (client?.disconnectStalled() === true) return
      opened.end = outOfTime
      Runtime.runFork(runtime, Scope.close(opened.call, Exit.void))
    })
    return Scope.addFinalizer(
      opened.call,
      Effect.suspend(() => {
        cancel()
        return attempt.record(opened.end)
      })
    )
  })

/** Providers cut off those who read too slowly. */
const mayBeCutOff = ({ class: kind }: ProviderFailure): boolean => kind === "network" || kind === "timeout"

const endStream = (opened: OpenedStream, end: Option.Option<ProviderFailure>, client: StreamClient | undefined) => {
  if (opened.end === outOfTime) return Effect.fail(Option.some(new TimedOut()))
  // An interrupted close would leave its other finalizers out.
  const close = Effect.uninterruptible(Scope.close(opened.call, Exit.void))
  // The departure then interrupts the stream.
  if (Option.exists(end, mayBeCutOff) && client?.disconnectStalled() === true)
    return Effect.zipRight(close, Effect.never)
  opened.end = Option.match(end, { onNone: () => Exit.void, onSome: Exit.fail })
  const failure = Option.map(end, (broken) => (broken.class === "timeout" ? new TimedOut() : new UpstreamFailed()))
  return Effect.zipRight(close, Effect.fail(failure))
}
