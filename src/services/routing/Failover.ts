import { Cause, type Clock, Effect, Either, Exit, Option } from "effect"
import { type RoutingFailure, TimedOut } from "../../domain/Failure.ts"
import type { RouteBase } from "../../domain/Model.ts"
import * as Monotonic from "../Monotonic.ts"
import { ProviderFailure } from "../Provider.ts"
import type { Attempts } from "./Attempts.ts"
import type { Circuits, Routed } from "./Circuits.ts"
import { type Failed, isFinal, verdict } from "./Outcome.ts"
import { type CostOf, Trial } from "./Trial.ts"

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
  /** Asks one route. When it succeeds it has told the trial so, and owns what remains to be told. */
  readonly ask: (trial: Trial<T>) => Effect.Effect<A, ProviderFailure, R>
  /** Whether another route may be asked after this failure; any may where undefined. */
  readonly mayMove?: ((failure: ProviderFailure) => boolean) | undefined
}

/** Asks one route after the other until one answers, each at most once and only while its circuit lets it. */
export const failover = Effect.fnUntraced(function* <T extends RouteBase, A, R>(
  circuits: Circuits,
  plan: Plan<T, A, R>
) {
  const untried = [...plan.routes]
  const skipped = new Set<T>()
  const clock = yield* Effect.clock
  const deadline = Monotonic.millisOf(clock) + plan.within
  let last: Failed | undefined

  while (untried.length > 0) {
    const now = Monotonic.millisOf(clock)
    if (now >= deadline) return yield* new TimedOut()
    const allowance = Math.min(deadline - now, plan.attemptWithin ?? plan.within)
    const fair = last === undefined || allowance >= plan.fairAttempt
    const tried = yield* Effect.acquireUseRelease(
      Effect.sync(() => nextTrial(circuits, plan, untried, skipped, clock)),
      (trial) => (trial === undefined ? Effect.succeedNone : Effect.asSome(ask(plan, trial, allowance))),
      (trial, exit) => (trial === undefined ? Effect.void : conclude(trial, exit, fair))
    )
    if (Option.isNone(tried)) break
    if (Either.isRight(tried.value)) return tried.value.right
    last = tried.value.left
    if (isFinal(last.failure.class) || plan.mayMove?.(last.failure) === false) break
  }
  const failure: RoutingFailure = verdict(last, plan.routes.length > 1)
  return yield* failure
})

/** Takes the first route whose circuit lets a request through out of `untried`, and notes those passed over. */
const nextTrial = <T extends RouteBase, A, R>(
  circuits: Circuits,
  plan: Plan<T, A, R>,
  untried: Array<T>,
  skipped: Set<T>,
  clock: Clock.Clock
): Trial<T> | undefined => {
  const { attempts, model } = plan
  for (const [position, route] of untried.entries()) {
    const circuit = circuits.of(model, route)
    const permit = circuit.enter(Monotonic.millisOf(clock))
    if (permit !== undefined) {
      untried.splice(position, 1)
      return new Trial(route, circuit, permit, plan, clock)
    }
    if (skipped.has(route)) continue
    skipped.add(route)
    attempts.add({ route: route.id, provider: route.provider.name, outcome: "skipped", status: undefined, ms: 0 })
  }
  return undefined
}

const ask = <T extends RouteBase, A, R>(
  plan: Plan<T, A, R>,
  trial: Trial<T>,
  allowance: number
): Effect.Effect<Either.Either<A, Failed>, never, R> => {
  let answer: Option.Option<A> = Option.none()
  const asked = Effect.map(plan.ask(trial), (given) => {
    answer = Option.some(given)
    return given
  })
  return asked.pipe(
    Effect.timeoutTo({
      duration: allowance,
      onSuccess: Effect.succeed,
      // An answer that came in the very moment of the deadline has been counted as one and is not thrown away.
      onTimeout: () => Effect.suspend(() => Effect.mapError(answer, () => outOfTime(allowance)))
    }),
    Effect.flatten,
    Effect.mapError((failure): Failed => ({ route: trial.route, failure })),
    Effect.either
  )
}

const outOfTime = (allowance: number) =>
  new ProviderFailure({ class: "timeout", status: undefined, detail: `no answer within ${allowance} ms` })

const conclude = <T extends RouteBase, A>(
  trial: Trial<T>,
  exit: Exit.Exit<Option.Option<Either.Either<A, Failed>>>,
  fair: boolean
): Effect.Effect<void> => {
  if (Exit.isFailure(exit))
    return Effect.sync(() => trial.left(Cause.isInterrupted(exit.cause) ? "cancelled" : "defect"))
  if (Option.isNone(exit.value) || Either.isRight(exit.value.value)) return Effect.void
  const { failure } = exit.value.value.left
  return trial.failed(failure, fair || failure.class !== "timeout")
}
