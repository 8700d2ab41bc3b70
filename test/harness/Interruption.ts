import { Effect, type Exit, Fiber, FiberId, Layer, RuntimeFlags, Supervisor } from "effect"

class Interrupter extends Supervisor.AbstractSupervisor<void> {
  override readonly value = Effect.void
  #left: number
  #target: Fiber.RuntimeFiber<unknown, unknown> | undefined

  constructor(operation: number) {
    super()
    this.#left = operation
  }

  aim(target: Fiber.RuntimeFiber<unknown, unknown>): void {
    this.#target = target
  }

  override onEffect(): void {
    if (this.#target === undefined) return
    if (this.#left === 0) this.#target.unsafeInterruptAsFork(FiberId.none)
    this.#left -= 1
  }
}

/**
 * Runs the effect in a fiber that is interrupted before this operation, counted from its start and including
 * those of its children. Returns its exit.
 */
export const interruptBefore = <A, E, R>(
  operation: number,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<Exit.Exit<A, E>, never, R> =>
  Effect.suspend(() => {
    const interrupter = new Interrupter(operation)
    return Effect.withFiberRuntime<A, E, R>((fiber) => {
      interrupter.aim(fiber)
      return effect
    }).pipe(
      Effect.provide(Layer.merge(Supervisor.addSupervisor(interrupter), RuntimeFlags.enableOpSupervision)),
      Effect.fork,
      Effect.flatMap(Fiber.await)
    )
  })
