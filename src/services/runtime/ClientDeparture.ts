import type { Effect, Exit } from "effect"
import { runChild } from "./Deadlines.ts"

const interruptNow = (interrupt: () => void): undefined => {
  interrupt()
}

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

  /** For one effect at a time. `onLeave` interrupts it, now or later, and returns its cancellation. */
  interrupts<A, E, R>(
    effect: Effect.Effect<A, E, R>,
    onLeave: (interrupt: () => void) => (() => void) | undefined = interruptNow
  ): Effect.Effect<Exit.Exit<A, E>, never, R> {
    return runChild(effect, (interrupt) => {
      let cancel: (() => void) | undefined
      this.#listener = () => {
        cancel = onLeave(interrupt)
      }
      if (this.#isOver) this.#listener()
      return () => {
        this.#listener = () => {}
        cancel?.()
      }
    })
  }
}
