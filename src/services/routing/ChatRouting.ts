import { Array as Arr, type Context, Effect, ExecutionStrategy, Exit, FiberId, Option, Runtime, Scope } from "effect"
import { type ChatAnswer, type ChatEvent, type ChatRequest, isDelta } from "../../domain/Chat.ts"
import {
  dropUnsupportedHints,
  isolateField,
  requiredCapabilities,
  unsupportedCombination,
  unsupportedField
} from "../../domain/ChatRules.ts"
import { type InvalidRequest, type RoutingFailure, TimedOut, UpstreamFailed } from "../../domain/Failure.ts"
import type { ChatModel, Route } from "../../domain/Model.ts"
import { boundUsage, chatCharge } from "../../domain/Pricing.ts"
import * as Metrics from "../metrics/Metrics.ts"
import { monotonicMillisOf } from "../runtime/System.ts"
import { type Attempt, type AttemptHistory, type CostOf, streamTimeout } from "./Attempt.ts"
import { failover, type RoutePlan, type RoutingDeadlines, type RoutingServices } from "./Failover.ts"
import { type ChatAdapter, type ChatPull, missingAdapter, ProviderFailure, type Providers } from "./Provider.ts"
import * as Candidates from "./RouteSelection.ts"

export interface RoutedStream {
  readonly route: Route
  /** Call it with the events of each `pull`, for the trace. */
  readonly observe: (events: ReadonlyArray<ChatEvent>) => void
  /** The events up to and including the first delta. If the answer is empty, these are all events. */
  readonly firstEvents: ReadonlyArray<ChatEvent>
  /** Fails with `Option.none()` at the end, and with the client's error if the stream breaks. */
  readonly pull: Effect.Effect<ReadonlyArray<ChatEvent>, Option.Option<UpstreamFailed | TimedOut>>
}

export interface StreamClient {
  /**
   * Disconnects the client if it reads too slowly, or did so for much of the stream. Returns false if it is not slow.
   */
  readonly disconnectStalled: () => boolean
}

export interface StreamOptions {
  /** The start of the deadlines up to the first delta, on the monotonic clock. */
  readonly since?: number | undefined
  readonly client?: StreamClient | undefined
}

interface OpenedStream extends RoutedStream {
  readonly call: Scope.CloseableScope
  end: Exit.Exit<void, ProviderFailure>
}

const interruptedExit = Exit.interrupt(FiberId.none)
const timeoutExit = Exit.fail(streamTimeout)

const openStream = (
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
        Effect.flatMap((pull) => readFirstDelta(pull, attempt)),
        Scope.extend(call),
        restore,
        Effect.onError((cause) => Scope.close(call, Exit.failCause(cause)))
      )
      const openedStream: OpenedStream = {
        route,
        observe: (events) => attempt.traceEvents(events),
        firstEvents: source.firstEvents,
        call,
        end: interruptedExit,
        pull: Effect.catchAll(source.pull, (end) => endStream(openedStream, end, client))
      }
      return openedStream
    })
  )

/** Returns the events up to the first delta, because only a failure before it can fail over. */
const readFirstDelta = Effect.fnUntraced(function* (pull: ChatPull, attempt: Attempt<Route>) {
  const firstEvents: Array<ChatEvent> = []
  while (true) {
    const next = yield* Effect.either(pull)
    if (next._tag === "Right") {
      firstEvents.push(...next.right)
      attempt.received = { route: attempt.route, events: firstEvents }
      if (next.right.some(({ type }) => type === "begin")) attempt.beginOutput()
      attempt.traceEvents(next.right)
      if (next.right.some(isDelta)) return { firstEvents, pull }
      continue
    }
    if (Option.isSome(next.left)) return yield* next.left.value
    if (firstEvents.some(({ type }) => type === "finish")) return { firstEvents, pull: Effect.fail(Option.none()) }
    return yield* new ProviderFailure({
      class: "retry",
      status: 200,
      detail: "the stream ended without output or finish"
    })
  }
})

