import type { Effect, Exit } from "effect"
import { runChild } from "./Fibers.ts"

export class ClientDeparture {
  #isOver = false
  #listener = () => {}

  get isOver(): boolean {
    return this.#isOver
  }

  leave(): void {
    this.#isOver = true
    this.#listener()
  }

  /** For one effect at a time. */
  interrupts<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<Exit.Exit<A, E>, never, R> {
    return runChild(effect, (interrupt) => {
      if (this.#isOver) interrupt()
      this.#listener = interrupt
      return () => {
        this.#listener = () => {}
      }
    })
  }
}
