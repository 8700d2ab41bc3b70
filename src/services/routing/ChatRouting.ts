import { Array as Arr, type Context, Effect, ExecutionStrategy, Exit, FiberId, Option, Runtime, Scope } from "effect"
import { type ChatEvent, type ChatRequest, isDelta } from "../../domain/Chat.ts"
import { keepHints, needs, unsupportedCombination } from "../../domain/ChatRules.ts"
import { TimedOut, UpstreamFailed } from "../../domain/Failure.ts"
import type { ChatModel, Route } from "../../domain/Model.ts"
import { chatCharge } from "../../domain/Pricing.ts"
import * as Monotonic from "../runtime/Monotonic.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import { Affinity, overridesPreference } from "./Affinity.ts"
import { type Attempt, type CostOf, streamTimeout } from "./Attempt.ts"
import type { AttemptHistory } from "./AttemptHistory.ts"
import { setUsage, setUsageOf } from "./AttemptSpan.ts"
import { failover, type RoutingDeadlines, type RoutingServices } from "./Failover.ts"
import { type ChatAdapter, type ChatPull, ProviderFailure } from "./Provider.ts"
import { type Providers, requireAdapter } from "./Providers.ts"
import * as Candidates from "./RouteSelection.ts"

export interface RoutedStream {
  readonly route: Route
  /** Call it with the events of each `pull`. */
  readonly observe: (events: ReadonlyArray<ChatEvent>) => void
  /** Everything up to the first delta; without a delta only where the answer is empty. */
  readonly first: ReadonlyArray<ChatEvent>
  /** Fails with none at the end, and with the client's error at a break. */
  readonly pull: Effect.Effect<ReadonlyArray<ChatEvent>, Option.Option<UpstreamFailed | TimedOut>>
}

const chatCost: CostOf<Route> = ({ cost }, spent) =>
  cost === undefined || spent === "whole" ? undefined : chatCharge(cost, spent)

/** A late count is worth less to a client than an estimate. */
const countTimeout = "3 seconds"

export const makeChatRouting = (
  providers: Context.Tag.Service<Providers>,
  services: RoutingServices,
  deadlines: RoutingDeadlines
) => {
  const now = () => Monotonic.millisOf(services.clock)
  const requestMillis = deadlines.requestTimeoutSeconds * 1000
  const firstByteMillis = deadlines.firstByteTimeoutSeconds * 1000

  const findAdapter = ({ provider }: Route) => providers.get(provider.adapter)?.chat
  const declines = (request: ChatRequest, route: Route) => {
    const { native } = request
    const adapter = findAdapter(route)
    if (native?.only !== undefined && adapter?.acceptsNative?.(route, native) !== true) return native.only
    return adapter?.declines?.(route, request)
  }

  /** Drops the hints that the route cannot follow. */
  const fitHints = (request: ChatRequest, route: Route): ChatRequest => {
    const kept = keepHints(request, (capability) => route.capabilities?.has(capability) !== false)
    if (kept.webSearchIsHint !== true || !kept.webSearch || declines(kept, route) === undefined) return kept
    return keepHints(kept, (capability) => capability !== "web_search")
  }
  const findDeclinedField = (request: ChatRequest) => (route: Route) => declines(fitHints(request, route), route)

  const candidates = (model: ChatModel, request: ChatRequest): ReadonlyArray<Route> =>
    Candidates.filterCapable(model.routes, () => needs(request)).filter(
      (route) => findDeclinedField(request)(route) === undefined
    )

  const admit = (model: ChatModel, request: ChatRequest) =>
    Effect.suspend(() => {
      if (candidates(model, request).length > 0) return Effect.void
      const able = Candidates.filterCapable(model.routes, () => needs(request))
      const param = Arr.isNonEmptyReadonlyArray(able)
        ? findDeclinedField(request)(able[0])
        : Candidates.findUnservedField(model.routes, needs(request))
      return Effect.fail(unsupportedCombination(model, param ?? null))
    })

  const countTokens = (model: ChatModel, request: ChatRequest): Effect.Effect<Option.Option<number>> =>
    Effect.suspend(() => {
      const { native } = request
      const counting = candidates(model, request)
        .toSorted((one, other) => one.preference - other.preference)
        .flatMap((route) => {
          const { acceptsNative, countTokens: count } = findAdapter(route) ?? {}
          const isAble = native !== undefined && acceptsNative?.(route, native) === true
          return count !== undefined && isAble && services.circuits.isClosed(model, route, now())
            ? [count(route, request)]
            : []
        })
      const [first] = counting
      if (first === undefined) return Effect.succeedNone
      return first.pipe(
        Effect.interruptible,
        Effect.timeoutOption(countTimeout),
        Effect.map(Option.filter((counted) => counted > 0)),
        Effect.catchAll(() => Effect.succeedNone)
      )
    })

  const affinity = new Affinity()

  /** Moves the route that has the conversation's cache to the front. */
  const prefer = (routes: ReadonlyArray<Route>, { conversation }: ChatRequest, attempts: AttemptHistory) => {
    const last = conversation === undefined ? undefined : affinity.find(conversation, now())
    if (last === undefined) return routes
    attempts.preferredRoute = last.route
    return Candidates.putFirst(routes, last.route, overridesPreference(last, now()) ? "all" : "equals")
  }

  const remember = ({ conversation }: ChatRequest, { preferredRoute }: AttemptHistory, { id }: Route) => {
    if (conversation === undefined) return
    affinity.remember(conversation, id, now())
    const outcome = preferredRoute === undefined ? "new" : preferredRoute === id ? "kept" : "moved"
    Metrics.unsafeCount(Metrics.affinity, { outcome })
  }

  const planChat = (model: ChatModel, request: ChatRequest, attempts: AttemptHistory, since: number | undefined) =>
    Effect.map(Candidates.orderRoutes(candidates(model, request), request.conversation), (routes) => ({
      model,
      routes: prefer(routes, request, attempts),
      attempts,
      costOf: chatCost,
      limitMillis: since === undefined ? requestMillis : Math.max(0, requestMillis - now() + since),
      fairAttemptMillis: firstByteMillis,
      output: "text" as const
    }))

  const inlines = (model: ChatModel, request: ChatRequest) =>
    Effect.sync(() =>
      Candidates.filterCapable(model.routes, () => needs(request)).some(
        (route) => findAdapter(route)?.inlines?.(route) !== false
      )
    )

  const adaptRequest = (asked: ChatRequest, { inlines }: ChatAdapter, route: Route): ChatRequest => {
    const request = fitHints(asked, route)
    return request.inlined !== undefined && inlines?.(route) !== false
      ? { ...request, messages: request.inlined }
      : request
  }

  const complete = (model: ChatModel, request: ChatRequest, attempts: AttemptHistory, since?: number) =>
    Effect.flatMap(planChat(model, request, attempts, since), (plan) =>
      failover(services, {
        ...plan,
        attemptLimitMillis: undefined,
        ask: ({ route, span }) =>
          Effect.flatMap(requireAdapter(providers, route, "chat"), (adapter) =>
            Effect.map(adapter.complete(route, adaptRequest(request, adapter, route)), (answer) => {
              setUsage(span, answer.usage)
              remember(request, attempts, route)
              return { route, answer }
            })
          )
      })
    )

  const stream = (model: ChatModel, request: ChatRequest, attempts: AttemptHistory, since?: number) =>
    Effect.flatMap(Effect.scope, (scope) => {
      const endsAt = now() + deadlines.streamTimeoutSeconds * 1000
      return Effect.flatMap(planChat(model, request, attempts, since), (plan) =>
        failover(services, {
          ...plan,
          attemptLimitMillis: firstByteMillis,
          ask: (attempt) =>
            Effect.flatMap(requireAdapter(providers, attempt.route, "chat"), (adapter) =>
              openStream(adapter, adaptRequest(request, adapter, attempt.route), attempt, scope)
            ),
          onAnswer: (attempt, opened) => {
            remember(request, attempts, attempt.route)
            return watch(services, endsAt, attempt, opened)
          }
        })
      )
    })

  return { admit, complete, countTokens, inlines, stream }
}

