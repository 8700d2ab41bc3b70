import { Effect } from "effect"

/** Whether a client has gone, which those who work for it may want to know at once. */
export class Departure {
  #isOver = false
  readonly #listeners = new Set<() => void>()

  get isOver(): boolean {
    return this.#isOver
  }

  /** The client has gone. */
  leave(): void {
    this.#isOver = true
    for (const listener of this.#listeners) listener()
  }

  /** Ends an effect when the client goes, by interrupting its fiber: nothing that follows may be interruptible. */
  interrupts<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.withFiberRuntime((fiber) => {
      const interrupt = () => fiber.unsafeInterruptAsFork(fiber.id())
      if (this.#isOver) interrupt()
      this.#listeners.add(interrupt)
      return Effect.onExit(Effect.interruptible(effect), () => {
        this.#listeners.delete(interrupt)
        return Effect.void
      })
    })
  }
}
