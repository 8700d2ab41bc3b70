import type { IncomingMessage } from "node:http"
import { Effect } from "effect"
import { type Caller, scopeOf } from "../../domain/ApiKey.ts"
import { InsufficientCredits, PaymentDisputed, SpendLimitReached } from "../../domain/Failure.ts"
import { reachedCap } from "../../domain/Funds.ts"
import { availableOf } from "../../domain/Organization.ts"
import { Idempotency } from "../../services/idempotency/Idempotency.ts"
import { Ledger } from "../../services/ledger/Ledger.ts"
import type { Endpoint } from "./Endpoint.ts"
import { idempotencyKeyOf } from "./RequestContext.ts"

/** Checks the organization's cap and balance before a large body is received; a replay passes, since it costs nothing. */
export const makeSolvencyCheck = Effect.gen(function* () {
  const idempotency = yield* Idempotency
  const ledger = yield* Ledger

  return Effect.fnUntraced(function* (
    { hasFittedHolds = false, isDisputed = false, org }: Caller,
    { hasFittedHold = false, surface }: Endpoint,
    request: IncomingMessage
  ) {
    const funds = yield* ledger.funds(org)
    const reached = reachedCap(funds)
    const endpoint = scopeOf[surface]
    const waits = hasFittedHold || (hasFittedHolds && endpoint === "chat")
    if (!isDisputed && reached === undefined && (waits ? funds.balance : availableOf(funds)) > 0n) return
    const key = endpoint === "chat" ? undefined : idempotencyKeyOf(request)
    if (endpoint !== "chat" && key !== undefined && (yield* idempotency.isKnown({ org, endpoint, key }))) return
    if (isDisputed) return yield* new PaymentDisputed()
    return yield* reached === undefined
      ? new InsufficientCredits({ needed: undefined, available: availableOf(funds) })
      : new SpendLimitReached({ of: "organization", ...reached })
  })
})
