/** Holds that a test keeps open and closes by hand, over `Ledger.withHold`. */

import { Deferred, Effect, Fiber } from "effect"
import type { Hold } from "../../../src/domain/Hold.ts"
import type { HoldRefused, HoldRequest, Ledger } from "../../../src/services/ledger/Ledger.ts"

type WithHold = Pick<Ledger["Type"], "withHold">

/** Ends the requests of open holds, by ledger: a hold's id may be known to several processes. */
const requests = new WeakMap<WithHold, Map<string, Effect.Effect<void>>>()

/** Places a hold that stays open until `release`, or until the request is settled and forgotten. */
export const admit = Effect.fnUntraced(function* (ledger: WithHold, request: HoldRequest) {
  const placed = yield* Deferred.make<Hold, HoldRefused>()
  const end = yield* Deferred.make<void>()
  const running = yield* ledger
    .withHold(request, (hold) => Effect.zipRight(Deferred.succeed(placed, hold), Deferred.await(end)))
    .pipe(
      Effect.catchAllCause((cause) => Deferred.failCause(placed, cause)),
      Effect.forkDaemon
    )
  const hold = yield* Deferred.await(placed)
  const ends = requests.get(ledger) ?? new Map<string, Effect.Effect<void>>()
  requests.set(ledger, ends)
  ends.set(hold.id, Effect.zipRight(Deferred.succeed(end, undefined), Fiber.join(running)))
  return hold
}, Effect.uninterruptible)

/** Ends the request that placed the hold; does nothing for a hold that another process placed, or that was released. */
export const release = (ledger: WithHold, { id }: Hold): Effect.Effect<void> =>
  Effect.suspend(() => {
    const ends = requests.get(ledger)
    const end = ends?.get(id) ?? Effect.void
    ends?.delete(id)
    return end
  })

/** Places a hold that stays open until the scope closes. */
export const hold = (ledger: WithHold, request: HoldRequest) =>
  Effect.acquireRelease(admit(ledger, request), (placed) => release(ledger, placed))
