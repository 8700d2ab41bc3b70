import { Effect, type Exit, Fiber } from "effect"

/**
 * Runs an effect in a fiber of its own, which whoever `register` gives it to may interrupt until it has ended, and which
 * ends with its parent. What comes of it is the exit: an interruption is not the parent's.
 */
export const run = <A, E, R>(
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
