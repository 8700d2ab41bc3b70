import { Effect, Exit, Fiber, RuntimeFlags } from "effect"

/** It is there already: nothing is to be run. */
export const isValue = <A, E, R>(effect: Effect.Effect<A, E, R>): effect is Exit.Success<A, E> =>
  Exit.isExit(effect) && Exit.isSuccess(effect)

/**
 * `Effect.flatMap` that goes on at once over a value, without an operation and in half the time; call it only where the
 * effect is about to run.
 */
export const flatMapEager = <A, E, R, B, E2, R2>(
  effect: Effect.Effect<A, E, R>,
  next: (value: A) => Effect.Effect<B, E2, R2>
): Effect.Effect<B, E | E2, R | R2> => (isValue(effect) ? next(effect.value) : Effect.flatMap(effect, next))

/** `Effect.uninterruptible`, which costs little where that is so already. */
export const uninterruptibly = <A, E, R>(make: () => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.withFiberRuntime((_, { runtimeFlags }) =>
    RuntimeFlags.interruption(runtimeFlags) ? Effect.uninterruptible(Effect.suspend(make)) : make()
  )

/** `Effect.ensuring` at 0.2 µs instead of 1, for uninterruptible regions. */
export const ensuringSync = <A, E, R>(effect: Effect.Effect<A, E, R>, act: () => void): Effect.Effect<A, E, R> =>
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
