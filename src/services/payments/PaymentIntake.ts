import { Clock, Context, Data, Effect, Either, Layer, Option, Redacted, Schema } from "effect"
import * as Metrics from "../metrics/Metrics.ts"
import type { PaymentProviderFailed } from "./PaymentProvider.ts"
import { makePaymentReconciliation, type ProviderEvent } from "./PaymentReconciliation.ts"
import { ProviderText, ProviderTime } from "./ProviderFields.ts"
import { isSigned } from "./Signature.ts"

/** Nothing of it is kept. */
export class EventRefused extends Data.TaggedError("EventRefused")<{ readonly message: string }> {}

export interface IntakeOptions {
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
