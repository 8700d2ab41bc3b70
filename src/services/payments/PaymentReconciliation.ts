import { SqlClient, type Statement } from "@effect/sql"
import { Data, Effect, Schema } from "effect"
import { type NanoUsd, NanoUsdFromRow, toUsdText } from "../../domain/Money.ts"
import { OrgId } from "../../domain/Organization.ts"
import { type CheckoutSession, problemOf, type Reversal, usdPaid } from "../../domain/Payment.ts"
import { LedgerAdmin } from "../ledger/LedgerAdmin.ts"
import { Failpoint } from "../runtime/Failpoint.ts"
import { Ids } from "../runtime/Ids.ts"
import { rowsOf } from "../sql/Statement.ts"
import { PaymentProvider, type PaymentProviderFailed, PaymentTerms, sessionOfPayment } from "./PaymentProvider.ts"
import { adoptEntry, noteReversals, refOf } from "./ReversalSql.ts"
import { applyReversals } from "./Reversals.ts"

/** What the provider tells of something that changed; what is true now is asked for. */
export interface ProviderEvent {
  readonly id: string
  readonly type: string
  readonly object: string | undefined
  readonly createdAt: Date
}

const Known = Schema.Struct({
  id: Schema.String,
  orgId: OrgId,
  amount: Schema.NullOr(NanoUsdFromRow),
  status: Schema.Literal("open", "paid", "failed", "expired", "refused"),
  session: Schema.NullOr(Schema.String),
  version: Schema.Number
})
type Known = typeof Known.Type

const decodeOrganization = Schema.decodeUnknown(
  Schema.Tuple(Schema.Struct({ isDeleted: Schema.Boolean, version: Schema.Number }))
)

const Refused = Schema.Struct({ id: Schema.String })

/** Another event was applied since its state was asked for. */
class Outdated extends Data.TaggedError("Outdated")<{}> {}

/** The event was applied before. */
class Repeated extends Data.TaggedError("Repeated")<{}> {}

/** At each time another event of the same payment came first. */
const maxTries = 20

export type Applied = "applied" | "repeated"

/** Where something was paid. */
interface Place {
  readonly session?: string | undefined
  readonly paymentIntent?: string | undefined
}

