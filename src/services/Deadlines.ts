import { Effect, type Exit, Fiber, type Scope } from "effect"
import * as Monotonic from "./Monotonic.ts"

interface Waiting {
  /** On the monotonic clock. */
  readonly until: number
  readonly expire: () => void
}

interface Ended<A, E> {
  readonly exit: Exit.Exit<A, E>
  readonly isLate: boolean
}

/** Runs an effect for so many milliseconds, then interrupts it; `onTimeout` is told what came of it. */
export type Bound = <A, E, R, E2>(
  effect: Effect.Effect<A, E, R>,
  millis: number,
  onTimeout: (exit: Exit.Exit<A, E>) => Effect.Effect<A, E2>
) => Effect.Effect<A, E | E2, R>

/** Bounds how long effects take, with one timer for all of them: that of the earliest. */
export const make: Effect.Effect<Bound, never, Scope.Scope> = Effect.gen(function* () {
  const clock = yield* Effect.clock
  const waiting = new Set<Waiting>()
  let armedUntil = Infinity
  let rearm = () => {}

  const earlier = Effect.async<void>((resume) => {
    rearm = () => resume(Effect.void)
  })
  const sleep = Effect.suspend(() => {
    armedUntil = Infinity
    for (const { until } of waiting) armedUntil = Math.min(armedUntil, until)
    const millis = armedUntil - Monotonic.millisOf(clock)
    return armedUntil === Infinity ? earlier : Effect.raceFirst(Effect.sleep(Math.max(0, millis)), earlier)
  })
  const expire = Effect.sync(() => {
    const now = Monotonic.millisOf(clock)
    for (const one of waiting) if (now >= one.until) one.expire()
  })
  yield* Effect.zipRight(sleep, expire).pipe(Effect.interruptible, Effect.forever, Effect.forkScoped)

  const ended = <A, E>(fiber: Fiber.RuntimeFiber<A, E>, millis: number) =>
    Effect.async<Ended<A, E>>((resume) => {
      let isLate = false
      const one: Waiting = {
        until: Monotonic.millisOf(clock) + millis,
        expire: () => {
          isLate = true
          waiting.delete(one)
          fiber.unsafeInterruptAsFork(fiber.id())
        }
      }
      waiting.add(one)
      if (one.until < armedUntil) rearm()
      fiber.addObserver((exit) => {
        waiting.delete(one)
        resume(Effect.succeed({ exit, isLate }))
      })
      return Effect.suspend(() => Fiber.interrupt(fiber))
    })

  return <A, E, R, E2>(
    effect: Effect.Effect<A, E, R>,
    millis: number,
    onTimeout: (exit: Exit.Exit<A, E>) => Effect.Effect<A, E2>
  ) =>
    Effect.flatMap(Effect.fork(effect), (fiber) =>
      Effect.flatMap(
        ended(fiber, millis),
        ({ exit, isLate }): Effect.Effect<A, E | E2> => (isLate ? onTimeout(exit) : exit)
      )
    )
})
