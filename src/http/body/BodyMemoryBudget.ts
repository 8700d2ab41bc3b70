import { Deferred, Effect, FiberId } from "effect"
import { GatewayBusy } from "../../domain/Failure.ts"
import type { OrgId } from "../../domain/Organization.ts"

const totalBytes = 512 * 1024 * 1024
/** The limit of a body may then exceed the budget. */
const maxOfOne = totalBytes / 2
const patience = "20 seconds"

export interface BodyMemory {
  readonly reserved: () => number
  /** Reserves up to so many bytes in all, without waiting. */
  readonly tryReserve: (bytes: number) => boolean
  /** Waits for up to so many bytes in all; fails with `GatewayBusy` after 20 seconds. */
  readonly reserve: (bytes: number) => Effect.Effect<void, GatewayBusy>
  readonly shrink: (bytes: number) => void
}

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
    let reserved = 0
    const grow = (more: number) => {
      this.#take(org, more)
      reserved += more
    }
    const tryReserve = (bytes: number) => {
      const more = Math.min(bytes, maxOfOne) - reserved
      if (more <= 0) return true
      if (more > this.#free || this.#isAtItsShare(org, more)) return false
      grow(more)
      return true
    }
    const wait = Effect.fnUntraced(function* (this: BodyMemoryBudget, more: number) {
      const admitted = Deferred.unsafeMake<void>(FiberId.none)
      const waiter: Waiter = {
        org,
        more,
        admit: () => {
          grow(more)
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
    return {
      reserved: () => reserved,
      tryReserve,
      reserve: (bytes) =>
        Effect.suspend(() => {
          const more = Math.min(bytes, maxOfOne) - reserved
          return more <= 0 ? Effect.void : wait.call(this, more)
        }),
      shrink: (bytes) => {
        if (bytes >= reserved) return
        this.#take(org, bytes - reserved)
        reserved = bytes
        this.#admitWaiting()
      }
    }
  }

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
