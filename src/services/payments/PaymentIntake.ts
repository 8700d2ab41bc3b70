import { createHmac, timingSafeEqual } from "node:crypto"
import { Clock, Context, Data, Effect, Either, Layer, Option, Redacted, Schema } from "effect"
import * as Metrics from "../metrics/Metrics.ts"
import { type PaymentProviderFailed, ProviderText, ProviderTime } from "./PaymentProvider.ts"
import { makePaymentReconciliation, type ProviderEvent } from "./PaymentReconciliation.ts"

/** Of its time and ours, either way. */
const toleranceSeconds = 300

/** The time and the signatures of a header `t=…,v1=…,v1=…`; undefined where it is none. */
const parse = (header: string): { readonly time: string; readonly signatures: ReadonlyArray<string> } | undefined => {
  const parts = header.split(",").map((part) => part.trim().split("=", 2))
  const valuesOf = (wanted: string) => parts.flatMap(([name, value]) => (name === wanted && value ? [value] : []))
  const [time, ...others] = valuesOf("t")
  return time === undefined || others.length > 0 || !/^\d{1,12}$/.test(time)
    ? undefined
    : { time, signatures: valuesOf("v1") }
}

const isDigest = (text: string): boolean => /^[0-9a-f]{64}$/.test(text)

/** Whether a header has the form of a signature. The body of any other request is not received. */
export const isSignature = (header: string | undefined): header is string =>
  header !== undefined && (parse(header)?.signatures.some(isDigest) ?? false)

const isSame = (given: string, expected: Buffer): boolean =>
  isDigest(given) && timingSafeEqual(Buffer.from(given, "hex"), expected)

/** Whether the header signs these bytes now, `now` in Unix milliseconds; an empty secret signs nothing. */
export const isSigned = (secret: string, header: string, body: Uint8Array, now: number): boolean => {
  const parsed = parse(header)
  if (secret === "" || parsed === undefined) return false
  if (Math.abs(now / 1000 - Number(parsed.time)) > toleranceSeconds) return false
  const expected = createHmac("sha256", secret).update(`${parsed.time}.`).update(body).digest()
  return parsed.signatures.some((signature) => isSame(signature, expected))
}

/** Nothing of it is kept. */
class EventRefused extends Data.TaggedError("EventRefused")<{ readonly message: string }> {}

interface IntakeOptions {
  readonly webhookSecret: Redacted.Redacted
  /** Whether the provider's key is for real money. */
  readonly isLive: boolean
}

interface Delivery {
  /** Undefined: it was not sent. */
  readonly signature: string | undefined
  /** As it came. */
  readonly body: Uint8Array
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
const decode = Schema.decodeUnknownEither(Schema.parseJson(Event))

const refusedAs = (message: string) => new EventRefused({ message })

const ofSessions = /^checkout\.session\./
const ofReversals = /^(?:refund\.|charge\.refunded$|charge\.refund\.|charge\.dispute\.)/

const intentOf = ({ data: { object } }: Event): string | undefined => {
  const { payment_intent: intent } = object
  return typeof intent === "string" ? intent : intent?.id
}

/** Where the event says that something changed; undefined where nothing here depends on it. */
const placeOf = (event: Event) => {
  if (ofSessions.test(event.type)) return { session: event.data.object.id }
  const paymentIntent = ofReversals.test(event.type) ? intentOf(event) : undefined
  return paymentIntent === undefined ? undefined : { paymentIntent }
}

/** Takes the provider's events; where none are set up, there is none. */
export class PaymentIntake extends Context.Reference<PaymentIntake>()("gateway/PaymentIntake", {
  defaultValue: (): {
    /** The event and what it does to the ledger are in the database once this ends. */
    readonly receive: Option.Option<(delivery: Delivery) => Effect.Effect<void, EventRefused | PaymentProviderFailed>>
  } => ({ receive: Option.none() })
}) {
  static readonly layer = ({ isLive, webhookSecret }: IntakeOptions) =>
    Layer.effect(
      PaymentIntake,
      Effect.gen(function* () {
        const { isKnown, note, reconcile } = yield* makePaymentReconciliation

        const verify = Effect.fnUntraced(function* ({ body, signature }: Delivery) {
          const now = yield* Clock.currentTimeMillis
          if (signature === undefined) return yield* refusedAs("The event has no `Stripe-Signature`.")
          if (!isSigned(Redacted.value(webhookSecret), signature, body, now)) {
            return yield* refusedAs("The signature of the event is not valid now.")
          }
          const event = decode(Buffer.from(body).toString("utf8"))
          if (Either.isLeft(event)) return yield* refusedAs("The body is no event.")
          if (event.right.livemode === isLive) return event.right
          return yield* refusedAs("The event is of the other mode, live or test, than the key.")
        })

        const apply = Effect.fnUntraced(function* (given: Event) {
          const { created, data, id, type } = given
          const event: ProviderEvent = { id, type, object: data.object.id, createdAt: new Date(created * 1000) }
          if (yield* isKnown(event)) return "repeated"
          const place = placeOf(given)
          if (place === undefined) return yield* Effect.as(note(event), "ignored")
          return yield* reconcile(place, event)
        })

        const count = (outcome: string) => Metrics.count(Metrics.paymentEvents, { outcome })

        const receive = (delivery: Delivery) =>
          verify(delivery).pipe(
            Effect.tapError(() => count("refused")),
            Effect.flatMap((event) => Effect.tapErrorCause(apply(event), () => count("failed"))),
            Effect.flatMap(count)
          )
        return PaymentIntake.of({ receive: Option.some(receive) })
      })
    )
}
