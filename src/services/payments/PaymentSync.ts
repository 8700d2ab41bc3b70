import { SqlClient } from "@effect/sql"
import { Cause, Clock, Context, Duration, Effect, Layer, Schedule, Schema } from "effect"
import type { CheckoutSession } from "../../domain/Payment.ts"
import { logFailure } from "../sql/Outage.ts"
import { rowsOf } from "../sql/Statement.ts"
import { adoptRefused } from "./EnteredPayments.ts"
import { secondsToAwaitPage } from "./Payment.ts"
import { type FoundReversal, PaymentProvider, type PaymentProviderFailed, PaymentTerms } from "./PaymentProvider.ts"
import { makePaymentReconciliation } from "./PaymentReconciliation.ts"

export const SyncReport = Schema.Struct({
  sessions: Schema.Number,
  reversals: Schema.Number,
  /** Payments that were fetched again. */
  reconciled: Schema.Number,
  /** The number of payments that could not be fetched or entered. */
  failed: Schema.Number,
  /** The number of the provider's objects that could not be read. */
  unreadable: Schema.Number
})
export type SyncReport = typeof SyncReport.Type

const SessionRow = Schema.Struct({ session: Schema.NullOr(Schema.String), status: Schema.String })
const ReversalRow = Schema.Struct({
  id: Schema.String,
  status: Schema.String,
  amount: Schema.BigInt,
  foreignAmount: Schema.NullOr(Schema.String)
})
const IntentRow = Schema.Struct({ paymentIntent: Schema.String })

/** How far the hourly one looks back: as long as the provider goes on to send an event, and some more. */
const lookBack = Duration.days(4)
const lookEvery = "1 minute"

/** Enters what no event told. */
export class PaymentSync extends Context.Tag("gateway/PaymentSync")<
  PaymentSync,
  {
    /** Safe at any time, also beside another one. */
    readonly run: (since: Date) => Effect.Effect<SyncReport, PaymentProviderFailed>
  }
