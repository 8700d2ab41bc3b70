import type { IncomingMessage } from "node:http"
import { Deferred, Effect, Exit } from "effect"
import { RateLimited } from "../domain/Failure.ts"
import type { OrgId } from "../domain/Organization.ts"

const mib = 1024 * 1024
/** MiB of bodies being received and worked on at a time, and those of one organization among them. */
const ofAll = 512
const ofOne = 256
const patience = "20 seconds"

interface Guest {
  readonly org: OrgId
  readonly size: number
  readonly called: Deferred.Deferred<void>
  isIn: boolean
}

/** MiB that a body may come to; 0 where it does not matter, or is refused for its size anyway. */
export const roomFor = ({ headers }: Pick<IncomingMessage, "headers">, limitBytes: number): number => {
  const bytes = headers["transfer-encoding"] === undefined ? Number(headers["content-length"] ?? 0) : limitBytes
  return bytes > mib && bytes <= limitBytes ? Math.min(Math.ceil(bytes / mib), ofOne) : 0
}

/**
 * Large bodies stay in memory for as long as their requests run, and each takes a good part of a second to decode.
 * Those that find no room wait unread.
 */
export class BodyRoom {
  #free = ofAll
  readonly #taken = new Map<OrgId, number>()
  readonly #waiting = new Set<Guest>()

  /** Runs what needs room for a body, `size` in MiB. `RateLimited` where there is none for 20 s. */
  readonly within = <A, E, R, E2>(
    org: OrgId,
    size: number,
    work: Effect.Effect<A, E, R>,
    /** What waiting is done in. */
    waiting: (wait: Effect.Effect<void>) => Effect.Effect<void, E2>
  ): Effect.Effect<A, E | E2 | RateLimited, R> =>
    size === 0
      ? work
      : Effect.acquireUseRelease(
          this.#enter(org, size, waiting),
          () => work,
          (guest) => Effect.sync(() => this.#leave(guest))
        )

  readonly #enter = <E>(org: OrgId, size: number, waiting: (wait: Effect.Effect<void>) => Effect.Effect<void, E>) =>
    Effect.gen(this, function* () {
      const guest: Guest = { org, size, called: yield* Deferred.make<void>(), isIn: false }
      this.#waiting.add(guest)
      this.#admit()
      if (guest.isIn) return guest
      const waited = yield* Effect.exit(
        waiting(Effect.asVoid(Effect.timeoutOption(Deferred.await(guest.called), patience)))
      )
      this.#waiting.delete(guest)
      if (Exit.isSuccess(waited) && guest.isIn) return guest
      if (guest.isIn) this.#leave(guest)
      if (Exit.isFailure(waited)) return yield* Effect.failCause(waited.cause)
      return yield* new RateLimited()
    })

  #leave(guest: Guest): void {
    this.#free += guest.size
    const left = (this.#taken.get(guest.org) ?? 0) - guest.size
    if (left > 0) this.#taken.set(guest.org, left)
    else this.#taken.delete(guest.org)
    this.#admit()
  }

  /** In the order they came, but for those whose own organization is in their way. */
  #admit(): void {
    for (const guest of this.#waiting) {
      const own = this.#taken.get(guest.org) ?? 0
      if (own + guest.size > ofOne) continue
      if (guest.size > this.#free) return
      this.#waiting.delete(guest)
      this.#free -= guest.size
      this.#taken.set(guest.org, own + guest.size)
      guest.isIn = true
      Deferred.unsafeDone(guest.called, Effect.void)
    }
  }
}
