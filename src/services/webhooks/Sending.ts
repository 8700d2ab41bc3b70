import { createHmac, randomBytes } from "node:crypto"
import { Clock, Effect } from "effect"
import { explainFailure, Fetcher } from "../media/Fetcher.ts"
import type { Leased, Try } from "./DeliveryQueue.ts"

const prefix = "whsec_"

export const newSecret = (): string => prefix + randomBytes(32).toString("base64")

/** The value of `webhook-signature`, by Standard Webhooks; `timestamp` in Unix seconds. */
const sign = (
  secret: string,
  { body, id, timestamp }: { readonly id: string; readonly timestamp: number; readonly body: string }
): string => {
  const key = Buffer.from(secret.slice(prefix.length), "base64")
  return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`
}

const tryWithinSeconds = 15

const isDelivered = (status: number) => status >= 200 && status < 300

type Message = Pick<Leased, "createdAt" | "data" | "eventId" | "secret" | "type" | "url">

interface Sent extends Try {
  /** The beginning of the answer's body, of at most the bytes that were asked for. */
  readonly answer: string
}

/** One try: a signed POST, which follows no redirect. */
export const makeSend = Effect.map(
  Fetcher,
  ({ post }) =>
    ({ createdAt, data, eventId: id, secret, type, url }: Message, answerBytes = 0): Effect.Effect<Sent> =>
      Effect.gen(function* () {
        const body = JSON.stringify({ type, timestamp: createdAt.toISOString(), data })
        const timestamp = Math.floor((yield* Clock.currentTimeMillis) / 1000)
        const { answer, status } = yield* post({
          url,
          body,
          answerBytes,
          withinSeconds: tryWithinSeconds,
          headers: {
            "content-type": "application/json",
            "webhook-id": id,
            "webhook-timestamp": String(timestamp),
            "webhook-signature": sign(secret, { id, timestamp, body })
          }
        })
        return { status, failure: isDelivered(status) ? undefined : `status ${status}`, answer }
      }).pipe(
        Effect.catchAll((failed) => {
          const { detail, reason } = explainFailure(url, failed)
          return Effect.succeed({ status: failed.status, failure: `${reason}: ${detail}`, answer: "" })
        })
      )
)
