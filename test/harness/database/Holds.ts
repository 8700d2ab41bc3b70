/** Holds that a test places and closes itself. They use `Ledger.withHold`. */

import { Deferred, Effect, Fiber } from "effect"
import type { Hold } from "../../../src/domain/Hold.ts"
import type { HoldRefused, HoldRequest, Ledger } from "../../../src/services/ledger/Ledger.ts"

type WithHold = Pick<Ledger["Type"], "withHold">

/** Functions that end the requests of open holds, by ledger and hold id, because several processes may know the same id. */
const requests = new WeakMap<WithHold, Map<string, Effect.Effect<void>>>()

/** Places a hold that stays open until `release`, or until its request is settled. */
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

/** Ends the request that placed the hold. Does nothing if another process placed the hold, or if it is already released. */
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
