import { Deferred, Effect, FiberId } from "effect"
import { RateLimited } from "../domain/Failure.ts"
import type { OrgId } from "../domain/Organization.ts"

const mib = 1024 * 1024
/** MiB of bodies being received and worked on at a time, and those of one organization among them. */
const ofAll = 512
const ofOne = 256
const patience = "20 seconds"

/** Bodies of up to so many bytes need no room. */
export const smallBytes = mib

/** A request whose body may need room. */
export interface Guest {
  /** Waits for room for a body of so many bytes; once for a request. `RateLimited` where there is none for 20 s. */
  readonly enter: (bytes: number) => Effect.Effect<void, RateLimited>
  /** The request is over. */
  readonly leave: Effect.Effect<void>
}

interface Entry {
  readonly org: OrgId
  readonly size: number
  readonly called: Deferred.Deferred<void>
  isIn: boolean
}

/**
 * Large bodies stay in memory for as long as their requests run, and each takes a good part of a second to decode.
 * Those that find no room wait unread.
 */
export class BodyRoom {
  #free = ofAll
  readonly #taken = new Map<OrgId, number>()
  readonly #waiting = new Set<Entry>()

  guest(org: OrgId): Guest {
    let entry: Entry | undefined
    const leave = Effect.sync(() => {
      if (entry !== undefined) this.#leave(entry)
      entry = undefined
    })
    const wait = Effect.fnUntraced(function* (asked: Entry) {
      yield* Effect.timeoutOption(Deferred.await(asked.called), patience)
      if (asked.isIn) return
      yield* leave
      return yield* new RateLimited()
    })
    const enter = (bytes: number) =>
      Effect.suspend(() => {
        if (bytes <= smallBytes) return Effect.void
        const size = Math.min(Math.ceil(bytes / mib), ofOne)
        const asked: Entry = { org, size, called: Deferred.unsafeMake(FiberId.none), isIn: false }
        entry = asked
        this.#waiting.add(asked)
        this.#admit()
        return asked.isIn ? Effect.void : wait(asked)
      })
    return { enter, leave }
  }

  #leave(entry: Entry): void {
    this.#waiting.delete(entry)
    if (entry.isIn) {
      this.#free += entry.size
      const left = (this.#taken.get(entry.org) ?? 0) - entry.size
      if (left > 0) this.#taken.set(entry.org, left)
      else this.#taken.delete(entry.org)
    }
    this.#admit()
  }

  /** In the order they came, but for those whose own organization is in their way. */
  #admit(): void {
    for (const entry of this.#waiting) {
      const own = this.#taken.get(entry.org) ?? 0
      if (own + entry.size > ofOne) continue
      if (entry.size > this.#free) return
      this.#waiting.delete(entry)
      this.#free -= entry.size
      this.#taken.set(entry.org, own + entry.size)
      entry.isIn = true
      Deferred.unsafeDone(entry.called, Effect.void)
    }
  }
}
