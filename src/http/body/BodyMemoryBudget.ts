import { Deferred, Effect, FiberId } from "effect"
import { GatewayBusy } from "../../domain/Failure.ts"

const totalBytes = 512 * 1024 * 1024
/** One body reserves at most half of the budget, even if its own limit is higher. */
const maxBytesPerBody = totalBytes / 2
const maxWait = "20 seconds"

/** The owner of reserved memory: an organization, or one surface for all its clients without a key. */
export type BodyOwner = string

interface Waiter {
  readonly owner: BodyOwner
  readonly bytes: number
  readonly admit: () => void
}

/**
 * Divides memory fairly among owners. An owner may reserve more only if the memory that then remains free is at least
 * as much as the owner already holds.
 */
export class BodyMemoryBudget {
  #freeBytes = totalBytes
  readonly #reservedBy = new Map<BodyOwner, number>()
  readonly #waiters = new Set<Waiter>()

  get reserved(): number {
    return totalBytes - this.#freeBytes
  }

  memory(owner: BodyOwner): BodyMemory {
    return new BodyMemory(this, owner)
  }

  tryReserve(owner: BodyOwner, bytes: number): boolean {
    if (bytes > this.#freeBytes || this.#exceedsShare(owner, bytes)) return false
    this.#add(owner, bytes)
    return true
  }

  release(owner: BodyOwner, bytes: number): void {
    this.#add(owner, -bytes)
    this.#admitWaiting()
  }

  /** Waits until the bytes are reserved. Fails with `GatewayBusy` after 20 seconds. */
  readonly wait = Effect.fnUntraced(function* (
    this: BodyMemoryBudget,
    owner: BodyOwner,
    bytes: number,
    onReserve: () => void
  ) {
    const admission = Deferred.unsafeMake<void>(FiberId.none)
    const waiter: Waiter = {
      owner,
      bytes,
      admit: () => {
        this.#add(owner, bytes)
        onReserve()
        Deferred.unsafeDone(admission, Effect.void)
      }
    }
    this.#waiters.add(waiter)
    // The waiter is admitted only through the queue, so it cannot overtake an earlier one.
    this.#admitWaiting()
    yield* Deferred.await(admission).pipe(
      Effect.timeoutFail({ duration: maxWait, onTimeout: () => new GatewayBusy() }),
      Effect.ensuring(
        Effect.sync(() => {
          if (this.#waiters.delete(waiter)) this.#admitWaiting()
        })
      )
    )
  })

  #exceedsShare(owner: BodyOwner, bytes: number): boolean {
    return (this.#reservedBy.get(owner) ?? 0) > this.#freeBytes - bytes
  }

  #add(owner: BodyOwner, bytes: number): void {
    this.#freeBytes -= bytes
    const total = (this.#reservedBy.get(owner) ?? 0) + bytes
    if (total > 0) this.#reservedBy.set(owner, total)
    else this.#reservedBy.delete(owner)
  }

  /** Admits in order of arrival, but skips owners that have reached their share. */
  #admitWaiting(): void {
    for (const waiter of this.#waiters) {
      const { bytes, owner } = waiter
      if (bytes > this.#freeBytes) return
      if (this.#exceedsShare(owner, bytes)) continue
      this.#waiters.delete(waiter)
      waiter.admit()
    }
  }
}

/** The memory that one request reserves for its body and for the images that it loads. */
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

  /** Raises the reservation to `bytes` without waiting, or to the maximum per body. Returns whether it succeeded. */
  tryReserve(bytes: number): boolean {
    const missingBytes = Math.min(bytes, maxBytesPerBody) - this.#reserved
    if (missingBytes <= 0) return true
    if (!this.#budget.tryReserve(this.#owner, missingBytes)) return false
    this.#reserved += missingBytes
    return true
  }

  /** Raises the reservation to `bytes`, or to the maximum per body. Fails with `GatewayBusy` after 20 seconds. */
  reserve(bytes: number): Effect.Effect<void, GatewayBusy> {
    return Effect.suspend(() => {
      const missingBytes = Math.min(bytes, maxBytesPerBody) - this.#reserved
      if (missingBytes <= 0) return Effect.void
      return this.#budget.wait(this.#owner, missingBytes, () => {
        this.#reserved += missingBytes
      })
    })
  }

  /** Adds `bytes` to the reservation, such as those of images. Fails with `GatewayBusy` after 20 seconds. */
  reserveMore(bytes: number): Effect.Effect<void, GatewayBusy> {
    const total = this.#reserved + bytes
    return this.tryReserve(total) ? Effect.void : this.reserve(total)
  }

  shrink(bytes: number): void {
    const excessBytes = this.#reserved - bytes
    if (excessBytes <= 0) return
    this.#reserved = bytes
    this.#budget.release(this.#owner, excessBytes)
  }
}
