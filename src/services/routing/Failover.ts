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
import * as Monotonic from "../runtime/Monotonic.ts"
import { Attempt, type CostOf, startSpan, type Traced } from "./Attempt.ts"
import type { AttemptHistory } from "./AttemptHistory.ts"
import type { Permit } from "./Circuit.ts"
import type { CircuitBreaker } from "./CircuitBreaker.ts"
import type { CircuitRegistry, Routed } from "./CircuitRegistry.ts"
import { askAs, isFinal, type ProviderFailure } from "./Provider.ts"

export interface RoutingDeadlines {
  /** Up to the answer or a stream's first delta, over all routes; without what providers took to generate before it. */
  readonly requestTimeoutSeconds: number
  /** Per route, until a stream's provider begins to generate. */
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

/** Which routes one request may try, and for how long: milliseconds. */
export interface RoutePlan<T extends RouteBase> extends Traced<T> {
  readonly model: Routed
  /** In the order in which they are tried. */
  readonly routes: ReadonlyArray<T>
  readonly attempts: AttemptHistory
  readonly costOf?: CostOf<T> | undefined
  readonly limitMillis: number
  /** The limit of each attempt, or what is left of `limitMillis` if that is less. */
  readonly attemptLimitMillis: number
  /** When a stream must end, on the monotonic clock; the only limit of an attempt once the provider generates. */
  readonly endsAt: number
  /** A timeout after fewer milliseconds than this does not count against the route. */
  readonly fairAttemptMillis: number
  /** Called after each failure that is not final; undefined: true. */
  readonly mayTryNext?: ((failure: ProviderFailure) => boolean) | undefined
}

/** How a route is called. */
export interface RouteCall<T extends RouteBase, A, B, R> {
  /** Calls the attempt's route. */
  readonly ask: (attempt: Attempt<T>) => Effect.Effect<A, ProviderFailure, R>
  /** Whether the adapter cancels its own calls at the deadline, so that the attempt needs no fiber. */
  readonly cancelsCalls?: ((route: T) => boolean) | undefined
  /** Runs uninterruptibly, and records the attempt, which may go on. */
  readonly onAnswer: (attempt: Attempt<T>, answer: A) => Effect.Effect<B, never, R>
}

/** One route failed. */
class RouteFailed extends Data.TaggedError("RouteFailed")<{
  readonly route: RouteBase
  readonly failure: ProviderFailure
  /** Another route may serve the request. */
  readonly mayTryNext: boolean
}> {}

const leavesAnotherRoute = (failure: RouteFailed | RoutingFailure): boolean =>
  failure._tag === "RouteFailed" && failure.mayTryNext

/** Recurs at once, until no route remains or a failure ends the request. Each attempt takes one route off the list. */
const whileRoutesRemain = Schedule.recurWhile(leavesAnotherRoute)

/**
 * Asks the plan's routes in their order until one answers: each at most once, and only while its circuit permits it.
 * Fails with what the last failure means for the client. Interruption cancels the call and records the attempt.
 */
export const failover = <T extends RouteBase, A, B, R>(
  services: RoutingServices,
  plan: RoutePlan<T>,
  call: RouteCall<T, A, B, R>
): Effect.Effect<B, RoutingFailure, R> =>
  Effect.suspend(() => {
    const routes = new RemainingRoutes(services, plan)
    const attempt = attemptNextRoute(services, routes, call)
    return attempt.pipe(
      // `Effect.retry` costs 25 µs even if nothing fails, because it provides each attempt with a service of its own.
      Effect.catchIf(leavesAnotherRoute, () => Effect.retry(attempt, whileRoutesRemain)),
      Effect.catchTag("RouteFailed", (last) => routes.fail(last))
    )
  })

/** Only the call can be interrupted: an attempt that entered a circuit is recorded, and so is every answer. */
const attemptNextRoute = <T extends RouteBase, A, B, R>(
  { deadlines }: RoutingServices,
  routes: RemainingRoutes<T>,
  call: RouteCall<T, A, B, R>
): Effect.Effect<B, RouteFailed | RoutingFailure, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(routes.enterNext(), (attempt) =>
      Effect.matchCauseEffect(restore(askInTime(deadlines, attempt, call)), {
        onFailure: (cause) => routes.recordFailure(attempt, cause),
        onSuccess: (answer) => {
          attempt.answer()
          return call.onAnswer(attempt, answer)
        }
      })
    )
  )