interface Truth {
  readonly session: CheckoutSession
  readonly reversals: ReadonlyArray<Reversal>
}

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
        SELECT id, org_id, amount, status, session, version FROM payments WHERE org_id IS NOT NULL AND ${condition}`),
      ([known]) => known
    )

  const findKnown = ({ paymentIntent, session }: Place) =>
    findWhere(sql`(session = ${session ?? null} OR payment_intent = ${paymentIntent ?? null})`)

  /** A session belongs to the payment that it was made for, and to no other. */
  const findOwner = ({ id, payment }: CheckoutSession) =>
    findWhere(sql`id = ${payment ?? null} AND (session IS NULL OR session = ${id})`)

  const credit = Effect.fnUntraced(function* (known: Known, amount: NanoUsd, paymentIntent: string) {
    const { entry } = yield* topUp({
      org: known.orgId,
      amount,
      ref: refOf(paymentIntent),
      note: `payment ${known.id}`
    })
    return entry.id
  })

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
    if (known.status === "paid" || known.status === "refused" || known.amount === null) return
    if (!isPaid || paymentIntent === undefined) {
      const status = hasFailed ? "failed" : isExpired ? "expired" : undefined
      if (status !== undefined) yield* sql`UPDATE payments SET status = ${status} WHERE id = ${known.id}`
      return
    }
    const problem = isDeleted ? "Its organization was deleted." : problemOf(session, known.amount, toUsdText)
    if (problem !== undefined) return void (yield* refuse(known.id, session, problem))
    yield* Effect.matchEffect(credit(known, known.amount, paymentIntent), {
      onFailure: ({ message }) => refuse(known.id, session, message),
      onSuccess: (entry) => sql`
        UPDATE payments SET status = 'paid', entry_id = ${entry}, paid_at = now() WHERE id = ${known.id}`
    })
  })

  const suspend = (org: OrgId) => sql`
    UPDATE organizations SET disputed_at = CASE WHEN disputed_at IS NULL THEN now() END
    WHERE id = ${org} AND (disputed_at IS NOT NULL) <> (${suspendsDisputed} AND EXISTS (
      SELECT FROM payment_reversals JOIN payments ON payments.id = payment_id
      WHERE is_open AND kind = 'dispute' AND payments.org_id = ${org}
    ))`

  /** All of a payment's state in one transaction, behind the lock of its organization. */
  const apply = (known: Known, { reversals, session }: Truth, event: ProviderEvent | undefined) =>
    Effect.gen(function* () {
      yield* sql`SELECT FROM organizations WHERE id = ${known.orgId} FOR NO KEY UPDATE`
      if (event !== undefined) yield* note(event, known.id)
      const [now] = yield* Effect.flatMap(
        sql`
          SELECT deleted_at IS NOT NULL AS is_deleted, version FROM payments
          JOIN organizations ON organizations.id = org_id WHERE payments.id = ${known.id}`,
        decodeOrganization
      )
      if (now.version !== known.version) return yield* new Outdated()
      const hasFailed = session.hasFailed || event?.type === "checkout.session.async_payment_failed"
      yield* applySession(known, session, { hasFailed, isDeleted: now.isDeleted })
      yield* applyReversals(sql, { payment: known.id, org: known.orgId }, reversals)
      if (reversals.some(({ kind }) => kind === "dispute")) yield* suspend(known.orgId)
      yield* failpoint.reach("payment_applied")
    }).pipe(sql.withTransaction, Effect.uninterruptible)

  /** Money that nobody asked for here is written down, and is the operator's to return. */
  const applyForeign = ({ reversals, session }: Truth, event: ProviderEvent | undefined) =>
    Effect.gen(function* () {
      if (event !== undefined) yield* note(event)
      if (!session.isPaid) return
      const { id, paymentIntent } = session
      yield* sql`
        INSERT INTO payments (id, amount, status, session, payment_intent, problem, paid_at)
        VALUES (${ids.prefixed("pay")}, ${usdPaid(session)}, 'refused', ${id},
          ${paymentIntent ?? null}, 'The session belongs to no payment that was begun here.', now())
        ON CONFLICT DO NOTHING`
      const found = yield* rowsOf(Refused)(sql`SELECT id FROM payments WHERE session = ${id} AND org_id IS NULL`)
      yield* Effect.forEach(found, (payment) => noteReversals(sql, payment.id, reversals), { discard: true })
    }).pipe(sql.withTransaction, Effect.uninterruptible)

  const reversalsOf = ({ paymentIntent }: CheckoutSession) =>
    paymentIntent === undefined ? Effect.succeed([]) : provider.reversals(paymentIntent)

  const sessionAt = ({ paymentIntent = "", session }: Place) =>
    session === undefined ? provider.sessionOf(paymentIntent) : provider.session(session)

  /** What is asked for after the version was read is at least as new as what had it. */
  const applyOnce = Effect.fnUntraced(function* (place: Place, event: ProviderEvent | undefined) {
    const here = yield* findKnown(place)
    const first = here === undefined ? yield* sessionAt(place) : undefined
    const known = first === undefined ? here : yield* findOwner(first)
    if (known === undefined) {
      if (first !== undefined)
        return yield* applyForeign({ session: first, reversals: yield* reversalsOf(first) }, event)
      return event === undefined ? undefined : yield* note(event)
    }
    const session = yield* sessionOfPayment(provider, known.id, known.session ?? first?.id ?? "")
    yield* apply(known, { session, reversals: yield* reversalsOf(session) }, event)
  })

  /** Enters what is true of a payment now; does nothing for an event that was applied before. */
  const reconcile = (place: Place, event?: ProviderEvent): Effect.Effect<Applied, PaymentProviderFailed> =>
    applyOnce(place, event).pipe(
      Effect.retry({ times: maxTries, while: ({ _tag }) => _tag === "Outdated" }),
      Effect.as<Applied>("applied"),
      Effect.catchTags({
        Repeated: () => Effect.succeed<Applied>("repeated"),
        Outdated: Effect.die,
        ParseError: Effect.die,
        SqlError: Effect.die
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
