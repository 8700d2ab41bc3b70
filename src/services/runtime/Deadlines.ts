import { Cause, Effect, Exit, Fiber } from "effect"
import * as Monotonic from "./Monotonic.ts"

interface Timer {
  readonly at: number
  readonly act: () => void
}

/**
 * Deadlines that cancel a call: the one combinator of the gateway that Effect has in a general form. Every chat has one,
 * and a whole chat takes about 250 µs of the gateway's CPU. Per deadline, on one core under Node 20:
 *
 * | a deadline                                     |   µs |
 * | ---------------------------------------------- | ---: |
 * | `schedule`, for calls that can cancel themselves |  0.6 |
 * | `bound`, which runs the call in a child fiber  |   10 |
 * | `Effect.raceFirst` with a sleep                |   29 |
 * | `Effect.timeout`                               |   32 |
 *
 * All deadlines share one timer, which sleeps until the earliest.
 */
export const make = Effect.gen(function* () {
  const clock = yield* Effect.clock
  const timers = new Set<Timer>()
  let armedUntil = Infinity
  let rearm = () => {}

  const earliest = () => {
    let at = Infinity
    for (const timer of timers) at = Math.min(at, timer.at)
    return at
  }
  const awaitEarlier = Effect.async<void>((resume) => {
    rearm = () => resume(Effect.void)
    // A timer may have been added before this could be woken.
    if (earliest() < armedUntil) rearm()
  })
  const sleep = Effect.suspend(() => {
    armedUntil = earliest()
    const millis = armedUntil - Monotonic.millisOf(clock)
    return armedUntil === Infinity ? awaitEarlier : Effect.raceFirst(Effect.sleep(Math.max(0, millis)), awaitEarlier)
  })
  const act = (timer: Timer) =>
    Effect.catchAllDefect(
      Effect.sync(() => {
        timers.delete(timer)
        timer.act()
      }),
      (defect) => Effect.logError("The action of a deadline failed", Cause.die(defect))
    )
  const actDue = Effect.suspend(() => {
    const now = Monotonic.millisOf(clock)
    return Effect.forEach(
      [...timers].filter(({ at }) => at <= now),
      act,
      { discard: true }
    )
  })
  yield* Effect.zipRight(sleep, actDue).pipe(Effect.interruptible, Effect.forever, Effect.forkScoped)

  /** Calls `act` at that time, on the monotonic clock. Returns its cancellation. */
  const schedule = (at: number, act: () => void): (() => void) => {
    const timer = { at, act }
    timers.add(timer)
    if (at < armedUntil) rearm()
    return () => void timers.delete(timer)
  }

  /**
   * Interrupts the effect after its time, and ends with what `onTimeout` makes of its exit. `extend` is called once the
   * time is over: until when the effect may go on, on the monotonic clock, if it may.
   */
  const interruptAfter = <A, E, R, E2>(
    effect: Effect.Effect<A, E, R>,
    millis: number,
    onTimeout: (exit: Exit.Exit<A, E>) => Effect.Effect<A, E2>,
    extend: () => number | undefined = () => undefined
  ): Effect.Effect<A, E | E2, R> =>
    Effect.suspend(() => {
      let isLate = false
      const exit = runChild(effect, (interrupt) => {
        let cancel = () => {}
        const arm = (at: number) => {
          cancel = schedule(at, () => {
            const until = extend()
            if (until !== undefined && until > at) return arm(until)
            isLate = true
            interrupt()
          })
        }
        arm(Monotonic.millisOf(clock) + millis)
        return () => cancel()
      })
      return Effect.flatMap(exit, (ended): Effect.Effect<A, E | E2> => (isLate ? onTimeout(ended) : ended))
    })

  return { schedule, bound: interruptAfter }
})
export type Deadlines = Effect.Effect.Success<typeof make>

/**
 * Runs the effect in a child fiber that can be interrupted, and returns its exit. `register` gets the interruption of the
 * child and returns a cleanup. Interruption of the caller interrupts the child and waits for it.
 */
export const runChild = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  register: (interrupt: () => void) => () => void
): Effect.Effect<Exit.Exit<A, E>, never, R> =>
  Effect.acquireUseRelease(
    Effect.fork(Effect.interruptible(effect)),
    (fiber) =>
      Effect.async<Exit.Exit<A, E>>((resume) => {
        const cleanUp = register(() => fiber.unsafeInterruptAsFork(fiber.id()))
        fiber.addObserver((exit) => {
          cleanUp()
          resume(Effect.succeed(exit))
        })
      }),
    // The child of a caller that is not interrupted has ended; to interrupt it would start it once more.
    (fiber, exit) => (Exit.isFailure(exit) ? Fiber.interrupt(fiber) : Effect.void)
  )
