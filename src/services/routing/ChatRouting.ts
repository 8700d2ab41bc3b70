import { Array as Arr, type Context, Effect, Option } from "effect"
import type { ChatRequest } from "../../domain/Chat.ts"
import { keepHints, needs, reduceTo, unsupportedCombination, unsupportedField } from "../../domain/ChatRules.ts"
import type { ChatModel, Route } from "../../domain/Model.ts"
import { boundUsage, chatCharge } from "../../domain/Pricing.ts"
import * as Metrics from "../metrics/Metrics.ts"
import { flatMapEager } from "../runtime/Fibers.ts"
import * as Monotonic from "../runtime/Monotonic.ts"
import type { CostOf } from "./Attempt.ts"
import type { AttemptHistory } from "./AttemptHistory.ts"
import { failover, type Plan, type RoutingDeadlines, type RoutingServices } from "./Failover.ts"
import type { ChatAdapter } from "./Provider.ts"
import { type Providers, requireAdapter } from "./Provider.ts"
import { openStream, type StreamOptions, watch } from "./RoutedStream.ts"
import * as Candidates from "./RouteSelection.ts"

/** What a failed attempt costs. */
const chatCostOf =
  (model: ChatModel, request: ChatRequest): CostOf<Route> =>
  ({ cost }, spent) =>
    cost === undefined || spent === "whole" ? undefined : chatCharge(cost, boundUsage(spent, model, request).usage)

/** Providers keep a prompt's cache for five to ten minutes after its last use. */
const rememberedMillis = 600_000
const maxInGeneration = 25_000

interface LastRoute {
  readonly route: string
  /** When the conversation came to the route. */
  readonly since: number
  readonly usedAt: number
}

/** Which route answered each conversation last, and so has its prompt cache. Times are on the monotonic clock. */
export class Affinity {
  // Two generations: a single Map is slow at dropping its oldest entries one by one.
  #recent = new Map<string, LastRoute>()
  #older: ReadonlyMap<string, LastRoute> = new Map()
  #beganAt = Number.NEGATIVE_INFINITY

  get size(): number {
    return this.#recent.size + this.#older.size
  }

  find(conversation: string, now: number): LastRoute | undefined {
    const last = this.#recent.get(conversation) ?? this.#older.get(conversation)
    return last !== undefined && now - last.usedAt < rememberedMillis ? last : undefined
  }

  remember(conversation: string, route: string, now: number): void {
    const last = this.find(conversation, now)
    if (this.#recent.size >= maxInGeneration || now - this.#beganAt >= rememberedMillis) {
      this.#older = this.#recent
      this.#recent = new Map()
      this.#beganAt = now
    }
    this.#recent.set(conversation, { route, since: last?.route === route ? last.since : now, usedAt: now })
  }
}

/** Not for ever: the routes that come first may be cheaper than one to which a failure brought the conversation. */
const overridesPreference = ({ since }: LastRoute, now: number): boolean => now - since < rememberedMillis

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
    if (native?.only !== undefined && adapter?.acceptsNative?.(route, native) !== true) return native.only.param
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

  const admit = (model: ChatModel, request: ChatRequest) => {
    if (candidates(model, request).length > 0) return Effect.void
    const able = Candidates.filterCapable(model.routes, () => needs(request))
    const param = Arr.isNonEmptyReadonlyArray(able)
      ? findDeclinedField(request)(able[0])
      : Candidates.findUnservedField(model.routes, needs(request))
    return Effect.fail(
      param !== undefined && candidates(model, reduceTo(request, param)).length === 0
        ? unsupportedField(model, param, request)
        : unsupportedCombination(model, param ?? null)
    )
  }

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

  type Way<A, B, R> = Pick<Plan<Route, A, B, R>, "ask" | "attemptLimitMillis" | "endsAt" | "endsCalls" | "onAnswer"> & {
    readonly since: number | undefined
  }

  const routeChat = <A, B, R>(model: ChatModel, request: ChatRequest, attempts: AttemptHistory, way: Way<A, B, R>) =>
    flatMapEager(Candidates.orderRoutes(candidates(model, request), request.conversation), (routes) =>
      failover(services, {
        model,
        routes: prefer(routes, request, attempts),
        attempts,
        costOf: chatCostOf(model, request),
        limitMillis: way.since === undefined ? requestMillis : Math.max(0, requestMillis - now() + way.since),
        attemptLimitMillis: way.attemptLimitMillis,
        endsAt: way.endsAt,
        fairAttemptMillis: firstByteMillis,
        output: "text",
        isInterruptible: true,
        endsCalls: way.endsCalls,
        ask: way.ask,
        onAnswer: way.onAnswer
      })
    )

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

  const endsCalls = (route: Route) => findAdapter(route)?.completeWithin !== undefined

  const complete = (model: ChatModel, request: ChatRequest, attempts: AttemptHistory, since?: number) =>
    routeChat(model, request, attempts, {
      since,
      attemptLimitMillis: undefined,
      endsAt: undefined,
      endsCalls,
      ask: (attempt) =>
        flatMapEager(requireAdapter(providers, attempt.route, "chat"), (adapter) => {
          const { route } = attempt
          const adapted = adaptRequest(request, adapter, route)
          return adapter.completeWithin?.(attempt, route, adapted) ?? adapter.complete(route, adapted)
        }),
      onAnswer: (attempt, answer) => {
        const { route } = attempt
        attempt.traceUsage(answer.usage)
        remember(request, attempts, route)
        attempt.succeed()
        return Effect.succeed({ route, answer })
      }
    })

  const stream = (model: ChatModel, request: ChatRequest, attempts: AttemptHistory, options: StreamOptions = {}) =>
    Effect.flatMap(Effect.scope, (scope) => {
      const endsAt = now() + deadlines.streamTimeoutSeconds * 1000
      return routeChat(model, request, attempts, {
        since: options.since,
        attemptLimitMillis: firstByteMillis,
        endsAt,
        endsCalls: undefined,
        ask: (attempt) =>
          flatMapEager(requireAdapter(providers, attempt.route, "chat"), (adapter) =>
            openStream(adapter, adaptRequest(request, adapter, attempt.route), attempt, scope, options)
          ),
        onAnswer: (attempt, opened) => {
          remember(request, attempts, attempt.route)
          return Effect.as(watch(services, endsAt, attempt, opened, options), opened)
        }
      })
    })

  return { admit, complete, countTokens, inlines, stream }
}
