import type { Effect, Exit } from "effect"
import { runChild } from "./Fibers.ts"

/** Whether a client has gone, which those who work for it may want to know at once. */
export class Departure {
  #isOver = false
  #listener = () => {}

  get isOver(): boolean {
    return this.#isOver
  }

  leave(): void {
    this.#isOver = true
    this.#listener()
  }

  /** Interrupts an effect when the client goes, and tells what came of it. To be used for one effect at a time. */
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