const askInTime = <T extends RouteBase, A, B, R>(
  deadlines: Deadlines,
  attempt: Attempt<T>,
  { ask, cancelsCalls }: RouteCall<T, A, B, R>
): Effect.Effect<A, ProviderFailure, R> => {
  const asking = Effect.suspend(() => ask(attempt))
  if (cancelsCalls?.(attempt.route) === true) {
    attempt.abortAtDeadline(deadlines)
    return asking
  }
  return deadlines.bound(
    askAs(attempt, asking),
    attempt.allowedMillis,
    // An answer at the very moment of the deadline counts.
    (exit) => (Exit.isFailure(exit) && Cause.isInterruptedOnly(exit.cause) ? attempt.timeout() : exit),
    () => attempt.mayGenerateUntil
  )
}

/** The routes that one request has left to try, and until when. */
class RemainingRoutes<T extends RouteBase> {
  readonly #services: RoutingServices
  readonly #plan: RoutePlan<T>
  #deadline: number
  #untried: ReadonlyArray<T>
  #skipped: Set<T> | undefined
  #last: RouteFailed | undefined

  constructor(services: RoutingServices, plan: RoutePlan<T>) {
    this.#services = services
    this.#plan = plan
    this.#deadline = Monotonic.millisOf(services.clock) + plan.limitMillis
    this.#untried = plan.routes
  }

  /** Takes a permit of the first route whose circuit grants one, which the attempt must return. */
  enterNext(): Effect.Effect<Attempt<T>, RoutingFailure> {
    const { attempts, model } = this.#plan
    const { circuits, clock } = this.#services
    const now = Monotonic.millisOf(clock)
    if (this.#untried.length > 0 && now >= this.#deadline) return new TimedOut()
    for (const route of this.#untried) {
      const circuit = circuits.of(model, route)
      const permit = circuit.enter(now, attempts.org)
      if (permit !== undefined) return Effect.succeed(this.#begin(route, circuit, permit, now))
      this.#recordSkipped(route)
    }
    return this.fail(this.#last)
  }

  /** Records how the attempt ended without an answer, and fails with that. */
  recordFailure(attempt: Attempt<T>, cause: Cause.Cause<ProviderFailure>): Effect.Effect<never, RouteFailed> {
    return Effect.zipRight(attempt.record(Exit.failCause(cause)), Effect.failCause(cause)).pipe(
      Effect.mapError((failure) => this.#drop(attempt, failure))
    )
  }

  fail(last: RouteFailed | undefined): Effect.Effect<never, RoutingFailure> {
    return Effect.fail(
      last === undefined ? new NoHealthyProvider() : toRoutingFailure(last, this.#plan.routes.length > 1)
    )
  }

  #drop({ outputSince, route }: Attempt<T>, failure: ProviderFailure): RouteFailed {
    const { endsAt, mayTryNext } = this.#plan
    // What it took to generate leaves the next route its time.
    if (outputSince !== undefined) {
      this.#deadline = Math.min(endsAt, this.#deadline + Monotonic.millisOf(this.#services.clock) - outputSince)
    }
    this.#untried = this.#untried.filter((other) => other !== route)
    this.#last = new RouteFailed({
      route,
      failure,
      mayTryNext: !isFinal(failure.class) && mayTryNext?.(failure) !== false && this.#untried.length > 0
    })
    return this.#last
  }

  #begin(route: T, circuit: CircuitBreaker, permit: Permit, now: number): Attempt<T> {
    const { attemptLimitMillis, attempts, costOf, endsAt, fairAttemptMillis, model } = this.#plan
    const isFirst = this.#last === undefined
    if (!isFirst) Metrics.unsafeCount(Metrics.failovers, { model: model.id })
    const allowedMillis = Math.min(this.#deadline - now, attemptLimitMillis)
    return new Attempt(route, {
      circuit,
      permit,
      attempts,
      costOf,
      clock: this.#services.clock,
      allowedMillis,
      endsAt,
      isFair: isFirst || allowedMillis >= fairAttemptMillis,
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

/** Records an attempt that is over with its answer. */
export const succeed = <T extends RouteBase, A>(attempt: Attempt<T>, answer: A): Effect.Effect<A> => {
  attempt.succeed()
  return Effect.succeed(answer)
}

const toRoutingFailure = ({ failure, route }: RouteFailed, hasSeveral: boolean): RoutingFailure => {
  const { class: kind, param, reason, reasonCode, status } = failure
  if (kind === "moderation") return new ContentRejected()
  if (kind === "request") return new UpstreamRejected({ param: param ?? null, reason, reasonCode })
  if (kind === "timeout") return new TimedOut()
  const provider = route.provider.name
  if (hasSeveral || status === undefined) return new AllProvidersFailed({ provider, status: status ?? "network" })
  if (kind === "account") return new UpstreamAuthFailed()
  if (status === 429) return new AllProvidersFailed({ provider, status })
  return new UpstreamFailed()
}