/** Schedules the deadline of a stream. A slow client is then disconnected. Otherwise the stream breaks. */
const scheduleEnd = (
  { deadlines }: RoutingServices,
  endsAt: number,
  attempt: Attempt<Route>,
  openedStream: OpenedStream,
  { client }: StreamOptions
) =>
  Effect.flatMap(Effect.runtime(), (runtime) => {
    const cancel = deadlines.schedule(endsAt, () => {
      if (client?.disconnectStalled() === true) return
      openedStream.end = timeoutExit
      Runtime.runFork(runtime, Scope.close(openedStream.call, Exit.void))
    })
    return Scope.addFinalizer(
      openedStream.call,
      Effect.suspend(() => {
        cancel()
        return attempt.record(openedStream.end)
      })
    )
  })

/** Returns whether a slow client may have caused the failure. Providers close connections that read too slowly. */
const mayBeSlowClient = ({ class: kind }: ProviderFailure): boolean => kind === "network" || kind === "timeout"

const endStream = (
  openedStream: OpenedStream,
  end: Option.Option<ProviderFailure>,
  client: StreamClient | undefined
) => {
  if (openedStream.end === timeoutExit) return Effect.fail(Option.some(new TimedOut()))
  // An interrupted close would skip the remaining finalizers.
  const close = Effect.uninterruptible(Scope.close(openedStream.call, Exit.void))
  // Waits forever, because the disconnection interrupts this fiber.
  if (Option.exists(end, mayBeSlowClient) && client?.disconnectStalled() === true)
    return Effect.zipRight(close, Effect.never)
  openedStream.end = Option.match(end, { onNone: () => Exit.void, onSome: Exit.fail })
  const failure = Option.map(end, (cause) => (cause.class === "timeout" ? new TimedOut() : new UpstreamFailed()))
  return Effect.zipRight(close, Effect.fail(failure))
}

/** Returns a function that computes the cost of a failed attempt. */
const chatCostOf =
  (model: ChatModel, request: ChatRequest): CostOf<Route> =>
  ({ cost }, spent) =>
    cost === undefined || spent === "complete" ? undefined : chatCharge(cost, boundUsage(spent, model, request).usage)

/** After this time, the gateway's own estimate replaces the provider's count. */
const countTimeout = "3 seconds"

export interface RoutedChat {
  readonly route: Route
  readonly answer: ChatAnswer
}

/** Routes chat requests. `ProviderRouter` documents the methods. */
export class ChatRouting {
  readonly #providers: Context.Tag.Service<Providers>
  readonly #services: RoutingServices
  readonly #requestMillis: number
  readonly #firstByteMillis: number
  readonly #streamMillis: number
  readonly #affinity = new Candidates.Affinity()

  constructor(providers: Context.Tag.Service<Providers>, services: RoutingServices, deadlines: RoutingDeadlines) {
    this.#providers = providers
    this.#services = services
    this.#requestMillis = deadlines.requestTimeoutSeconds * 1000
    this.#firstByteMillis = deadlines.firstByteTimeoutSeconds * 1000
    this.#streamMillis = deadlines.streamTimeoutSeconds * 1000
  }

