import type { IncomingMessage } from "node:http"
import { type Context, Effect } from "effect"
import type { Scope as KeyScope } from "../../domain/ApiKey.ts"
import { InsufficientCredits } from "../../domain/Failure.ts"
import { available, type OrgId } from "../../domain/Organization.ts"
import type { Idempotency } from "../../services/idempotency/Idempotency.ts"
import type { Ledger } from "../../services/ledger/Ledger.ts"
import { idempotencyKeyOf } from "./RequestContext.ts"

interface PaymentServices {
  readonly ledger: Context.Tag.Service<Ledger>
  readonly idempotency: Context.Tag.Service<Idempotency>
}

/** Before a large body is received; a replay passes, since it costs nothing. */
export const checkSolvency = Effect.fnUntraced(function* (
  { idempotency, ledger }: PaymentServices,
  org: OrgId,
  endpoint: KeyScope,
  request: IncomingMessage
) {
  if (available(yield* ledger.balance(org)) > 0n) return
  const key = endpoint === "chat" ? undefined : idempotencyKeyOf(request)
  if (endpoint !== "chat" && key !== undefined && (yield* idempotency.isKnown({ org, endpoint, key }))) return
  return yield* new InsufficientCredits()
})
