import { Array as Arr, type Context, Effect, Option, type Scope } from "effect"
import type { ChatAnswer, ChatRequest } from "../../domain/Chat.ts"
import { keepHints, needs, reduceTo, unsupportedCombination, unsupportedField } from "../../domain/ChatRules.ts"
import type { InvalidRequest, RoutingFailure } from "../../domain/Failure.ts"
import type { ChatModel, Route } from "../../domain/Model.ts"
import { boundUsage, chatCharge } from "../../domain/Pricing.ts"
import * as Metrics from "../metrics/Metrics.ts"
import * as Monotonic from "../runtime/Monotonic.ts"
import type { Attempt, CostOf } from "./Attempt.ts"
import type { AttemptHistory } from "./AttemptHistory.ts"
import { failover, type RoutePlan, type RoutingDeadlines, type RoutingServices } from "./Failover.ts"
import { type ChatAdapter, missingAdapter, type ProviderFailure, type Providers } from "./Provider.ts"
import { openStream, type RoutedStream, type StreamOptions, watch } from "./RoutedStream.ts"
import * as Candidates from "./RouteSelection.ts"

/** What a failed attempt costs. */
const chatCostOf =
  (model: ChatModel, request: ChatRequest): CostOf<Route> =>
  ({ cost }, spent) =>
    cost === undefined || spent === "whole" ? undefined : chatCharge(cost, boundUsage(spent, model, request).usage)

/** A late count is worth less to a client than an estimate. */
const countTimeout = "3 seconds"

export interface RoutedChat {
  readonly route: Route
  readonly answer: ChatAnswer
}

