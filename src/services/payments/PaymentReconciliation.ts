import { SqlClient, SqlError, type Statement } from "@effect/sql"
import { Data, Effect, Option, Schema } from "effect"
import { type NanoUsd, NanoUsdFromRow, toUsdText } from "../../domain/Money.ts"
import { OrgId } from "../../domain/Organization.ts"
import { type CheckoutSession, problemOf, type Reversal, usdPaid } from "../../domain/Payment.ts"
import { LedgerAdmin } from "../ledger/LedgerAdmin.ts"
import { Failpoint } from "../runtime/Failpoint.ts"
import { Ids } from "../runtime/Ids.ts"
import { isRefusal } from "../sql/Outage.ts"
import { rowsOf } from "../sql/SqlStatement.ts"
import {
  adoptEntry,
  applyReversals,
  findEntered,
  lockPayment,
  refOf,
  storeEntered,
  suspendDisputed
} from "./PaymentEntries.ts"
import { PaymentProvider, PaymentProviderFailed, PaymentTerms, sessionOfPayment } from "./PaymentProvider.ts"

/** An event that reports a change at the provider. Omits the new state, because the gateway fetches the current one. */
export interface ProviderEvent {
  readonly id: string
  readonly type: string
  readonly object: string | undefined
  readonly createdAt: Date
  /** Whether it reports that a payment failed after its session was completed. The session does not show this. */
  readonly reportsFailure: boolean
}

const StoredPayment = Schema.Struct({
  id: Schema.String,
  /** Null if this gateway did not start the payment. */
  orgId: Schema.NullOr(OrgId),
  amount: Schema.NullOr(NanoUsdFromRow),
  status: Schema.Literal("open", "paid", "failed", "expired", "refused"),
  /** Null if no payment page was created. */
  session: Schema.NullOr(Schema.String),
  paymentIntent: Schema.NullOr(Schema.String),
  version: Schema.Number
})
type StoredPayment = typeof StoredPayment.Type

const decodeCurrent = Schema.decodeUnknown(
  Schema.Tuple(Schema.Struct({ isDeleted: Schema.Boolean, version: Schema.Number }))
)

/** The fetched state is outdated, because another event of the payment was applied meanwhile. */
class PaymentChanged extends Data.TaggedError("PaymentChanged")<{}> {}

class EventAlreadyApplied extends Data.TaggedError("EventAlreadyApplied")<{}> {}

/** A try is repeated only if another event of the payment was applied meanwhile, so this many are never needed in practice. */
const maxTries = 20

type ReconcileResult = "applied" | "repeated"

interface PaymentReference {
  readonly session?: string | undefined
  readonly paymentIntent?: string | undefined
}

interface ProviderState {
  /** Undefined for a payment without a payment page. */
  readonly session: CheckoutSession | undefined
  readonly paymentIntent: string | undefined
  readonly reversals: ReadonlyArray<Reversal>
}

/** Returns a failure if the database refuses the values, because a retry would not help. The message contains no secret. */
const refusalOf = (error: unknown) =>
  error instanceof SqlError.SqlError && isRefusal(error)
    ? Option.some(
        new PaymentProviderFailed({
          message: `Stripe's data cannot be stored: ${error.cause instanceof Error ? error.cause.message : "refused"}.`
        })
      )
    : Option.none()

