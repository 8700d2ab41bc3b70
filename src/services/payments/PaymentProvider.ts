import { Context, Data, Effect, Layer, Option, Schema } from "effect"
import { maxStored, type NanoUsd, zero } from "../../domain/Money.ts"
import type { OrgId } from "../../domain/Organization.ts"
import { type CheckoutSession, fromCents, type Reversal } from "../../domain/Payment.ts"

const maxLength = 255
/** The end of the year 9999 in Unix seconds. Both PostgreSQL and JavaScript can represent times until then. */
const maxSeconds = 253_402_300_799

/** Excludes NUL, because PostgreSQL cannot store it. */
export const ProviderText = Schema.String.pipe(
  Schema.filter((text) => text.length <= maxLength && !text.includes("\0"))
)

export const ProviderTime = Schema.Int.pipe(Schema.between(0, maxSeconds))

/** The message contains no secret, so it may be logged and shown. */
export class PaymentProviderFailed extends Data.TaggedError("PaymentProviderFailed")<{ readonly message: string }> {}

export interface CheckoutOrder {
  /** The payment's id. Also used as the idempotency key. */
  readonly payment: string
  readonly org: OrgId
  readonly cents: number
  /** The URLs to which the payment page sends the customer's browser after a payment, or without one. */
  readonly successUrl: string
  readonly cancelUrl: string
}

export interface FoundReversal extends Reversal {
  readonly paymentIntent: string
}

interface ObjectList<A> {
  readonly items: ReadonlyArray<A>
  /** The number of objects that could not be decoded. The log names each. */
  readonly unreadable: number
}

const notSetUp = new PaymentProviderFailed({
  message: "Payments are not set up: STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET are not set."
})

/** The payment provider. Unless payments are set up, every call fails. */
export class PaymentProvider extends Context.Reference<PaymentProvider>()("gateway/PaymentProvider", {
  defaultValue: (): {
    readonly createSession: (order: CheckoutOrder) => Effect.Effect<CheckoutSession, PaymentProviderFailed>
    readonly session: (id: string) => Effect.Effect<CheckoutSession | undefined, PaymentProviderFailed>
    /** Returns the session in which a payment was made. */
    readonly sessionOf: (paymentIntent: string) => Effect.Effect<CheckoutSession | undefined, PaymentProviderFailed>
    /** Returns all refunds and disputes of a payment in their current state. */
    readonly reversals: (paymentIntent: string) => Effect.Effect<ReadonlyArray<Reversal>, PaymentProviderFailed>
    readonly sessionsSince: (since: Date) => Effect.Effect<ObjectList<CheckoutSession>, PaymentProviderFailed>
    /** Some USD amounts are undefined, because only `reversals` fetches them. */
    readonly reversalsSince: (since: Date) => Effect.Effect<ObjectList<FoundReversal>, PaymentProviderFailed>
  } => ({
    createSession: () => notSetUp,
    session: () => notSetUp,
    sessionOf: () => notSetUp,
    reversals: () => notSetUp,
    sessionsSince: () => notSetUp,
    reversalsSince: () => notSetUp
  })
}) {}

/** Fetches the session of a payment. Fails if the provider does not have it, for example because the account has changed. */
export const sessionOfPayment = (provider: PaymentProvider["Type"], payment: string, session: string) =>
  Effect.filterOrFail(
    provider.session(session),
    (checkout) => checkout !== undefined,
    () =>
      new PaymentProviderFailed({
        message: `The Stripe account of this gateway has no session of the payment ${payment}.`
      })
  )

/** The gateway refused an event of the payment provider and stored nothing. */
export class EventRefused extends Data.TaggedError("EventRefused")<{ readonly message: string }> {}

export interface SignedEvent {
  /** The value of the header with the signature. */
  readonly signature: string | undefined
  /** The unchanged bytes, because they are signed. */
  readonly body: Uint8Array
}

interface EventReceiver {
  /** Returns whether a header has the form of a signature. If not, the request is refused without reading its body. */
  readonly isSignature: (header: string | undefined) => boolean
  /**
   * Checks the signature, stores the event and updates the ledger. Returns only then, so the provider resends an event after
   * a failure.
   */
  readonly receive: (event: SignedEvent) => Effect.Effect<void, EventRefused | PaymentProviderFailed>
}

/** Receives the events that the payment provider sends. None unless payments are set up. */
export class PaymentWebhook extends Context.Reference<PaymentWebhook>()("gateway/PaymentWebhook", {
  defaultValue: (): Option.Option<EventReceiver> => Option.none()
}) {}

interface TermSettings {
  readonly minCents: number
  readonly maxCents: number
  readonly suspendsDisputed: boolean
  readonly publicUrl: string
}

/** The operator's settings for payments. */
export class PaymentTerms extends Context.Reference<PaymentTerms>()("gateway/PaymentTerms", {
  defaultValue: (): {
    readonly minimum: NanoUsd
    readonly maximum: NanoUsd
    /** Whether the gateway refuses new requests of an organization while one of its payments is disputed. */
    readonly suspendsDisputed: boolean
    /** The base URL of links, without a trailing slash. */
    readonly publicUrl: string
  } => ({ minimum: zero, maximum: maxStored, suspendsDisputed: true, publicUrl: "" })
}) {
  static readonly layer = ({ maxCents, minCents, publicUrl, suspendsDisputed }: TermSettings) =>
    Layer.succeed(PaymentTerms, {
      minimum: fromCents(minCents),
      maximum: fromCents(maxCents),
      suspendsDisputed,
      publicUrl
    })
}
