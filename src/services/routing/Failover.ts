import { Cause, type Clock, Effect, Either, Exit, FiberRef, RuntimeFlags } from "effect"
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
import { Attempt, type CostOf, startSpan, streamTimeout, type Traced } from "./Attempt.ts"
import type { AttemptHistory } from "./AttemptHistory.ts"
import type { CircuitRegistry, Routed } from "./CircuitRegistry.ts"
import { askAs, isFinal, ProviderFailure } from "./Provider.ts"

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

export interface Plan<T extends RouteBase, A, B, R> extends Traced<T> {
  readonly model: Routed
  readonly routes: ReadonlyArray<T>
  readonly attempts: AttemptHistory
  readonly costOf?: CostOf<T> | undefined
  readonly limitMillis: number
  /** Milliseconds; undefined: what is left of `limitMillis`. */
  readonly attemptLimitMillis: number | undefined
  /** When a stream must end, on the monotonic clock; the only limit of an attempt once the provider generates. */
  readonly endsAt?: number | undefined
  /** A timeout after fewer milliseconds than this does not count against the route. */
  readonly fairAttemptMillis: number
  readonly ask: (attempt: Attempt<T>) => Effect.Effect<A, ProviderFailure, R>
  /** Whether the adapter ends its own upstream calls, so that the attempt needs no fiber. */
  readonly endsCalls?: ((route: T) => boolean) | undefined
  /** Records the attempt, which may go on. */
  readonly onAnswer: (attempt: Attempt<T>, answer: A) => Effect.Effect<B, never, R>
  /** Calls may be interrupted even where all else may not. */
  readonly isInterruptible?: boolean | undefined
  readonly mayTryNext?: ((failure: ProviderFailure) => boolean) | undefined
}

export interface RoutingServices {
  readonly circuits: CircuitRegistry
  readonly clock: Clock.Clock
  readonly deadlines: Deadlines
}

interface Failed {
  readonly route: RouteBase
  readonly failure: ProviderFailure
}

/** What is left to try of one request, and until when. */
class Failover<T extends RouteBase, A, B, R> {
  readonly #services: RoutingServices
  readonly #plan: Plan<T, A, B, R>
  readonly #endsAt: number
  #deadline: number
  #untried: ReadonlyArray<T>
  #skipped: Set<T> | undefined
  #last: Failed | undefined
  /** Restores interruption for upstream calls and the pauses between them. */
  readonly #restore: typeof Effect.interruptible

  constructor(services: RoutingServices, plan: Plan<T, A, B, R>, restore: typeof Effect.interruptible) {
    this.#services = services
    this.#plan = plan
    this.#restore = restore
    this.#endsAt = plan.endsAt ?? Number.POSITIVE_INFINITY
    this.#deadline = Monotonic.millisOf(services.clock) + plan.limitMillis
    this.#untried = plan.routes
  }

