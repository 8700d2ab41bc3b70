import { Cause, type Clock, Effect, Either, Exit } from "effect"
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
import type { Deadlines } from "../runtime/Deadlines.ts"
import * as Monotonic from "../runtime/Monotonic.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import { Attempt, type CostOf, streamTimeout } from "./Attempt.ts"
import type { AttemptHistory } from "./AttemptHistory.ts"
import { startSpan, type Traced } from "./AttemptSpan.ts"
import type { CircuitRegistry, Routed } from "./CircuitRegistry.ts"
import { askAs } from "./CurrentAttempt.ts"
import { isFinal, ProviderFailure } from "./Provider.ts"

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

export interface Plan<T extends RouteBase, A, R> extends Traced<T> {
  readonly model: Routed
  readonly routes: ReadonlyArray<T>
  readonly attempts: AttemptHistory
  readonly costOf?: CostOf<T> | undefined
  readonly limitMillis: number
  /** Milliseconds; undefined: what is left of `limitMillis`. */
  readonly attemptLimitMillis: number | undefined
  /** Of a stream, on the monotonic clock: it alone bounds an attempt whose provider generates. */
  readonly endsAt?: number | undefined
  /** A timeout after fewer milliseconds than this does not count against the route. */
  readonly fairAttemptMillis: number
  readonly ask: (attempt: Attempt<T>) => Effect.Effect<A, ProviderFailure, R>
  /** Of such routes the upstream client ends an attempt at its deadline, which then needs no fiber of its own. */
  readonly endsAtDeadline?: ((route: T) => boolean) | undefined
  /** Records an attempt that goes on after its answer. */
  readonly onAnswer?: ((attempt: Attempt<T>, answer: A) => Effect.Effect<void, never, R>) | undefined
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

/** Each route at most once, and only while its circuit permits it. */
export const failover = <T extends RouteBase, A, R>(
  services: RoutingServices,
  plan: Plan<T, A, R>
): Effect.Effect<A, RoutingFailure, R> => {
  const { clock, deadlines } = services
  const { endsAt = Number.POSITIVE_INFINITY } = plan
  let deadline = Monotonic.millisOf(clock) + plan.limitMillis
  const skipped = new Set<T>()
  const fail = (last: Failed | undefined) => Effect.fail(failureAfter(last, plan.routes.length > 1))

  const tryNext = (untried: ReadonlyArray<T>, last: Failed | undefined): Effect.Effect<A, RoutingFailure, R> =>
    Effect.uninterruptibleMask((restore): Effect.Effect<A, RoutingFailure, R> => {
      const now = Monotonic.millisOf(clock)
      if (untried.length > 0 && now >= deadline) return new TimedOut()
      const allowance = Math.min(deadline - now, plan.attemptLimitMillis ?? plan.limitMillis)
      const attempt = begin(services, plan, untried, skipped, last === undefined || allowance >= plan.fairAttemptMillis)
      if (attempt === undefined) return fail(last)
      if (last !== undefined) Metrics.unsafeCount(Metrics.failovers, { model: plan.model.id })
      const asking = askAs(attempt, plan.ask(attempt))
      const cancelDeadline = plan.endsAtDeadline?.(attempt.route)
        ? deadlines.schedule(now + allowance, () => attempt.abort(timeoutAfter(allowance, undefined)))
        : undefined
      // An answer at the very moment of the deadline counts.
      const asked = cancelDeadline
        ? asking
        : deadlines.bound(
            asking,
            allowance,
            (exit) =>
              Exit.isFailure(exit) && Cause.isInterruptedOnly(exit.cause)
                ? timeoutAfter(allowance, attempt.outputSince)
                : exit,
            () => (attempt.outputSince === undefined ? undefined : endsAt)
          )
      return Effect.flatMap(Effect.exit(restore(asked)), (exit) => {
        cancelDeadline?.()
        if (Exit.isSuccess(exit)) {
          attempt.answer()
          return Effect.as(plan.onAnswer?.(attempt, exit.value) ?? attempt.record(exit), exit.value)
        }
        return Effect.flatMap(attempt.record(exit), () =>
          Either.match(Cause.failureOrCause(exit.cause), {
            onRight: Effect.failCause,
            onLeft: (failure) => {
              const failed = { route: attempt.route, failure }
              // What it took to generate leaves the next route its time.
              const { outputSince: since } = attempt
              if (since !== undefined) deadline = Math.min(endsAt, deadline + Monotonic.millisOf(clock) - since)
              if (isFinal(failure.class) || plan.mayTryNext?.(failure) === false) return fail(failed)
              const others = untried.filter((route) => route !== attempt.route)
              return restore(tryNext(others, failed))
            }
          })
        )
      })
    })
  return tryNext(plan.routes, undefined)
}

const begin = <T extends RouteBase, A, R>(
  { circuits, clock }: RoutingServices,
  plan: Plan<T, A, R>,
  untried: ReadonlyArray<T>,
  skipped: Set<T>,
  isFair: boolean
): Attempt<T> | undefined => {
  const { attempts, costOf, model } = plan
  for (const route of untried) {
    const circuit = circuits.of(model, route)
    const permit = circuit.enter(Monotonic.millisOf(clock), attempts.org)
    if (permit !== undefined) {
      const span = attempts.trace && startSpan(attempts.trace, plan, route)
      return new Attempt(route, { circuit, permit, attempts, costOf, clock, isFair, span })
    }
    if (skipped.has(route)) continue
    skipped.add(route)
    attempts.add({ route: route.id, provider: route.provider.name, outcome: "skipped", status: undefined, ms: 0 })
  }
  return undefined
}

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
