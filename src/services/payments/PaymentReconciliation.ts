import { SqlClient, SqlError, type Statement } from "@effect/sql"
import { Data, Effect, Option, Schema } from "effect"
import { type NanoUsd, NanoUsdFromRow, toUsdText } from "../../domain/Money.ts"
import { OrgId } from "../../domain/Organization.ts"
import { type CheckoutSession, problemOf, type Reversal, usdPaid } from "../../domain/Payment.ts"
import { LedgerAdmin } from "../ledger/LedgerAdmin.ts"
import { Failpoint } from "../runtime/Failpoint.ts"
import { Ids } from "../runtime/Ids.ts"
import { isRefusal } from "../sql/Outage.ts"
import { rowsOf } from "../sql/Statement.ts"
import { adoptEntry, findEntered, lockPayment, storeEntered } from "./EnteredPayments.ts"
import { PaymentProvider, PaymentProviderFailed, PaymentTerms, sessionOfPayment } from "./PaymentProvider.ts"
import { applyReversals, refOf, suspendDisputed } from "./Reversals.ts"

/** What the provider tells of something that changed; what is true now is asked for. */
export interface ProviderEvent {
  readonly id: string
  readonly type: string
  readonly object: string | undefined
  readonly createdAt: Date
}

const Known = Schema.Struct({
  id: Schema.String,
  /** Null if nobody here asked for the payment. */
  orgId: Schema.NullOr(OrgId),
  amount: Schema.NullOr(NanoUsdFromRow),
  status: Schema.Literal("open", "paid", "failed", "expired", "refused"),
  /** Null if there is no page, or none yet. */
  session: Schema.NullOr(Schema.String),
  paymentIntent: Schema.NullOr(Schema.String),
  version: Schema.Number
})
type Known = typeof Known.Type

const decodeCurrent = Schema.decodeUnknown(
  Schema.Tuple(Schema.Struct({ isDeleted: Schema.Boolean, version: Schema.Number }))
)

/** Another event was applied since its state was asked for. */
class Outdated extends Data.TaggedError("Outdated")<{}> {}

/** The event was applied before. */
class Repeated extends Data.TaggedError("Repeated")<{}> {}

/** At each time another event of the same payment came first. */
const maxTries = 20

export type Applied = "applied" | "repeated"

/** Where something was paid. */
interface PaymentReference {
  readonly session?: string | undefined
  readonly paymentIntent?: string | undefined
}

interface ProviderState {
  /** Undefined for a payment that came without a page. */
  readonly session: CheckoutSession | undefined
  readonly paymentIntent: string | undefined
  readonly reversals: ReadonlyArray<Reversal>
}

/** A retry cannot help: the database refuses the values themselves. Its message contains no secret. */
const refusalOf = (error: unknown) =>
  error instanceof SqlError.SqlError && isRefusal(error)
    ? Option.some(
        new PaymentProviderFailed({
          message: `Stripe's data cannot be stored: ${error.cause instanceof Error ? error.cause.message : "refused"}.`
        })
      )
    : Option.none()

