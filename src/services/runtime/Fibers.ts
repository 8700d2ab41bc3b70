import { Effect, type Exit, Fiber } from "effect"

/** `Effect.ensuring` at a fraction of its cost, for uninterruptible regions. */
export const ensureSync = <A, E, R>(effect: Effect.Effect<A, E, R>, act: () => void): Effect.Effect<A, E, R> =>
  Effect.matchCauseEffect(effect, {
    onFailure: (cause) => {
      act()
      return Effect.failCause(cause)
    },
    onSuccess: (value) => {
      act()
      return Effect.succeed(value)
    }
  })

/** Runs a child fiber and returns its exit; `register` gets its interruption and returns a cleanup. */
export const runChild = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  register: (interrupt: () => void) => () => void
): Effect.Effect<Exit.Exit<A, E>, never, R> =>
  Effect.flatMap(Effect.fork(Effect.interruptible(effect)), (fiber) =>
    Effect.async((resume) => {
      const callOff = register(() => fiber.unsafeInterruptAsFork(fiber.id()))
      fiber.addObserver((exit) => {
        callOff()
        resume(Effect.succeed(exit))
      })
      return Effect.suspend(() => Fiber.interrupt(fiber))
    })
  )