/** Returns functions that update stored payments to their state at the provider. */
export const makePaymentReconciliation = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Ids
  const provider = yield* PaymentProvider
  const failpoint = yield* Failpoint
  const { topUp } = yield* LedgerAdmin
  const { suspendsDisputed } = yield* PaymentTerms

  const isStored = ({ id }: ProviderEvent) =>
    Effect.map(sql`SELECT FROM payment_events WHERE id = ${id}`, (rows) => rows.length > 0)

  const recordEvent = Effect.fnUntraced(function* (
    { createdAt, id, object, type }: ProviderEvent,
    payment: string | null = null
  ) {
    const added = yield* sql`
      INSERT INTO payment_events (id, type, object, payment_id, created_at)
      VALUES (${id}, ${type}, ${object ?? null}, ${payment}, ${createdAt}) ON CONFLICT DO NOTHING RETURNING id`
    if (added.length === 0) return yield* new EventAlreadyApplied()
  })

  const findWhere = (condition: Statement.Fragment) =>
    Effect.map(
      rowsOf(StoredPayment)(sql`
        SELECT id, org_id, amount, status, session, payment_intent, version FROM payments WHERE ${condition}`),
      ([payment]) => payment
    )

  const findStored = ({ paymentIntent, session }: PaymentReference) =>
    findWhere(sql`session = ${session ?? null} OR payment_intent = ${paymentIntent ?? null}`)

  /** Finds the payment for which the session was created. */
  const findOwner = ({ id, payment }: CheckoutSession) =>
    findWhere(sql`id = ${payment ?? null} AND (session = ${id} OR (session IS NULL AND payment_intent IS NULL))`)

  const credit = (payment: string, org: OrgId, amount: NanoUsd, paymentIntent: string) =>
    Effect.map(topUp({ org, amount, ref: refOf(paymentIntent), note: `payment ${payment}` }), ({ entry }) => entry.id)

  const refuse = (id: string, session: CheckoutSession, problem: string) => sql`
    UPDATE payments SET status = 'refused', amount = ${usdPaid(session)}, problem = ${problem},
      paid_at = coalesce(paid_at, now()) WHERE id = ${id}`

  const applySession = Effect.fnUntraced(function* (
    payment: StoredPayment,
    session: CheckoutSession,
    { hasFailed, isDeleted }: { readonly hasFailed: boolean; readonly isDeleted: boolean }
  ) {
    const { isExpired, isPaid, paymentIntent } = session
    yield* sql`
      UPDATE payments SET session = ${session.id}, payment_intent = coalesce(${paymentIntent ?? null}, payment_intent),
        version = version + 1 WHERE id = ${payment.id}`
    if (payment.status === "refused") yield* adoptEntry(sql, payment.id)
    const { amount, orgId: org } = payment
    if (payment.status === "paid" || payment.status === "refused" || amount === null || org === null) return
    if (!isPaid || paymentIntent === undefined) {
      const status = hasFailed ? "failed" : isExpired ? "expired" : undefined
      if (status !== undefined) yield* sql`UPDATE payments SET status = ${status} WHERE id = ${payment.id}`
      return
    }
    if ((yield* adoptEntry(sql, payment.id)) !== undefined) return
    const problem = isDeleted ? "Its organization was deleted." : problemOf(session, amount, toUsdText)
    if (problem !== undefined) return void (yield* refuse(payment.id, session, problem))
    yield* Effect.matchEffect(credit(payment.id, org, amount, paymentIntent), {
      onFailure: ({ message }) => refuse(payment.id, session, message),
      onSuccess: (entry) => sql`
        UPDATE payments SET status = 'paid', entry_id = ${entry}, paid_at = now() WHERE id = ${payment.id}`
    })
  })

  /** Updates the payment and the ledger in one transaction. Locks the payment and the organization that pays. */
  const apply = (
    payment: StoredPayment,
    { paymentIntent, reversals, session }: ProviderState,
    event: ProviderEvent | undefined
  ) =>
    Effect.gen(function* () {
      if (paymentIntent !== undefined) yield* lockPayment(sql, paymentIntent)
      const entryOwner = paymentIntent === undefined ? undefined : yield* findEntered(sql, paymentIntent)
      const payer = entryOwner ?? payment.orgId
      yield* sql`SELECT FROM organizations WHERE id = ${payer} FOR NO KEY UPDATE`
      if (event !== undefined) yield* recordEvent(event, payment.id)
      const [current] = yield* Effect.flatMap(
        sql`
          SELECT deleted_at IS NOT NULL AS is_deleted, version FROM payments
          LEFT JOIN organizations ON organizations.id = org_id WHERE payments.id = ${payment.id}`,
        decodeCurrent
      )
      if (current.version !== payment.version) return yield* new PaymentChanged()
      if (session === undefined) yield* sql`UPDATE payments SET version = version + 1 WHERE id = ${payment.id}`
      else {
        const hasFailed = session.hasFailed || event?.reportsFailure === true
        yield* applySession(payment, session, { hasFailed, isDeleted: current.isDeleted })
      }
      yield* applyReversals(sql, payment.id, reversals)
      if (reversals.some(({ kind }) => kind === "dispute")) {
        for (const org of new Set([payment.orgId, payer]))
          if (org !== null) yield* suspendDisputed(sql, org, suspendsDisputed)
      }
      yield* failpoint.reach("payment_applied")
    }).pipe(sql.withTransaction, Effect.uninterruptible)

  /** Stores a payment that this gateway did not start. An operator must refund or credit it. */
  const storeForeign = (session: CheckoutSession) => sql`
    INSERT INTO payments (id, amount, status, session, payment_intent, problem, paid_at)
    VALUES (${ids.prefixed("pay")}, ${usdPaid(session)}, 'refused', ${session.id}, ${session.paymentIntent ?? null},
      'The session belongs to no payment that was started here.', now())
    ON CONFLICT DO NOTHING`

  /** Returns the payment of a session. If this gateway did not start it and it is paid, stores it first. */
  const findOrStore = Effect.fnUntraced(function* (session: CheckoutSession) {
    const reference = { session: session.id, paymentIntent: session.paymentIntent }
    const payment = (yield* findStored(reference)) ?? (yield* findOwner(session))
    if (payment !== undefined || !session.isPaid) return payment
    yield* storeForeign(session)
    return yield* findStored(reference)
  })

  /** Finds a payment that has no session. Stores it first if an operator has credited it. */
  const findOrStoreEntered = Effect.fnUntraced(function* ({ paymentIntent }: PaymentReference) {
    if (paymentIntent === undefined) return undefined
    yield* storeEntered(sql, ids.prefixed("pay"), paymentIntent)
    return yield* findStored({ paymentIntent })
  })

  const fetchSession = ({ paymentIntent = "", session }: PaymentReference) =>
    session === undefined ? provider.sessionOf(paymentIntent) : provider.session(session)

  // Reads the stored version before it fetches the state, so the state is at least as new as the version.
  const applyOnce = Effect.fnUntraced(function* (reference: PaymentReference, event: ProviderEvent | undefined) {
    const stored = yield* findStored(reference)
    const fetched = stored === undefined ? yield* fetchSession(reference) : undefined
    const payment = stored ?? (yield* fetched === undefined ? findOrStoreEntered(reference) : findOrStore(fetched))
    if (payment === undefined) return event === undefined ? undefined : yield* recordEvent(event)
    const id = payment.session ?? fetched?.id
    const session = id === undefined ? undefined : yield* sessionOfPayment(provider, payment.id, id)
    const paymentIntent = session?.paymentIntent ?? payment.paymentIntent ?? undefined
    const reversals = paymentIntent === undefined ? [] : yield* provider.reversals(paymentIntent)
    yield* apply(payment, { session, paymentIntent, reversals }, event)
  })

  /** Fetches the current state of a payment and applies it. Does nothing if the event was already applied. */
  const reconcile = (
    reference: PaymentReference,
    event?: ProviderEvent
  ): Effect.Effect<ReconcileResult, PaymentProviderFailed> =>
    applyOnce(reference, event).pipe(
      Effect.retry({ times: maxTries, while: ({ _tag }) => _tag === "PaymentChanged" }),
      Effect.as<ReconcileResult>("applied"),
      Effect.catchSomeDefect((defect) => Option.map(refusalOf(defect), Effect.fail)),
      Effect.catchTags({
        EventAlreadyApplied: () => Effect.succeed<ReconcileResult>("repeated"),
        PaymentChanged: Effect.die,
        ParseError: Effect.die,
        SqlError: (error) => Option.getOrElse(Option.map(refusalOf(error), Effect.fail), () => Effect.die(error))
      })
    )

  /** Stores an event that changes no payment. */
  const ignore = (event: ProviderEvent) =>
    recordEvent(event).pipe(
      Effect.catchTag("EventAlreadyApplied", () => Effect.void),
      Effect.orDie,
      Effect.uninterruptible
    )

  /** Stores an event and updates the payment to which it refers, if any. */
  const applyEvent = Effect.fnUntraced(function* (event: ProviderEvent, reference: PaymentReference | undefined) {
    if (yield* Effect.orDie(isStored(event))) return "repeated"
    if (reference === undefined) return yield* Effect.as(ignore(event), "ignored")
    return yield* reconcile(reference, event)
  })

  return { reconcile, applyEvent }
})
