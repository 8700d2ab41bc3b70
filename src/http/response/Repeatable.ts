import type { IncomingMessage } from "node:http"
import { idempotencyKey } from "../schema/IdempotencyKey.ts"

/** The idempotency key as sent; of a header that came several times, all of it. */
export const keyOf = ({ headers }: IncomingMessage): string | undefined => {
  const sent = headers[idempotencyKey]
  return Array.isArray(sent) ? sent.join(", ") : sent
}

/** The headers that say where a result comes from. */
export const marks = ({ replayed, sandbox }: { readonly replayed: boolean; readonly sandbox: boolean }) => ({
  ...(sandbox ? { "x-gateway-sandbox": "true" } : {}),
  ...(replayed ? { "idempotency-replayed": "true" } : {})
})