  tryNextUnlessInterrupted(): Effect.Effect<B, RoutingFailure, R> {
    return Effect.flatMap(this.#restore(Effect.void), () => this.tryNext())
  }

  /** To be run uninterruptibly. */
  tryNext(): Effect.Effect<B, RoutingFailure, R> {
    const plan = this.#plan
    const now = Monotonic.millisOf(this.#services.clock)
    if (this.#untried.length > 0 && now >= this.#deadline) return new TimedOut()
    const allowance = Math.min(this.#deadline - now, plan.attemptLimitMillis ?? plan.limitMillis)
    const attempt = this.#enter(now, this.#last === undefined || allowance >= plan.fairAttemptMillis)
    if (attempt === undefined) return this.#fail(this.#last)
    if (this.#last !== undefined) Metrics.unsafeCount(Metrics.failovers, { model: plan.model.id })
    const callOff = plan.endsCalls?.(attempt.route)
      ? this.#services.deadlines.schedule(now + allowance, () => attempt.abort(timeoutAfter(allowance, undefined)))
      : undefined
    const asked = Effect.suspend(() => plan.ask(attempt))
    return Effect.matchCauseEffect(this.#restore(callOff ? asked : this.#bound(attempt, asked, allowance)), {
      onFailure: (cause) => {
        callOff?.()
        attempt.cancelCall()
        return this.#moveOn(attempt, cause)
      },
      onSuccess: (answer) => {
        callOff?.()
        attempt.answer()
        return plan.onAnswer(attempt, answer)
      }
    })
  }

  /** An answer at the very moment of the deadline counts. */
  #bound(attempt: Attempt<T>, asked: Effect.Effect<A, ProviderFailure, R>, allowance: number) {
    return this.#services.deadlines.bound(
      askAs(attempt, asked),
      allowance,
      (exit) =>
        Exit.isFailure(exit) && Cause.isInterruptedOnly(exit.cause)
          ? timeoutAfter(allowance, attempt.outputSince)
          : exit,
      () => (attempt.outputSince === undefined ? undefined : this.#endsAt)
    )
  }

  #moveOn(attempt: Attempt<T>, cause: Cause.Cause<ProviderFailure>): Effect.Effect<B, RoutingFailure, R> {
    return Effect.flatMap(attempt.record(Exit.failCause(cause)), () =>
      Either.match(Cause.failureOrCause(cause), {
        onRight: Effect.failCause,
        onLeft: (failure) => {
          this.#last = { route: attempt.route, failure }
          // What it took to generate leaves the next route its time.
          const { outputSince: since } = attempt
          if (since !== undefined) this.#extend(Monotonic.millisOf(this.#services.clock) - since)
          if (isFinal(failure.class) || this.#plan.mayTryNext?.(failure) === false) return this.#fail(this.#last)
          this.#untried = this.#untried.filter((route) => route !== attempt.route)
          return this.tryNextUnlessInterrupted()
        }
      })
    )
  }

  #extend(millis: number): void {
    this.#deadline = Math.min(this.#endsAt, this.#deadline + millis)
  }

  #fail(last: Failed | undefined) {
    return Effect.fail(failureAfter(last, this.#plan.routes.length > 1))
  }

  #enter(now: number, isFair: boolean): Attempt<T> | undefined {
    const { attempts, costOf, model } = this.#plan
    const { circuits, clock } = this.#services
    for (const route of this.#untried) {
      const circuit = circuits.of(model, route)
      const permit = circuit.enter(now, attempts.org)
      if (permit !== undefined) {
        const span = attempts.trace && startSpan(attempts.trace, this.#plan, route)
        return new Attempt(route, { circuit, permit, attempts, costOf, clock, isFair, span, startedAt: now })
      }
      this.#skipped ??= new Set()
      if (this.#skipped.has(route)) continue
      this.#skipped.add(route)
      attempts.add({ route: route.id, provider: route.provider.name, outcome: "skipped", status: undefined, ms: 0 })
    }
    return undefined
  }
}

/** Records an attempt that is over with its answer. */
export const succeed = <T extends RouteBase, A>(attempt: Attempt<T>, answer: A): Effect.Effect<A> => {
  attempt.succeed()
  return Effect.succeed(answer)
}

/** Each route at most once, and only while its circuit permits it. */
export const failover = <T extends RouteBase, A, B, R>(
  services: RoutingServices,
  plan: Plan<T, A, B, R>
): Effect.Effect<B, RoutingFailure, R> =>
  Effect.withFiberRuntime((fiber, { runtimeFlags }) => {
    const isInterruptible = RuntimeFlags.interruption(runtimeFlags)
    const restore = isInterruptible || plan.isInterruptible ? Effect.interruptible : Effect.uninterruptible
    const routing = new Failover(services, plan, restore)
    if (isInterruptible) return Effect.uninterruptible(Effect.suspend(() => routing.tryNext()))
    const isInterrupted = !Cause.isEmpty(fiber.getFiberRef(FiberRef.interruptedCause))
    return isInterrupted ? routing.tryNextUnlessInterrupted() : routing.tryNext()
  })

const timeoutAfter = (allowance: number, outputSince: number | undefined) =>
  outputSince === undefined
    ? new ProviderFailure({ class: "timeout", status: undefined, detail: `no answer within ${allowance} ms` })
    : streamTimeout

const failureAfter = (last: Failed | undefined, several: boolean): RoutingFailure => {
  if (last === undefined) return new NoHealthyProvider()
  const { class: kind, param, reason, reasonCode, status } = last.failure
  if (kind === "moderation") return new ContentRejected()
  if (kind === "request") return new UpstreamRejected({ param: param ?? null, reason, reasonCode })
  if (kind === "timeout") return new TimedOut()
  const provider = last.route.provider.name
  if (several || status === undefined) return new AllProvidersFailed({ provider, status: status ?? "network" })
  if (kind === "account") return new UpstreamAuthFailed()
  if (status === 429) return new AllProvidersFailed({ provider, status })
  return new UpstreamFailed()
}
