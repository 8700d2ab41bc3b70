import { Cause, type Clock, Data, Effect, Exit, Schedule } from "effect"
import {
  AllProvidersFailed,
  ContentRejected,
  NoHealthyProvider,
  type RoutingFailure,
  TimedOut,
  UpstreamAuthFailed,
  UpstreamFailed,
  UpstreamRejected
} from "../../domain/Failure.ts"
import type { RouteBase } from "../../domain/Model.ts"
import * as Metrics from "../metrics/Metrics.ts"
import type { Deadlines } from "../runtime/Deadlines.ts"
import { monotonicMillisOf } from "../runtime/System.ts"
import { Attempt, type AttemptHistory, type CostOf, type SpanInfo, startSpan } from "./Attempt.ts"
import type { Permit } from "./Circuit.ts"
import type { CircuitBreaker } from "./CircuitBreaker.ts"
import type { CircuitRegistry, RoutedModel } from "./CircuitRegistry.ts"
import { isFinal, type ProviderFailure, withAttempt } from "./Provider.ts"

export interface RoutingDeadlines {
  /** For all routes together, up to the complete answer or first delta. Excludes time in which providers generated. */
  readonly requestTimeoutSeconds: number
  /** For each route, until the provider of a stream starts to generate. */
  readonly firstByteTimeoutSeconds: number
  readonly streamTimeoutSeconds: number
}

export const defaultDeadlines: RoutingDeadlines = {
  requestTimeoutSeconds: 290,
  firstByteTimeoutSeconds: 60,
  streamTimeoutSeconds: 3600
}

export interface RoutingServices {
  readonly circuits: CircuitRegistry
  readonly clock: Clock.Clock
  readonly deadlines: Deadlines
}

/** The routes of one request, with limits in milliseconds. */
export interface RoutePlan<T extends RouteBase> extends SpanInfo<T> {
  readonly model: RoutedModel
  /** In order of use. */
  readonly routes: ReadonlyArray<T>
  readonly attempts: AttemptHistory
  readonly costOf?: CostOf<T> | undefined
  readonly limitMillis: number
  /** The limit of each attempt. The rest of `limitMillis` applies if it is shorter. */
  readonly attemptLimitMillis: number
  /** The deadline of a stream, on the monotonic clock. Once the provider generates, no other limit applies. */
  readonly endsAt: number
  /** The route is not blamed for a timeout whose limit was shorter than this. */
  readonly minBlameMillis: number
  /** Called after each failure that is not final. Default: true. */
  readonly mayTryNext?: ((failure: ProviderFailure) => boolean) | undefined
}

interface RouteCall<T extends RouteBase, A, B, R> {
  readonly call: (attempt: Attempt<T>) => Effect.Effect<A, ProviderFailure, R>
  /** Returns whether the adapter cancels its own calls at the deadline. Such an attempt needs no fiber. */
  readonly cancelsCalls?: ((route: T) => boolean) | undefined
  /** Runs uninterruptibly and must record the attempt, now or when its stream ends. */
  readonly onAnswer: (attempt: Attempt<T>, answer: A) => Effect.Effect<B, never, R>
}

class RouteFailed extends Data.TaggedError("RouteFailed")<{
  readonly route: RouteBase
  readonly failure: ProviderFailure
  readonly mayTryNext: boolean
}> {}

const canTryNextRoute = (failure: RouteFailed | RoutingFailure): boolean =>
  failure._tag === "RouteFailed" && failure.mayTryNext

/** Recurs at once until no route remains or a failure is final. Each attempt removes one route. */
const whileRoutesRemain = Schedule.recurWhile(canTryNextRoute)

/**
 * Tries the routes of the plan in order until one answers. It tries each route at most once, if its circuit permits. If all
 * fail, fails with the error that the client gets for the last failure. Only the calls, and the moment before a further
 * attempt, can be interrupted. Every attempt that has entered a circuit is recorded, and so is every answer.
 */
export const failover = <T extends RouteBase, A, B, R>(
  services: RoutingServices,
  plan: RoutePlan<T>,
  call: RouteCall<T, A, B, R>
): Effect.Effect<B, RoutingFailure, R> =>
  Effect.suspend(() => {
    const routes = new RemainingRoutes(services, plan)
    const attempt = attemptNextRoute(services, routes, call)
    const nextAttempt = Effect.zipRight(endIfInterrupted, attempt)
    const fail = (lastFailure: RouteFailed | RoutingFailure) =>
      lastFailure._tag === "RouteFailed" ? routes.fail(lastFailure) : Effect.fail(lastFailure)
    return Effect.catchAll(attempt, (firstFailure) =>
      // `Effect.retry` costs 25 µs even if nothing fails, because it provides each attempt with a service of its own.
      canTryNextRoute(firstFailure)
        ? Effect.catchAll(Effect.retry(nextAttempt, whileRoutesRemain), fail)
        : fail(firstFailure)
    )
  }).pipe(Effect.uninterruptible)

/** Ends an interrupted fiber here, although the surrounding region is uninterruptible. */
const endIfInterrupted = Effect.interruptible(Effect.void)

const attemptNextRoute = <T extends RouteBase, A, B, R>(
  { deadlines }: RoutingServices,
  routes: RemainingRoutes<T>,
  call: RouteCall<T, A, B, R>
): Effect.Effect<B, RouteFailed | RoutingFailure, R> =>
  Effect.flatMap(routes.enterNext, (attempt) =>
    Effect.matchCauseEffect(Effect.interruptible(callWithDeadline(deadlines, attempt, call)), {
      onFailure: (cause) => routes.recordFailure(attempt, cause),
      onSuccess: (answer) => {
        attempt.answer()
        return call.onAnswer(attempt, answer)
      }
    })
  )

