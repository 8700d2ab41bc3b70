import { Deferred, Effect, FiberId } from "effect"
import { GatewayBusy } from "../../domain/Failure.ts"
import type { OrgId } from "../../domain/Organization.ts"

const totalBytes = 512 * 1024 * 1024
/** The limit of a body may then exceed the budget. */
const maxOfOne = totalBytes / 2
const patience = "20 seconds"

interface Waiter {
  readonly org: OrgId
  readonly more: number
  readonly admit: () => void
}

/** An organization may take more only while as much is left for all others. */
export class BodyMemoryBudget {
  #free = totalBytes
  readonly #held = new Map<OrgId, number>()
  readonly #waiting = new Set<Waiter>()

  get reserved(): number {
    return totalBytes - this.#free
  }

  memory(org: OrgId): BodyMemory {
    return new BodyMemory(this, org)
  }

  tryTake(org: OrgId, more: number): boolean {
    if (more > this.#free || this.#isAtItsShare(org, more)) return false
    this.#take(org, more)
    return true
  }

  giveBack(org: OrgId, bytes: number): void {
    this.#take(org, -bytes)
    this.#admitWaiting()
  }

  /** Takes so much before it succeeds. */
  readonly wait = Effect.fnUntraced(function* (this: BodyMemoryBudget, org: OrgId, more: number, onTaken: () => void) {
    const admitted = Deferred.unsafeMake<void>(FiberId.none)
    const waiter: Waiter = {
      org,
      more,
      admit: () => {
        this.#take(org, more)
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

  #isAtItsShare(org: OrgId, more: number): boolean {
    return (this.#held.get(org) ?? 0) > this.#free - more
  }

  #take(org: OrgId, more: number): void {
    this.#free -= more
    const held = (this.#held.get(org) ?? 0) + more
    if (held > 0) this.#held.set(org, held)
    else this.#held.delete(org)
  }

  /** In order of arrival, except for those that their own organization holds up. */
  #admitWaiting(): void {
    for (const waiter of this.#waiting) {
      const { more, org } = waiter
      if (more > this.#free) return
      if (this.#isAtItsShare(org, more)) continue
      this.#waiting.delete(waiter)
      waiter.admit()
    }
  }
}

/** What the budget has set aside for one body. */
export class BodyMemory {
  readonly #budget: BodyMemoryBudget
  readonly #org: OrgId
  #reserved = 0

  constructor(budget: BodyMemoryBudget, org: OrgId) {
    this.#budget = budget
    this.#org = org
  }

  get reserved(): number {
    return this.#reserved
  }

  /** Reserves up to so many bytes in all, without waiting. */
  tryReserve(bytes: number): boolean {
    const more = Math.min(bytes, maxOfOne) - this.#reserved
    if (more <= 0) return true
    if (!this.#budget.tryTake(this.#org, more)) return false
    this.#reserved += more
    return true
  }

  /** Waits for up to so many bytes in all; fails with `GatewayBusy` after 20 seconds. */
  reserve(bytes: number): Effect.Effect<void, GatewayBusy> {
    return Effect.suspend(() => {
      const more = Math.min(bytes, maxOfOne) - this.#reserved
      if (more <= 0) return Effect.void
      return this.#budget.wait(this.#org, more, () => {
        this.#reserved += more
      })
    })
  }

  shrink(bytes: number): void {
    const less = this.#reserved - bytes
    if (less <= 0) return
    this.#reserved = bytes
    this.#budget.giveBack(this.#org, less)
  }
}