>() {
  static readonly layer = Layer.effect(
    PaymentSync,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const provider = yield* PaymentProvider
      const { suspendsDisputed } = yield* PaymentTerms
      const { reconcile } = yield* makePaymentReconciliation

      const unknownSessions = Effect.fnUntraced(function* (found: ReadonlyArray<CheckoutSession>) {
        const ids = found.map(({ id }) => id)
        const rows = yield* rowsOf(SessionRow)(sql`
          SELECT session, status FROM payments WHERE session = ANY (${ids}::text[])`)
        const known = new Map(rows.map(({ session, status }) => [session, status]))
        return found.filter(({ hasFailed, id, isExpired, isPaid }) => {
          const status = known.get(id)
          if (isPaid) return status !== "paid" && status !== "refused"
          return (isExpired || hasFailed) && status === "open"
        })
      })

      const unknownReversals = Effect.fnUntraced(function* (found: ReadonlyArray<FoundReversal>) {
        const ids = found.map(({ id }) => id)
        const rows = yield* rowsOf(ReversalRow)(sql`
          SELECT id, status, amount, foreign_amount FROM payment_reversals WHERE id = ANY (${ids}::text[])`)
        const known = new Map(rows.map((row) => [row.id, row]))
        return found.filter(({ amount, foreignAmount = null, id, status }) => {
          const row = known.get(id)
          if (row?.status !== status || row.foreignAmount !== foreignAmount) return true
          return amount !== undefined && row.amount !== amount
        })
      })

      /** Their end may come long after they began. */
      const unfinished = rowsOf(IntentRow)(sql`
        SELECT DISTINCT payment_intent FROM payments JOIN payment_reversals ON payment_id = payments.id
        WHERE payment_intent IS NOT NULL AND (is_open
          OR (kind = 'dispute' AND payment_reversals.status = 'won' AND payment_reversals.amount > 0)
          OR (kind = 'refund' AND payment_reversals.status = 'succeeded'
            AND payment_reversals.created_at > now() - interval '35 days'))`)

      /** Top-ups that operators entered with a payment's reference: the payment may have no page. */
      const entered = rowsOf(IntentRow)(sql`
        SELECT substr(ref, 8) AS payment_intent FROM ledger_entries
        WHERE kind = 'top_up' AND ref LIKE 'stripe:pi\\_%' AND at > now() - interval '4 days'
          AND NOT EXISTS (SELECT FROM payments WHERE payment_intent = substr(ref, 8) AND status = 'paid')`)

      /** Refused payments that an operator credited before the gateway recognized such entries. */
      const enteredRefused = rowsOf(IntentRow)(sql`
        SELECT payment_intent FROM payments WHERE status = 'refused' AND payment_intent IS NOT NULL
          AND EXISTS (SELECT FROM ledger_entries WHERE kind = 'top_up' AND ref = 'stripe:' || payment_intent)`)

      /** A page lasts a day: what is open for longer is paid late, or was not told of. */
      const pending = rowsOf(SessionRow)(sql`
        SELECT session, status FROM payments WHERE status = 'open' AND session IS NOT NULL
          AND created_at BETWEEN now() - interval '30 days' AND now() - interval '1 day'`)

      /** Whatever the provider tells: it may know nothing of a dispute that another account had. */
      const liftSuspensions = Effect.orDie(
        sql`UPDATE organizations SET disputed_at = NULL WHERE disputed_at IS NOT NULL`
      )

      /** They get no page any more, and count no more; if somebody paid after all, its event makes them paid. */
      const expireWithoutPage = Effect.orDie(sql`
        UPDATE payments SET status = 'expired'
        WHERE status = 'open' AND session IS NULL
          AND created_at <= now() - ${secondsToAwaitPage} * interval '1 second'`)

      /** A payment that cannot be entered must not stop the others. */
      const countFailures = <A, E>(all: Iterable<A>, enter: (one: A) => Effect.Effect<unknown, E>) =>
        Effect.filter(all, (one) =>
          Effect.matchCauseEffect(enter(one), {
            onFailure: (cause) =>
              Cause.isInterrupted(cause)
                ? Effect.failCause(cause)
                : Effect.as(logFailure("A payment could not be entered as the provider has it", cause), true),
            onSuccess: () => Effect.succeed(false)
          })
        ).pipe(Effect.map(({ length }) => length))

      const adopt = ({ paymentIntent }: typeof IntentRow.Type) =>
        Effect.orDie(Effect.uninterruptible(sql.withTransaction(adoptRefused(sql, paymentIntent, suspendsDisputed))))

      const run = Effect.fn("PaymentSync.run")(function* (since: Date) {
        if (!suspendsDisputed) yield* liftSuspensions
        yield* expireWithoutPage
        const notAdopted = yield* countFailures(yield* enteredRefused, adopt)
        const sessions = yield* provider.sessionsSince(since)
        const reversals = yield* provider.reversalsSince(since)
        const lacking = yield* unknownSessions(sessions.items)
        const intents = new Set(
          [...(yield* unknownReversals(reversals.items)), ...(yield* unfinished), ...(yield* entered)].map(
            ({ paymentIntent }) => paymentIntent
          )
        )
        const open = new Set([
          ...lacking.map(({ id }) => id),
          ...(yield* pending).flatMap(({ session }) => (session === null ? [] : [session]))
        ])
        const places = [
          ...[...open].map((session) => ({ session })),
          ...[...intents].map((paymentIntent) => ({ paymentIntent }))
        ]
        const notReconciled = yield* countFailures(places, (place) => reconcile(place))
        return {
          sessions: sessions.items.length,
          reversals: reversals.items.length,
          reconciled: places.length,
          failed: notAdopted + notReconciled,
          unreadable: sessions.unreadable + reversals.unreadable
        }
      })

      return PaymentSync.of({ run })
    })
  )

  /** One of all instances looks, once an hour; sooner after a failure. */
  static readonly hourly = Layer.scopedDiscard(
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { run } = yield* PaymentSync

      const takeTurn = Effect.uninterruptible(sql`
        UPDATE payment_syncs SET next_at = now() + interval '1 hour' WHERE next_at <= now() RETURNING next_at`)
      const giveBack = Effect.uninterruptible(sql`UPDATE payment_syncs SET next_at = now() + interval '5 minutes'`)

      const look = Effect.gen(function* () {
        if ((yield* takeTurn).length === 0) return
        const since = new Date((yield* Clock.currentTimeMillis) - Duration.toMillis(lookBack))
        yield* Effect.tapErrorCause(run(since), () => Effect.ignore(giveBack))
      })
      yield* look.pipe(
        Effect.catchAllCause((cause) => logFailure("The payment provider could not be asked what is new", cause)),
        Effect.repeat(Schedule.spaced(lookEvery)),
        Effect.forkScoped
      )
    })
  )
}