  admit(model: ChatModel, request: ChatRequest): Effect.Effect<void, InvalidRequest> {
    return Effect.suspend(() => {
      if (this.#findCandidates(model, request).length > 0) return Effect.void
      const capableRoutes = Candidates.filterCapable(model.routes, () => requiredCapabilities(request))
      const param = Arr.isNonEmptyReadonlyArray(capableRoutes)
        ? this.#findRejectedFieldWithoutHints(request, capableRoutes[0])
        : Candidates.findUnservedField(model.routes, requiredCapabilities(request))
      return Effect.fail(
        param !== undefined && this.#findCandidates(model, isolateField(request, param)).length === 0
          ? unsupportedField(model, param, request)
          : unsupportedCombination(model, param ?? null)
      )
    })
  }

  inlines(model: ChatModel, request: ChatRequest): Effect.Effect<boolean> {
    return Effect.sync(() =>
      Candidates.filterCapable(model.routes, () => requiredCapabilities(request)).some(
        (route) => this.#findAdapter(route)?.requiresInlineImages?.(route) !== false
      )
    )
  }

  countTokens(model: ChatModel, request: ChatRequest): Effect.Effect<Option.Option<number>> {
    return Effect.suspend(() => {
      const [countPrompt] = this.#tokenCountsOf(model, request)
      if (countPrompt === undefined) return Effect.succeedNone
      return countPrompt.pipe(
        Effect.interruptible,
        Effect.timeoutOption(countTimeout),
        Effect.map(Option.filter((count) => count > 0)),
        Effect.catchAll(() => Effect.succeedNone)
      )
    })
  }

  complete(
    model: ChatModel,
    request: ChatRequest,
    attempts: AttemptHistory,
    startedAtMillis?: number
  ): Effect.Effect<RoutedChat, RoutingFailure> {
    return Effect.flatMap(this.#orderRoutes(model, request, attempts), (routes) =>
      failover(this.#services, this.#plan(model, request, attempts, routes, startedAtMillis), {
        cancelsCalls: (route) => this.#findAdapter(route)?.completeWithin !== undefined,
        call: (attempt) => this.#callComplete(request, attempt),
        onAnswer: (attempt, answer) => {
          const { route } = attempt
          attempt.traceUsage(answer.usage)
          this.#remember(request, attempts, route)
          attempt.succeed()
          return Effect.succeed({ route, answer })
        }
      })
    )
  }

  stream(
    model: ChatModel,
    request: ChatRequest,
    attempts: AttemptHistory,
    options: StreamOptions = {}
  ): Effect.Effect<RoutedStream, RoutingFailure, Scope.Scope> {
    return Effect.gen(this, function* () {
      const scope = yield* Effect.scope
      const routes = yield* this.#orderRoutes(model, request, attempts)
      const endsAt = this.#now() + this.#streamMillis
      const plan = {
        ...this.#plan(model, request, attempts, routes, options.since),
        attemptLimitMillis: this.#firstByteMillis,
        endsAt
      }
      return yield* failover(this.#services, plan, {
        call: (attempt) => this.#openStream(request, attempt, scope, options),
        onAnswer: (attempt, openedStream) => {
          this.#remember(request, attempts, attempt.route)
          return Effect.as(scheduleEnd(this.#services, endsAt, attempt, openedStream, options), openedStream)
        }
      })
    })
  }

  /** Returns the plan for a request without a stream. `stream` replaces its limits. */
  #plan(
    model: ChatModel,
    request: ChatRequest,
    attempts: AttemptHistory,
    routes: ReadonlyArray<Route>,
    startedAtMillis: number | undefined
  ): RoutePlan<Route> {
    const limitMillis =
      startedAtMillis === undefined
        ? this.#requestMillis
        : Math.max(0, this.#requestMillis - this.#now() + startedAtMillis)
    return {
      model,
      routes,
      attempts,
      costOf: chatCostOf(model, request),
      limitMillis,
      attemptLimitMillis: limitMillis,
      endsAt: Number.POSITIVE_INFINITY,
      minBlameMillis: this.#firstByteMillis,
      output: "text"
    }
  }

  #callComplete(request: ChatRequest, attempt: Attempt<Route>): Effect.Effect<ChatAnswer, ProviderFailure> {
    const { route } = attempt
    const adapter = this.#findAdapter(route)
    if (adapter === undefined) return missingAdapter(route, "chat")
    const routeRequest = this.#adapt(request, adapter, route)
    return adapter.completeWithin?.(attempt, route, routeRequest) ?? adapter.complete(route, routeRequest)
  }

