import { Deferred, Effect, FiberId } from "effect"
import { GatewayBusy } from "../../domain/Failure.ts"

const totalBytes = 512 * 1024 * 1024
/** The limit of a body may then exceed the budget. */
const maxOfOne = totalBytes / 2
const patience = "20 seconds"

/** An organization, or all clients that send bodies of one kind without a key. */
export type BodyOwner = string

interface Waiter {
  readonly owner: BodyOwner
  readonly more: number
  readonly admit: () => void
}

/** An owner may take more only while at least as much is left for all others. */
export class BodyMemoryBudget {
  #free = totalBytes
  readonly #held = new Map<BodyOwner, number>()
  readonly #waiting = new Set<Waiter>()

  get reserved(): number {
    return totalBytes - this.#free
  }

  memory(owner: BodyOwner): BodyMemory {
    return new BodyMemory(this, owner)
  }

  tryTake(owner: BodyOwner, more: number): boolean {
    if (more > this.#free || this.#isAtItsShare(owner, more)) return false
    this.#take(owner, more)
    return true
  }

  giveBack(owner: BodyOwner, bytes: number): void {
    this.#take(owner, -bytes)
    this.#admitWaiting()
  }

  /** Takes so much before it succeeds. */
  readonly wait = Effect.fnUntraced(function* (
    this: BodyMemoryBudget,
    owner: BodyOwner,
    more: number,
    onTaken: () => void
  ) {
    const admitted = Deferred.unsafeMake<void>(FiberId.none)
    const waiter: Waiter = {
      owner,
      more,
      admit: () => {
        this.#take(owner, more)
        onTaken()
        Deferred.unsafeDone(admitted, Effect.void)
      }
    }
    this.#waiting.add(waiter)
    // A later large body must not overtake.
    this.#admitWaiting()
    yield* Deferred.await(admitted).pipe(
      Effect.timeoutFail({ duration: patience, onTimeout: () => new GatewayBusy() }),
      Effect.ensuring(
        Effect.sync(() => {
          if (this.#waiting.delete(waiter)) this.#admitWaiting()
        })
      )
    )
  })

  #isAtItsShare(owner: BodyOwner, more: number): boolean {
    return (this.#held.get(owner) ?? 0) > this.#free - more
  }

  #take(owner: BodyOwner, more: number): void {
    this.#free -= more
    const held = (this.#held.get(owner) ?? 0) + more
    if (held > 0) this.#held.set(owner, held)
    else this.#held.delete(owner)
  }

  /** In order of arrival, except for those that their own owner holds up. */
  #admitWaiting(): void {
    for (const waiter of this.#waiting) {
      const { more, owner } = waiter
      if (more > this.#free) return
      if (this.#isAtItsShare(owner, more)) continue
      this.#waiting.delete(waiter)
      waiter.admit()
    }
  }
}

/** What the budget has set aside for one body. */
export class BodyMemory {
  readonly #budget: BodyMemoryBudget
  readonly #owner: BodyOwner
  #reserved = 0

  constructor(budget: BodyMemoryBudget, owner: BodyOwner) {
    this.#budget = budget
    this.#owner = owner
  }

  get reserved(): number {
    return this.#reserved
  }

  /** Reserves up to so many bytes in all, without waiting. */
  tryReserve(bytes: number): boolean {
    const more = Math.min(bytes, maxOfOne) - this.#reserved
    if (more <= 0) return true
    if (!this.#budget.tryTake(this.#owner, more)) return false
    this.#reserved += more
    return true
  }

  /** Waits for up to so many bytes in all; fails with `GatewayBusy` after 20 seconds. */
  reserve(bytes: number): Effect.Effect<void, GatewayBusy> {
    return Effect.suspend(() => {
      const more = Math.min(bytes, maxOfOne) - this.#reserved
      if (more <= 0) return Effect.void
      return this.#budget.wait(this.#owner, more, () => {
        this.#reserved += more
      })
    })
  }

  shrink(bytes: number): void {
    const less = this.#reserved - bytes
    if (less <= 0) return
    this.#reserved = bytes
    this.#budget.giveBack(this.#owner, less)
  }
}
