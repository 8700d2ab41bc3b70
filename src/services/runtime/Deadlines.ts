import { Cause, Effect, Exit, Fiber } from "effect"
import { monotonicMillisOf } from "./System.ts"

interface Timer {
  readonly at: number
  readonly act: () => void
}

/**
 * Deadlines that cancel calls. They replace Effect's timeouts, which are too expensive: every chat request has a deadline, and
 * one takes only about 250 µs of the gateway's CPU. Costs per deadline, on one core under Node 20:
 *
 * | a deadline                                       |   µs |
 * | ------------------------------------------------ | ---: |
 * | `schedule`, for calls that can cancel themselves |  0.6 |
 * | `interruptAfter`, with the call in a child fiber |   10 |
 * | `Effect.raceFirst` with a sleep                  |   29 |
 * | `Effect.timeout`                                 |   32 |
 *
 * All deadlines of one `make` share a single timer, which sleeps until the earliest of them.
 */
export const make = Effect.gen(function* () {
  const clock = yield* Effect.clock
  const timers = new Set<Timer>()
  let armedUntil = Infinity
  let rearm = () => {}

  const findEarliest = () => {
    let at = Infinity
    for (const timer of timers) at = Math.min(at, timer.at)
    return at
  }
  const awaitEarlier = Effect.async<void>((resume) => {
    rearm = () => resume(Effect.void)
    // A timer may have been added before `rearm` was set.
    if (findEarliest() < armedUntil) rearm()
  })
  const sleep = Effect.suspend(() => {
    armedUntil = findEarliest()
    const millis = armedUntil - monotonicMillisOf(clock)
    return armedUntil === Infinity ? awaitEarlier : Effect.raceFirst(Effect.sleep(Math.max(0, millis)), awaitEarlier)
  })
  const act = (timer: Timer) =>
    Effect.catchAllDefect(
      Effect.sync(() => {
        timers.delete(timer)
        timer.act()
      }),
      (defect) => Effect.logError("A deadline's action failed", Cause.die(defect))
    )
  const actDue = Effect.suspend(() => {
    const now = monotonicMillisOf(clock)
    return Effect.forEach(
      [...timers].filter(({ at }) => at <= now),
      act,
      { discard: true }
    )
  })
  yield* Effect.zipRight(sleep, actDue).pipe(Effect.interruptible, Effect.forever, Effect.forkScoped)

  /** Calls `act` at a time of the monotonic clock, in milliseconds. Returns a function that cancels it. */
  const schedule = (at: number, act: () => void): (() => void) => {
    const timer = { at, act }
    timers.add(timer)
    if (at < armedUntil) rearm()
    return () => void timers.delete(timer)
  }

  /**
   * Interrupts the effect after `millis`, then runs `onTimeout` with its exit and returns that result. At the deadline
   * `extend` is called first, and may return a later deadline in milliseconds of the monotonic clock.
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
        arm(monotonicMillisOf(clock) + millis)
        return () => cancel()
      })
      return Effect.flatMap(exit, (ended): Effect.Effect<A, E | E2> => (isLate ? onTimeout(ended) : ended))
    })

  return { schedule, interruptAfter }
})
export type Deadlines = Effect.Effect.Success<typeof make>

/**
 * Runs the effect in an interruptible child fiber and returns its exit. `register` gets a function that interrupts the child,
 * and returns a cleanup that runs when the child ends. Interrupting the caller interrupts the child and waits for it.
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
    // If `use` succeeded, the child has ended. Interrupting an ended fiber would start it once more.
    (fiber, exit) => (Exit.isFailure(exit) ? Fiber.interrupt(fiber) : Effect.void)
  )

const interruptNow = (interrupt: () => void): undefined => {
  interrupt()
}

export class ClientDeparture {
  #hasLeft = false
  #listener = () => {}

  get hasLeft(): boolean {
    return this.#hasLeft
  }

  leave(): void {
    this.#hasLeft = true
    this.#listener()
  }

  /**
   * Runs the effect, one at a time, and interrupts it when the client leaves. `onLeave` may delay the interruption; then it
   * returns a function that cancels the delay.
   */
  interruptOnLeave<A, E, R>(
    effect: Effect.Effect<A, E, R>,
    onLeave: (interrupt: () => void) => (() => void) | undefined = interruptNow
  ): Effect.Effect<Exit.Exit<A, E>, never, R> {
    return runChild(effect, (interrupt) => {
      let cancel: (() => void) | undefined
      this.#listener = () => {
        cancel = onLeave(interrupt)
      }
      if (this.#hasLeft) this.#listener()
      return () => {
        this.#listener = () => {}
        cancel?.()
      }
    })
  }
}
