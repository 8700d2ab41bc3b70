import { createHmac, timingSafeEqual } from "node:crypto"
import { Clock, Effect, Either, Layer, Option, Redacted, Schema } from "effect"
import * as Metrics from "../services/metrics/Metrics.ts"
import {
  EventRefused,
  PaymentWebhook,
  ProviderText,
  ProviderTime,
  type SignedEvent
} from "../services/payments/PaymentProvider.ts"
import { makePaymentReconciliation } from "../services/payments/PaymentReconciliation.ts"

/** A signature's timestamp may differ from our clock by this much, in both directions. */
const toleranceSeconds = 300

/** Parses a header `t=…,v1=…,v1=…`. Returns undefined if it is malformed. */
const parseSignature = (
  header: string
): { readonly time: string; readonly signatures: ReadonlyArray<string> } | undefined => {
  const parts = header.split(",").map((part) => part.trim().split("=", 2))
  const valuesOf = (key: string) => parts.flatMap(([name, value]) => (name === key && value ? [value] : []))
  const [time, ...others] = valuesOf("t")
  return time === undefined || others.length > 0 || !/^\d{1,12}$/.test(time)
    ? undefined
    : { time, signatures: valuesOf("v1") }
}

const isDigest = (text: string): boolean => /^[0-9a-f]{64}$/.test(text)

/** Returns whether a header `Stripe-Signature` has the form of a signature. */
const isSignature = (header: string | undefined): boolean =>
  header !== undefined && (parseSignature(header)?.signatures.some(isDigest) ?? false)

const isEqualDigest = (signature: string, expected: Buffer): boolean =>
  isDigest(signature) && timingSafeEqual(Buffer.from(signature, "hex"), expected)

/**
 * Returns whether the header is a valid signature of the body. With an empty secret, none is. `now` is in Unix milliseconds.
 */
export const isSigned = (secret: string, header: string, body: Uint8Array, now: number): boolean => {
  const parsed = parseSignature(header)
  if (secret === "" || parsed === undefined) return false
  if (Math.abs(now / 1000 - Number(parsed.time)) > toleranceSeconds) return false
  const expected = createHmac("sha256", secret).update(`${parsed.time}.`).update(body).digest()
  return parsed.signatures.some((signature) => isEqualDigest(signature, expected))
}

interface WebhookOptions {
  /** The setting STRIPE_WEBHOOK_SECRET. Stripe signs its events with it. */
  readonly webhookSecret: Redacted.Redacted
  /** True for a live key, false for a test key. */
  readonly isLive: boolean
}

const Event = Schema.Struct({
  id: ProviderText.pipe(Schema.minLength(1)),
  object: Schema.Literal("event"),
  type: ProviderText,
  created: ProviderTime,
  livemode: Schema.Boolean,
  data: Schema.Struct({
    object: Schema.Struct({
      id: Schema.optional(ProviderText),
      payment_intent: Schema.optional(Schema.NullOr(Schema.Union(ProviderText, Schema.Struct({ id: ProviderText }))))
    })
  })
})
type Event = typeof Event.Type
const decodeEvent = Schema.decodeUnknownEither(Schema.parseJson(Event))

const refuse = (message: string) => new EventRefused({ message })

const sessionEvents = /^checkout\.session\./
const failureEvent = "checkout.session.async_payment_failed"
const reversalEvents = /^(?:refund\.|charge\.refunded$|charge\.refund\.|charge\.dispute\.)/

const intentOf = ({ data: { object } }: Event): string | undefined => {
  const { payment_intent: intent } = object
  return typeof intent === "string" ? intent : intent?.id
}

/** Returns the payment that an event is about, or undefined for an event that changes no payment. */
const referenceOf = (event: Event) => {
  if (sessionEvents.test(event.type)) return { session: event.data.object.id }
  const paymentIntent = reversalEvents.test(event.type) ? intentOf(event) : undefined
  return paymentIntent === undefined ? undefined : { paymentIntent }
}

const toProviderEvent = ({ created, data, id, type }: Event) => ({
  id,
  type,
  object: data.object.id,
  createdAt: new Date(created * 1000),
  reportsFailure: type === failureEvent
})

/** Implements `PaymentWebhook` with Stripe's signed events. */
export const layer = ({ isLive, webhookSecret }: WebhookOptions) =>
  Layer.effect(
    PaymentWebhook,
    Effect.gen(function* () {
      const { applyEvent } = yield* makePaymentReconciliation

      const verify = Effect.fnUntraced(function* ({ body, signature }: SignedEvent) {
        const now = yield* Clock.currentTimeMillis
        if (signature === undefined) return yield* refuse("The request has no header `Stripe-Signature`.")
        if (!isSigned(Redacted.value(webhookSecret), signature, body, now)) {
          return yield* refuse("The signature is invalid or expired.")
        }
        const event = decodeEvent(Buffer.from(body).toString("utf8"))
        if (Either.isLeft(event)) return yield* refuse("The body is not an event.")
        if (event.right.livemode === isLive) return event.right
        return yield* refuse("The event and STRIPE_SECRET_KEY have different modes, live and test.")
      })

      const count = (outcome: string) => Metrics.count(Metrics.paymentEvents, { outcome })

      const receive = (signedEvent: SignedEvent) =>
        verify(signedEvent).pipe(
          Effect.tapError(() => count("refused")),
          Effect.flatMap((event) =>
            Effect.tapErrorCause(applyEvent(toProviderEvent(event), referenceOf(event)), () => count("failed"))
          ),
          Effect.flatMap(count)
        )
      return Option.some({ isSignature, receive })
    })
  )
