import { Context, Data, Effect, Layer, Schema } from "effect"
import { maxStored, type NanoUsd, zero } from "../../domain/Money.ts"
import type { OrgId } from "../../domain/Organization.ts"
import { type CheckoutSession, fromCents, type Reversal } from "../../domain/Payment.ts"

const maxLength = 255
/** The end of the year 9999, in Unix seconds: PostgreSQL and JavaScript both have it. */
const maxSeconds = 253_402_300_799

/** A text to store: PostgreSQL accepts no NUL. */
export const ProviderText = Schema.String.pipe(
  Schema.filter((text) => text.length <= maxLength && !text.includes("\0"))
)

export const ProviderTime = Schema.Int.pipe(Schema.between(0, maxSeconds))

/** Without a secret: it may be logged and shown. */
export class PaymentProviderFailed extends Data.TaggedError("PaymentProviderFailed")<{ readonly message: string }> {}

export interface CheckoutOrder {
  /** Also the key under which it is made once, however often it is tried. */
  readonly payment: string
  readonly org: OrgId
  readonly cents: number
  /** Where the customer's browser goes afterwards. */
  readonly returnUrl: string
}

export interface FoundReversal extends Reversal {
  readonly paymentIntent: string
}

/** Objects of many payments. */
interface Listed<A> {
  readonly items: ReadonlyArray<A>
  /** The number of objects that could not be read; the log names each. */
  readonly unreadable: number
}

const notSetUp = new PaymentProviderFailed({
  message: "Payments are not set up: STRIPE_SECRET_KEY and STRIPE_WEBHOOK_SECRET are not set."
})

/** Who takes customers' payments; by default nobody does. */
export class PaymentProvider extends Context.Reference<PaymentProvider>()("gateway/PaymentProvider", {
  defaultValue: (): {
    readonly createSession: (order: CheckoutOrder) => Effect.Effect<CheckoutSession, PaymentProviderFailed>
    readonly session: (id: string) => Effect.Effect<CheckoutSession | undefined, PaymentProviderFailed>
    /** The session by which a payment was made. */
    readonly sessionOf: (paymentIntent: string) => Effect.Effect<CheckoutSession | undefined, PaymentProviderFailed>
    /** All refunds and disputes of a payment, as they are now. */
    readonly reversals: (paymentIntent: string) => Effect.Effect<ReadonlyArray<Reversal>, PaymentProviderFailed>
    readonly sessionsSince: (since: Date) => Effect.Effect<Listed<CheckoutSession>, PaymentProviderFailed>
    /** Amounts in USD may be undefined here although `reversals` knows them. */
    readonly reversalsSince: (since: Date) => Effect.Effect<Listed<FoundReversal>, PaymentProviderFailed>
  } => ({
    createSession: () => notSetUp,
    session: () => notSetUp,
    sessionOf: () => notSetUp,
    reversals: () => notSetUp,
    sessionsSince: () => notSetUp,
    reversalsSince: () => notSetUp
  })
}) {}

/** The session of a payment that has one: only another account at the provider does not know it. */
export const sessionOfPayment = (provider: PaymentProvider["Type"], payment: string, session: string) =>
  Effect.filterOrFail(
    provider.session(session),
    (found) => found !== undefined,
    () => new PaymentProviderFailed({ message: `The session of ${payment} is gone.` })
  )

interface TermSettings {
  readonly minCents: number
  readonly maxCents: number
  readonly suspendsDisputed: boolean
  readonly publicUrl: string
}

/** What operators decide about payments. */
export class PaymentTerms extends Context.Reference<PaymentTerms>()("gateway/PaymentTerms", {
  defaultValue: (): {
    readonly minimum: NanoUsd
    readonly maximum: NanoUsd
    /** Whether an open dispute suspends new holds of its organization. */
    readonly suspendsDisputed: boolean
    /** What addresses are built on, without a trailing slash. */
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
