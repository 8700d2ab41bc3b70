import type { IncomingMessage } from "node:http"
import { type Context, Effect } from "effect"
import type { Scope } from "../../domain/ApiKey.ts"
import { InsufficientCredits } from "../../domain/Failure.ts"
import { available, type OrgId } from "../../domain/Organization.ts"
import type { Idempotency } from "../../services/idempotency/Idempotency.ts"
import type { Ledger } from "../../services/ledger/Ledger.ts"
import { idempotencyKeyOf } from "./IdempotencyKey.ts"

interface Services {
  readonly ledger: Context.Tag.Service<Ledger>
  readonly idempotency: Context.Tag.Service<Idempotency>
}

/** Spares receiving a large body in vain; a repetition passes, since a replay costs nothing. */
export const checkSolvency = Effect.fnUntraced(function* (
  { idempotency, ledger }: Services,
  org: OrgId,
  endpoint: Scope,
  request: IncomingMessage
) {
  if (available(yield* ledger.balance(org)) > 0n) return
  const key = endpoint === "chat" ? undefined : idempotencyKeyOf(request)
  if (endpoint !== "chat" && key !== undefined && (yield* idempotency.isKnown({ org, endpoint, key }))) return
  return yield* new InsufficientCredits()
})