  #openStream(request: ChatRequest, attempt: Attempt<Route>, scope: Scope.Scope, options: StreamOptions) {
    const { route } = attempt
    const adapter = this.#findAdapter(route)
    return adapter === undefined
      ? missingAdapter(route, "chat")
      : openStream(adapter, this.#adapt(request, adapter, route), attempt, scope, options)
  }

  /** Puts the route with the conversation's cache first. */
  #orderRoutes(model: ChatModel, request: ChatRequest, attempts: AttemptHistory): Effect.Effect<ReadonlyArray<Route>> {
    const { conversation } = request
    const orderedRoutes = Candidates.orderRoutes(this.#findCandidates(model, request), conversation)
    if (conversation === undefined) return orderedRoutes
    return Effect.map(orderedRoutes, (routes) => {
      const now = this.#now()
      const last = this.#affinity.find(conversation, now)
      if (last === undefined) return routes
      attempts.preferredRoute = last.route
      return Candidates.putFirst(routes, last.route, Candidates.overridesPreference(last, now) ? "all" : "equals")
    })
  }

  #remember({ conversation }: ChatRequest, { preferredRoute }: AttemptHistory, { id }: Route): void {
    if (conversation === undefined) return
    this.#affinity.remember(conversation, id, this.#now())
    const outcome = preferredRoute === undefined ? "new" : preferredRoute === id ? "kept" : "moved"
    Metrics.unsafeCount(Metrics.affinity, { outcome })
  }

  #findCandidates(model: ChatModel, request: ChatRequest): ReadonlyArray<Route> {
    return Candidates.filterCapable(model.routes, () => requiredCapabilities(request)).filter(
      (route) => this.#findRejectedFieldWithoutHints(request, route) === undefined
    )
  }

  #tokenCountsOf(model: ChatModel, request: ChatRequest): ReadonlyArray<Effect.Effect<number, ProviderFailure>> {
    const { native } = request
    if (native === undefined) return []
    return this.#findCandidates(model, request)
      .toSorted((one, other) => one.preference - other.preference)
      .flatMap((route) => {
        const { acceptsNative, countTokens } = this.#findAdapter(route) ?? {}
        const isClosed = () => this.#services.circuits.isClosed(model, route, this.#now())
        return countTokens !== undefined && acceptsNative?.(route, native) === true && isClosed()
          ? [countTokens(route, request)]
          : []
      })
  }

  #adapt(request: ChatRequest, { requiresInlineImages: inlines }: ChatAdapter, route: Route): ChatRequest {
    const routeRequest = this.#dropHints(request, route)
    return routeRequest.inlined !== undefined && inlines?.(route) !== false
      ? { ...routeRequest, messages: routeRequest.inlined }
      : routeRequest
  }

  /** Drops the optional fields (hints) that the route does not support. */
  #dropHints(request: ChatRequest, route: Route): ChatRequest {
    const supportedRequest = dropUnsupportedHints(
      request,
      (capability) => route.capabilities?.has(capability) !== false
    )
    if (
      supportedRequest.isWebSearchHint !== true ||
      !supportedRequest.webSearch ||
      this.#findRejectedField(supportedRequest, route) === undefined
    )
      return supportedRequest
    return dropUnsupportedHints(supportedRequest, (capability) => capability !== "web_search")
  }

  /** Drops the optional fields (hints) that the route does not support, then returns a field that it still rejects, if any. */
  #findRejectedFieldWithoutHints(request: ChatRequest, route: Route): string | undefined {
    return this.#findRejectedField(this.#dropHints(request, route), route)
  }

  #findRejectedField(request: ChatRequest, route: Route): string | undefined {
    const { native } = request
    const adapter = this.#findAdapter(route)
    if (native?.nativeOnly !== undefined && adapter?.acceptsNative?.(route, native) !== true)
      return native.nativeOnly.param
    return adapter?.findUnsupportedField?.(route, request)
  }

  #findAdapter({ provider }: Route): ChatAdapter | undefined {
    return this.#providers.get(provider.adapter)?.chat
  }

  #now(): number {
    return monotonicMillisOf(this.#services.clock)
  }
}