const callWithDeadline = <T extends RouteBase, A, B, R>(
  deadlines: Deadlines,
  attempt: Attempt<T>,
  { call: callRoute, cancelsCalls }: RouteCall<T, A, B, R>
): Effect.Effect<A, ProviderFailure, R> => {
  const call = Effect.suspend(() => callRoute(attempt))
  if (cancelsCalls?.(attempt.route) === true) {
    attempt.abortAtDeadline(deadlines)
    return call
  }
  return deadlines.interruptAfter(
    withAttempt(attempt, call),
    attempt.limitMillis,
    // An answer that arrives just at the deadline counts.
    (exit) => (Exit.isFailure(exit) && Cause.isInterruptedOnly(exit.cause) ? attempt.timeout() : exit),
    () => attempt.mayGenerateUntil
  )
}

/** The remaining routes of one request, and its deadline. */
class RemainingRoutes<T extends RouteBase> {
  readonly #services: RoutingServices
  readonly #plan: RoutePlan<T>
  #deadline: number
  #remaining: ReadonlyArray<T>
  #skipped: Set<T> | undefined
  #lastFailure: RouteFailed | undefined

  constructor(services: RoutingServices, plan: RoutePlan<T>) {
    this.#services = services
    this.#plan = plan
    this.#deadline = monotonicMillisOf(services.clock) + plan.limitMillis
    const { onlyRoute } = plan.attempts
    this.#remaining = onlyRoute === undefined ? plan.routes : plan.routes.filter(({ id }) => id === onlyRoute)
  }

  /** Starts an attempt of the first route whose circuit grants a permit. The attempt must release the permit. */
  readonly enterNext: Effect.Effect<Attempt<T>, RoutingFailure> = Effect.suspend(() => {
    const { attempts, model } = this.#plan
    const { circuits, clock } = this.#services
    const now = monotonicMillisOf(clock)
    if (this.#remaining.length > 0 && now >= this.#deadline) return new TimedOut()
    for (const route of this.#remaining) {
      const circuit = circuits.of(model, route)
      const permit = circuit.enter(now, attempts.org)
      if (permit !== undefined) return Effect.succeed(this.#begin(route, circuit, permit, now))
      this.#recordSkipped(route)
    }
    return this.fail(this.#lastFailure)
  })

  /** Records an attempt without an answer, and fails with its failure. */
  recordFailure(attempt: Attempt<T>, cause: Cause.Cause<ProviderFailure>): Effect.Effect<never, RouteFailed> {
    return Effect.zipRight(attempt.record(Exit.failCause(cause)), Effect.failCause(cause)).pipe(
      Effect.mapError((failure) => this.#removeRoute(attempt, failure))
    )
  }

  fail(lastFailure: RouteFailed | undefined): Effect.Effect<never, RoutingFailure> {
    return Effect.fail(
      lastFailure === undefined ? new NoHealthyProvider() : toRoutingFailure(lastFailure, this.#plan.routes.length > 1)
    )
  }

  #removeRoute({ outputSince, route }: Attempt<T>, failure: ProviderFailure): RouteFailed {
    const { endsAt, mayTryNext } = this.#plan
    // Extend the deadline by the time in which the provider generated.
    if (outputSince !== undefined) {
      this.#deadline = Math.min(endsAt, this.#deadline + monotonicMillisOf(this.#services.clock) - outputSince)
    }
    this.#remaining = this.#remaining.filter((other) => other !== route)
    this.#lastFailure = new RouteFailed({
      route,
      failure,
      mayTryNext: !isFinal(failure.class) && mayTryNext?.(failure) !== false && this.#remaining.length > 0
    })
    return this.#lastFailure
  }

  #begin(route: T, circuit: CircuitBreaker, permit: Permit, now: number): Attempt<T> {
    const { attemptLimitMillis, attempts, costOf, endsAt, minBlameMillis, model } = this.#plan
    const isFirst = this.#lastFailure === undefined
    if (!isFirst) Metrics.unsafeCount(Metrics.failovers, { model: model.id })
    const limitMillis = Math.min(this.#deadline - now, attemptLimitMillis)
    return new Attempt(route, {
      circuit,
      permit,
      attempts,
      costOf,
      clock: this.#services.clock,
      limitMillis,
      endsAt,
      mayBlameRoute: isFirst || limitMillis >= minBlameMillis,
      span: attempts.trace && startSpan(attempts.trace, this.#plan, route),
      startedAt: now
    })
  }

  #recordSkipped(route: T): void {
    this.#skipped ??= new Set()
    if (this.#skipped.has(route)) return
    this.#skipped.add(route)
    const { id, provider } = route
    this.#plan.attempts.add({ route: id, provider: provider.name, outcome: "skipped", status: undefined, ms: 0 })
  }
}

/** Records an attempt that ends with its answer. */
export const recordSuccess = <T extends RouteBase, A>(attempt: Attempt<T>, answer: A): Effect.Effect<A> => {
  attempt.succeed()
  return Effect.succeed(answer)
}

const toRoutingFailure = ({ failure, route }: RouteFailed, hasFailover: boolean): RoutingFailure => {
  const { class: kind, param, reason, reasonCode, status } = failure
  if (kind === "moderation") return new ContentRejected()
  if (kind === "request") return new UpstreamRejected({ param: param ?? null, reason, reasonCode })
  if (kind === "timeout") return new TimedOut()
  const provider = route.provider.name
  if (hasFailover || status === undefined) return new AllProvidersFailed({ provider, status: status ?? "network" })
  if (kind === "account") return new UpstreamAuthFailed()
  if (status === 429) return new AllProvidersFailed({ provider, status })
  return new UpstreamFailed()
}