/** Chats over the routes of their model. The contracts of its methods are those of `ProviderRouter`. */
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
      if (this.#candidates(model, request).length > 0) return Effect.void
      const capable = Candidates.filterCapable(model.routes, () => needs(request))
      const param = Arr.isNonEmptyReadonlyArray(capable)
        ? this.#declinedField(request, capable[0])
        : Candidates.findUnservedField(model.routes, needs(request))
      return Effect.fail(
        param !== undefined && this.#candidates(model, reduceTo(request, param)).length === 0
          ? unsupportedField(model, param, request)
          : unsupportedCombination(model, param ?? null)
      )
    })
  }

  inlines(model: ChatModel, request: ChatRequest): Effect.Effect<boolean> {
    return Effect.sync(() =>
      Candidates.filterCapable(model.routes, () => needs(request)).some(
        (route) => this.#findAdapter(route)?.inlines?.(route) !== false
      )
    )
  }

  countTokens(model: ChatModel, request: ChatRequest): Effect.Effect<Option.Option<number>> {
    return Effect.suspend(() => {
      const [first] = this.#countingRoutes(model, request)
      if (first === undefined) return Effect.succeedNone
      return first.pipe(
        Effect.interruptible,
        Effect.timeoutOption(countTimeout),
        Effect.map(Option.filter((counted) => counted > 0)),
        Effect.catchAll(() => Effect.succeedNone)
      )
    })
  }

  complete(
    model: ChatModel,
    request: ChatRequest,
    attempts: AttemptHistory,
    since?: number
  ): Effect.Effect<RoutedChat, RoutingFailure> {
    return Effect.flatMap(this.#orderRoutes(model, request, attempts), (routes) =>
      failover(this.#services, this.#plan(model, request, attempts, routes, since), {
        cancelsCalls: (route) => this.#findAdapter(route)?.completeWithin !== undefined,
        ask: (attempt) => this.#askWhole(request, attempt),
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
        ask: (attempt) => this.#openStream(request, attempt, scope, options),
        onAnswer: (attempt, opened) => {
          this.#remember(request, attempts, attempt.route)
          return Effect.as(watch(this.#services, endsAt, attempt, opened, options), opened)
        }
      })
    })
  }

  /** The plan of a whole answer; a stream has limits of its own. */
  #plan(
    model: ChatModel,
    request: ChatRequest,
    attempts: AttemptHistory,
    routes: ReadonlyArray<Route>,
    since: number | undefined
  ): RoutePlan<Route> {
    const limitMillis =
      since === undefined ? this.#requestMillis : Math.max(0, this.#requestMillis - this.#now() + since)
    return {
      model,
      routes,
      attempts,
      costOf: chatCostOf(model, request),
      limitMillis,
      attemptLimitMillis: limitMillis,
      endsAt: Number.POSITIVE_INFINITY,
      fairAttemptMillis: this.#firstByteMillis,
      output: "text"
    }
  }

  #askWhole(request: ChatRequest, attempt: Attempt<Route>): Effect.Effect<ChatAnswer, ProviderFailure> {
    const { route } = attempt
    const adapter = this.#findAdapter(route)
    if (adapter === undefined) return missingAdapter(route, "chat")
    const adapted = this.#adapt(request, adapter, route)
    return adapter.completeWithin?.(attempt, route, adapted) ?? adapter.complete(route, adapted)
  }

  #openStream(request: ChatRequest, attempt: Attempt<Route>, scope: Scope.Scope, options: StreamOptions) {
    const { route } = attempt
    const adapter = this.#findAdapter(route)
    return adapter === undefined
      ? missingAdapter(route, "chat")
      : openStream(adapter, this.#adapt(request, adapter, route), attempt, scope, options)
  }

  /** Puts the route that has the conversation's cache first. */
  #orderRoutes(model: ChatModel, request: ChatRequest, attempts: AttemptHistory): Effect.Effect<ReadonlyArray<Route>> {
    const { conversation } = request
    const ordered = Candidates.orderRoutes(this.#candidates(model, request), conversation)
    if (conversation === undefined) return ordered
    return Effect.map(ordered, (routes) => {
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

  #candidates(model: ChatModel, request: ChatRequest): ReadonlyArray<Route> {
    return Candidates.filterCapable(model.routes, () => needs(request)).filter(
      (route) => this.#declinedField(request, route) === undefined
    )
  }

  #countingRoutes(model: ChatModel, request: ChatRequest): ReadonlyArray<Effect.Effect<number, ProviderFailure>> {
    const { native } = request
    if (native === undefined) return []
    return this.#candidates(model, request)
      .toSorted((one, other) => one.preference - other.preference)
      .flatMap((route) => {
        const { acceptsNative, countTokens } = this.#findAdapter(route) ?? {}
        const isClosed = () => this.#services.circuits.isClosed(model, route, this.#now())
        return countTokens !== undefined && acceptsNative?.(route, native) === true && isClosed()
          ? [countTokens(route, request)]
          : []
      })
  }

  #adapt(request: ChatRequest, { inlines }: ChatAdapter, route: Route): ChatRequest {
    const fitted = this.#fitHints(request, route)
    return fitted.inlined !== undefined && inlines?.(route) !== false ? { ...fitted, messages: fitted.inlined } : fitted
  }

  /** Drops the hints that the route cannot follow. */
  #fitHints(request: ChatRequest, route: Route): ChatRequest {
    const kept = keepHints(request, (capability) => route.capabilities?.has(capability) !== false)
    if (kept.webSearchIsHint !== true || !kept.webSearch || this.#declines(kept, route) === undefined) return kept
    return keepHints(kept, (capability) => capability !== "web_search")
  }

  #declinedField(request: ChatRequest, route: Route): string | undefined {
    return this.#declines(this.#fitHints(request, route), route)
  }

  #declines(request: ChatRequest, route: Route): string | undefined {
    const { native } = request
    const adapter = this.#findAdapter(route)
    if (native?.only !== undefined && adapter?.acceptsNative?.(route, native) !== true) return native.only.param
    return adapter?.declines?.(route, request)
  }

  #findAdapter({ provider }: Route): ChatAdapter | undefined {
    return this.#providers.get(provider.adapter)?.chat
  }

  #now(): number {
    return Monotonic.millisOf(this.#services.clock)
  }
}
