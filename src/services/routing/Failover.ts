import { Cause, type Clock, Effect, Exit, Option } from "effect"
import { type RoutingFailure, TimedOut } from "../../domain/Failure.ts"
import type { RouteBase } from "../../domain/Model.ts"
import type { Deadlines } from "../runtime/Deadlines.ts"
import * as Monotonic from "../runtime/Monotonic.ts"
import { Attempt, type CostOf } from "./Attempt.ts"
import type { Attempts } from "./Attempts.ts"
import type { Circuits, Routed } from "./Circuits.ts"
import { Failed, isFinal, verdict } from "./Outcome.ts"
import { ProviderFailure } from "./Provider.ts"

export interface Plan<T extends RouteBase, A, R> {
  readonly model: Routed
  /** The routes able to serve the request, in the order to try them. */
  readonly routes: ReadonlyArray<T>
  readonly attempts: Attempts
  /** For tries that fail after their provider has made something; none is known where undefined. */
  readonly costOf?: CostOf<T> | undefined
  /** Milliseconds for everything. */
  readonly within: number
  /** Milliseconds for one try; what is left of `within` where undefined. */
  readonly attemptWithin: number | undefined
  /** A try that the end of `within` cut shorter than this many milliseconds says nothing about its route. */
  readonly fairAttempt: number
  /** Asks one route. When it succeeds it has told the attempt so, and owns what remains to be told. */
  readonly ask: (attempt: Attempt<T>) => Effect.Effect<A, ProviderFailure, R>
  /** Whether another route may be asked after this failure; any may where undefined. */
  readonly mayMove?: ((failure: ProviderFailure) => boolean) | undefined
}

export interface Means {
  readonly circuits: Circuits
  readonly clock: Clock.Clock
  readonly deadlines: Deadlines
}

/** Asks one route after the other until one answers, each at most once and only while its circuit lets it. */
export const failover = <T extends RouteBase, A, R>(
  means: Means,
  plan: Plan<T, A, R>
): Effect.Effect<A, RoutingFailure, R> => {
  const { clock } = means
  const deadline = Monotonic.millisOf(clock) + plan.within
  const skipped = new Set<T>()

  const fail = (last: Failed | undefined) => Effect.fail(verdict(last, plan.routes.length > 1))

  /** One try after another, of the routes that are left. */
  const tryNext = (untried: ReadonlyArray<T>, last: Failed | undefined): Effect.Effect<A, RoutingFailure, R> =>
    Effect.uninterruptibleMask((restore): Effect.Effect<A, RoutingFailure | Failed, R> => {
      const now = Monotonic.millisOf(clock)
      if (untried.length > 0 && now >= deadline) return new TimedOut()
      const attempt = begin(means, plan, untried, skipped)
      if (attempt === undefined) return fail(last)
      const allowance = Math.min(deadline - now, plan.attemptWithin ?? plan.within)
      const isFair = last === undefined || allowance >= plan.fairAttempt
      return Effect.mapError(
        concluded(attempt, restore(bounded(means, plan, attempt, allowance)), isFair),
        (failure) => new Failed({ route: attempt.route, failure })
      )
    }).pipe(
      Effect.catchTag("Failed", (failed) =>
        isFinal(failed.failure.class) || plan.mayMove?.(failed.failure) === false
          ? fail(failed)
          : tryNext(
              untried.filter((route) => route !== failed.route),
              failed
            )
      )
    )
  return tryNext(plan.routes, undefined)
}

/** A try of the first route whose circuit lets a request through; notes those passed over. */
const begin = <T extends RouteBase, A, R>(
  { circuits, clock }: Means,
  plan: Plan<T, A, R>,
  untried: ReadonlyArray<T>,
  skipped: Set<T>
): Attempt<T> | undefined => {
  for (const route of untried) {
    const circuit = circuits.of(plan.model, route)
    const permit = circuit.enter(Monotonic.millisOf(clock))
    if (permit !== undefined) return new Attempt(route, circuit, permit, plan, clock)
    if (skipped.has(route)) continue
    skipped.add(route)
    plan.attempts.add({ route: route.id, provider: route.provider.name, outcome: "skipped", status: undefined, ms: 0 })
  }
  return undefined
}

const bounded = <T extends RouteBase, A, R>(
  { deadlines }: Means,
  plan: Plan<T, A, R>,
  attempt: Attempt<T>,
  allowance: number
): Effect.Effect<A, ProviderFailure, R> =>
  deadlines.bound(plan.ask(attempt), allowance, (exit) =>
    // An answer that came in the very moment of the deadline has been counted as one and is not thrown away.
    Exit.isFailure(exit) && Cause.isInterruptedOnly(exit.cause) ? outOfTime(allowance) : exit
  )

/** Tells the attempt how it failed; of a success it has been told already. */
const concluded = <T extends RouteBase, A, R>(
  attempt: Attempt<T>,
  asked: Effect.Effect<A, ProviderFailure, R>,
  isFair: boolean
): Effect.Effect<A, ProviderFailure, R> =>
  Effect.catchAllCause(asked, (cause) =>
    Effect.zipRight(
      Option.match(Cause.failureOption(cause), {
        onNone: () => Effect.sync(() => attempt.left(Cause.isInterrupted(cause) ? "cancelled" : "defect")),
        onSome: (failure) => attempt.failed(failure, isFair || failure.class !== "timeout")
      }),
      Effect.failCause(cause)
    )
  )

const outOfTime = (allowance: number) =>
  new ProviderFailure({ class: "timeout", status: undefined, detail: `no answer within ${allowance} ms` })
