import { createHmac, randomBytes } from "node:crypto"

const prefix = "whsec_"

export const newSecret = (): string => prefix + randomBytes(32).toString("base64")

/** The value of `webhook-signature`, by Standard Webhooks; `timestamp` in Unix seconds. */
export const sign = (
  secret: string,
  { body, id, timestamp }: { readonly id: string; readonly timestamp: number; readonly body: string }
): string => {
  const key = Buffer.from(secret.slice(prefix.length), "base64")
  return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`
}
