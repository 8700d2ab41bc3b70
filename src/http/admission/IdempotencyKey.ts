import type { IncomingMessage } from "node:http"
import { idempotencyKey } from "../schema/IdempotencyKey.ts"

/** The idempotency key as sent; of a header that came several times, all of it. */
export const idempotencyKeyOf = ({ headers }: IncomingMessage): string | undefined => {
  const sent = headers[idempotencyKey]
  return Array.isArray(sent) ? sent.join(", ") : sent
}
