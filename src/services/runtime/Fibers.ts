import { Effect, type Exit, Fiber } from "effect"

/** Acts however the effect ends: `Effect.ensuring` at a fraction of its cost, for where nothing can be interrupted. */
export const always = <A, E, R>(effect: Effect.Effect<A, E, R>, act: () => void): Effect.Effect<A, E, R> =>
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

/**
 * Runs an effect in a fiber of its own, which ends with its parent, and returns its exit: an interruption is not the
 * parent's. `register` is given what interrupts it, and returns what is to be done once it has ended.
 */
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