/** Makes payments here what they are at the provider. */
export const makePaymentReconciliation = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Ids
  const provider = yield* PaymentProvider
  const failpoint = yield* Failpoint
  const { topUp } = yield* LedgerAdmin
  const { suspendsDisputed } = yield* PaymentTerms

  const isKnown = ({ id }: ProviderEvent) =>
    Effect.map(sql`SELECT FROM payment_events WHERE id = ${id}`, (rows) => rows.length > 0)

  const note = Effect.fnUntraced(function* (
    { createdAt, id, object, type }: ProviderEvent,
    payment: string | null = null
  ) {
    const added = yield* sql`
      INSERT INTO payment_events (id, type, object, payment_id, created_at)
      VALUES (${id}, ${type}, ${object ?? null}, ${payment}, ${createdAt}) ON CONFLICT DO NOTHING RETURNING id`
    if (added.length === 0) return yield* new Repeated()
  })

  const findWhere = (condition: Statement.Fragment) =>
    Effect.map(
      rowsOf(Known)(sql`
        SELECT id, org_id, amount, status, session, payment_intent, version FROM payments WHERE ${condition}`),
      ([known]) => known
    )

  const findKnown = ({ paymentIntent, session }: PaymentReference) =>
    findWhere(sql`session = ${session ?? null} OR payment_intent = ${paymentIntent ?? null}`)

  /** A session belongs to the payment that it was made for, and to no other. */
  const findOwner = ({ id, payment }: CheckoutSession) =>
    findWhere(sql`id = ${payment ?? null} AND (session = ${id} OR (session IS NULL AND payment_intent IS NULL))`)

  const credit = (payment: string, org: OrgId, amount: NanoUsd, paymentIntent: string) =>
    Effect.map(topUp({ org, amount, ref: refOf(paymentIntent), note: `payment ${payment}` }), ({ entry }) => entry.id)

  const refuse = (id: string, session: CheckoutSession, problem: string) => sql`
    UPDATE payments SET status = 'refused', amount = ${usdPaid(session)}, problem = ${problem},
      paid_at = coalesce(paid_at, now()) WHERE id = ${id}`

  const applySession = Effect.fnUntraced(function* (
    known: Known,
    session: CheckoutSession,
    { hasFailed, isDeleted }: { readonly hasFailed: boolean; readonly isDeleted: boolean }
  ) {
    const { isExpired, isPaid, paymentIntent } = session
    yield* sql`
      UPDATE payments SET session = ${session.id}, payment_intent = coalesce(${paymentIntent ?? null}, payment_intent),
        version = version + 1 WHERE id = ${known.id}`
    if (known.status === "refused") yield* adoptEntry(sql, known.id)
    const { amount, orgId: org } = known
    if (known.status === "paid" || known.status === "refused" || amount === null || org === null) return
    if (!isPaid || paymentIntent === undefined) {
      const status = hasFailed ? "failed" : isExpired ? "expired" : undefined
      if (status !== undefined) yield* sql`UPDATE payments SET status = ${status} WHERE id = ${known.id}`
      return
    }
    if ((yield* adoptEntry(sql, known.id)) !== undefined) return
    const problem = isDeleted ? "Its organization was deleted." : problemOf(session, amount, toUsdText)
    if (problem !== undefined) return void (yield* refuse(known.id, session, problem))
    yield* Effect.matchEffect(credit(known.id, org, amount, paymentIntent), {
      onFailure: ({ message }) => refuse(known.id, session, message),
      onSuccess: (entry) => sql`
        UPDATE payments SET status = 'paid', entry_id = ${entry}, paid_at = now() WHERE id = ${known.id}`
    })
  })

  /** All of a payment's state in one transaction, behind its own lock and that of the organization that pays. */
  const apply = (
    known: Known,
    { paymentIntent, reversals, session }: ProviderState,
    event: ProviderEvent | undefined
  ) =>
    Effect.gen(function* () {
      if (paymentIntent !== undefined) yield* lockPayment(sql, paymentIntent)
      const entered = paymentIntent === undefined ? undefined : yield* findEntered(sql, paymentIntent)
      const payer = entered ?? known.orgId
      yield* sql`SELECT FROM organizations WHERE id = ${payer} FOR NO KEY UPDATE`
      if (event !== undefined) yield* note(event, known.id)
      const [now] = yield* Effect.flatMap(
        sql`
          SELECT deleted_at IS NOT NULL AS is_deleted, version FROM payments
          LEFT JOIN organizations ON organizations.id = org_id WHERE payments.id = ${known.id}`,
        decodeCurrent
      )
      if (now.version !== known.version) return yield* new Outdated()
      if (session === undefined) yield* sql`UPDATE payments SET version = version + 1 WHERE id = ${known.id}`
      else {
        const hasFailed = session.hasFailed || event?.type === "checkout.session.async_payment_failed"
        yield* applySession(known, session, { hasFailed, isDeleted: now.isDeleted })
      }
      yield* applyReversals(sql, known.id, reversals)
      if (reversals.some(({ kind }) => kind === "dispute")) {
        for (const org of new Set([known.orgId, payer]))
          if (org !== null) yield* suspendDisputed(sql, org, suspendsDisputed)
      }
      yield* failpoint.reach("payment_applied")
    }).pipe(sql.withTransaction, Effect.uninterruptible)

  /** Stores a payment that nobody here asked for: an operator refunds or credits it. */
  const storeForeign = (session: CheckoutSession) => sql`
    INSERT INTO payments (id, amount, status, session, payment_intent, problem, paid_at)
    VALUES (${ids.prefixed("pay")}, ${usdPaid(session)}, 'refused', ${session.id}, ${session.paymentIntent ?? null},
      'The session belongs to no payment that was begun here.', now())
    ON CONFLICT DO NOTHING`

  /** Returns the payment of a session; stores one first if the session is foreign and paid. */
  const findOrStore = Effect.fnUntraced(function* (session: CheckoutSession) {
    const place = { session: session.id, paymentIntent: session.paymentIntent }
    const known = (yield* findKnown(place)) ?? (yield* findOwner(session))
    if (known !== undefined || !session.isPaid) return known
    yield* storeForeign(session)
    return yield* findKnown(place)
  })

  /** Returns a payment without a session; stores one first if an operator has credited it. */
  const findOrStoreEntered = Effect.fnUntraced(function* ({ paymentIntent }: PaymentReference) {
    if (paymentIntent === undefined) return undefined
    yield* storeEntered(sql, ids.prefixed("pay"), paymentIntent)
    return yield* findKnown({ paymentIntent })
  })

  const sessionAt = ({ paymentIntent = "", session }: PaymentReference) =>
    session === undefined ? provider.sessionOf(paymentIntent) : provider.session(session)

  /** What is asked for after the version was read is at least as new as what had it. */
  const applyOnce = Effect.fnUntraced(function* (place: PaymentReference, event: ProviderEvent | undefined) {
    const here = yield* findKnown(place)
    const first = here === undefined ? yield* sessionAt(place) : undefined
    const known = here ?? (yield* first === undefined ? findOrStoreEntered(place) : findOrStore(first))
    if (known === undefined) return event === undefined ? undefined : yield* note(event)
    const id = known.session ?? first?.id
    const session = id === undefined ? undefined : yield* sessionOfPayment(provider, known.id, id)
    const paymentIntent = session?.paymentIntent ?? known.paymentIntent ?? undefined
    const reversals = paymentIntent === undefined ? [] : yield* provider.reversals(paymentIntent)
    yield* apply(known, { session, paymentIntent, reversals }, event)
  })

  /** Enters what is true of a payment now; does nothing for an event that was applied before. */
  const reconcile = (place: PaymentReference, event?: ProviderEvent): Effect.Effect<Applied, PaymentProviderFailed> =>
    applyOnce(place, event).pipe(
      Effect.retry({ times: maxTries, while: ({ _tag }) => _tag === "Outdated" }),
      Effect.as<Applied>("applied"),
      Effect.catchSomeDefect((defect) => Option.map(refusalOf(defect), Effect.fail)),
      Effect.catchTags({
        Repeated: () => Effect.succeed<Applied>("repeated"),
        Outdated: Effect.die,
        ParseError: Effect.die,
        SqlError: (error) => Option.getOrElse(Option.map(refusalOf(error), Effect.fail), () => Effect.die(error))
      })
    )

  return {
    reconcile,
    isKnown: (event: ProviderEvent) => Effect.orDie(isKnown(event)),
    /** Writes an event down that says nothing of payments. */
    note: (event: ProviderEvent) =>
      note(event).pipe(
        Effect.catchTag("Repeated", () => Effect.void),
        Effect.orDie,
        Effect.uninterruptible
      )
  }
})