interface OpenedStream extends RoutedStream {
  readonly call: Scope.CloseableScope
  end: Exit.Exit<void, ProviderFailure>
}

const clientLeft = Exit.interrupt(FiberId.none)
const outOfTime = Exit.fail(streamTimeout)

const openStream = (adapter: ChatAdapter, request: ChatRequest, attempt: Attempt<Route>, scope: Scope.Scope) =>
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
        observe: (events) => setUsageOf(attempt.span, events),
        first: source.first,
        call,
        end: clientLeft,
        pull: Effect.catchAll(source.pull, (end) => endStream(opened, end))
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
      setUsageOf(attempt.span, next.right)
      if (next.right.some(isOutput)) return { first, pull }
      continue
    }
    if (Option.isSome(next.left)) return yield* next.left.value
    if (first.some(({ type }) => type === "finish")) return { first, pull: Effect.fail(Option.none()) }
    return yield* new ProviderFailure({ class: "retry", status: 200, detail: "a stream without output or finish" })
  }
})

const isOutput = (event: ChatEvent): boolean => ("text" in event ? event.text !== "" : isDelta(event))

const watch = ({ deadlines }: RoutingServices, endsAt: number, attempt: Attempt<Route>, opened: OpenedStream) =>
  Effect.flatMap(Effect.runtime(), (runtime) => {
    const callOff = deadlines.schedule(endsAt, () => {
      opened.end = outOfTime
      Runtime.runFork(runtime, Scope.close(opened.call, Exit.void))
    })
    return Scope.addFinalizer(
      opened.call,
      Effect.suspend(() => {
        callOff()
        return attempt.record(opened.end)
      })
    )
  })

const endStream = (opened: OpenedStream, end: Option.Option<ProviderFailure>) => {
  if (opened.end === outOfTime) return Effect.fail(Option.some(new TimedOut()))
  opened.end = Option.match(end, { onNone: () => Exit.void, onSome: Exit.fail })
  const failure = Option.map(end, (broken) => (broken.class === "timeout" ? new TimedOut() : new UpstreamFailed()))
  return Effect.zipRight(Scope.close(opened.call, Exit.void), Effect.fail(failure))
}
