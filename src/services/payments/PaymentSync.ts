import { SqlClient } from "@effect/sql"
import { Cause, Clock, Context, Duration, Effect, Layer, Schedule, Schema } from "effect"
import type { CheckoutSession } from "../../domain/Payment.ts"
import { logFailure } from "../sql/Outage.ts"
import { rowsOf } from "../sql/SqlStatement.ts"
import { adoptRefused } from "./PaymentEntries.ts"
import { type FoundReversal, PaymentProvider, type PaymentProviderFailed, PaymentTerms } from "./PaymentProvider.ts"
import { makePaymentReconciliation } from "./PaymentReconciliation.ts"
import { secondsToAwaitPage } from "./PaymentRecord.ts"

const SyncReport = Schema.Struct({
  sessions: Schema.Number,
  reversals: Schema.Number,
  /** The number of payments that were fetched again. */
  reconciled: Schema.Number,
  /** The number of payments that could not be fetched or applied. */
  failed: Schema.Number,
  /** The number of the provider's objects that could not be decoded. */
  unreadable: Schema.Number
})
type SyncReport = typeof SyncReport.Type

const SessionRow = Schema.Struct({ session: Schema.NullOr(Schema.String), status: Schema.String })
const ReversalRow = Schema.Struct({
  id: Schema.String,
  status: Schema.String,
  amount: Schema.BigInt,
  foreignAmount: Schema.NullOr(Schema.String)
})
const IntentRow = Schema.Struct({ paymentIntent: Schema.String })

/** How far back an hourly run looks. Longer than the provider retries an event. */
const hourlyPeriod = Duration.days(4)
const checkInterval = "1 minute"

/** Applies changes at the provider whose webhook events did not arrive. */
export class PaymentSync extends Context.Tag("gateway/PaymentSync")<
  PaymentSync,
  {
    /** Safe to run at any time, even concurrently. */
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

      const findUnappliedSessions = Effect.fnUntraced(function* (sessions: ReadonlyArray<CheckoutSession>) {
        const ids = sessions.map(({ id }) => id)
        const rows = yield* rowsOf(SessionRow)(sql`
          SELECT session, status FROM payments WHERE session = ANY (${ids}::text[])`)
        const statuses = new Map(rows.map(({ session, status }) => [session, status]))
        return sessions.filter(({ hasFailed, id, isExpired, isPaid }) => {
          const status = statuses.get(id)
          if (isPaid) return status !== "paid" && status !== "refused"
          return (isExpired || hasFailed) && status === "open"
        })
      })

      const findUnappliedReversals = Effect.fnUntraced(function* (reversals: ReadonlyArray<FoundReversal>) {
        const ids = reversals.map(({ id }) => id)
        const rows = yield* rowsOf(ReversalRow)(sql`
          SELECT id, status, amount, foreign_amount FROM payment_reversals WHERE id = ANY (${ids}::text[])`)
        const stored = new Map(rows.map((row) => [row.id, row]))
        return reversals.filter(({ amount, foreignAmount = null, id, status }) => {
          const row = stored.get(id)
          if (row?.status !== status || row.foreignAmount !== foreignAmount) return true
          return amount !== undefined && row.amount !== amount
        })
      })

      /** Finds payments with reversals that may still change, even long after they were created. */
      const findOpenReversals = rowsOf(IntentRow)(sql`
        SELECT DISTINCT payment_intent FROM payments JOIN payment_reversals ON payment_id = payments.id
        WHERE payment_intent IS NOT NULL AND (is_open
          OR (kind = 'dispute' AND payment_reversals.status = 'won' AND payment_reversals.amount > 0)
          OR (kind = 'refund' AND payment_reversals.status = 'succeeded'
            AND payment_reversals.created_at > now() - interval '35 days'))`)

      /** Finds payments of top-ups that operators entered with a reference, because these may have no payment page. */
      const findEntered = rowsOf(IntentRow)(sql`
        SELECT substr(ref, 8) AS payment_intent FROM ledger_entries
        WHERE kind = 'top_up' AND ref LIKE 'stripe:pi\\_%' AND at > now() - interval '4 days'
          AND NOT EXISTS (SELECT FROM payments WHERE payment_intent = substr(ref, 8) AND status = 'paid')`)

      /** Finds refused payments that an operator credited with an older version, which ignored the reference. */
      const findEnteredRefused = rowsOf(IntentRow)(sql`
        SELECT payment_intent FROM payments WHERE status = 'refused' AND payment_intent IS NOT NULL
          AND EXISTS (SELECT FROM ledger_entries WHERE kind = 'top_up' AND ref = 'stripe:' || payment_intent)`)

      /** Finds payments that are open for more than a day. Their pages have expired, so an event was probably lost. */
      const findOverdue = rowsOf(SessionRow)(sql`
        SELECT session, status FROM payments WHERE status = 'open' AND session IS NOT NULL
          AND created_at BETWEEN now() - interval '30 days' AND now() - interval '1 day'`)

      /** Lifts all suspensions without asking the provider, which would not know disputes of a former account. */
      const liftSuspensions = Effect.orDie(
        sql`UPDATE organizations SET disputed_at = NULL WHERE disputed_at IS NOT NULL`
      )

      /** Expires payments that can no longer get a payment page. If one is paid nevertheless, its event marks it as paid. */
      const expireWithoutPage = Effect.orDie(sql`
        UPDATE payments SET status = 'expired'
        WHERE status = 'open' AND session IS NULL
          AND created_at <= now() - ${secondsToAwaitPage} * interval '1 second'`)

      /** Applies all items even if some fail, and returns the number of failures. */
      const countFailures = <A, E>(items: Iterable<A>, apply: (item: A) => Effect.Effect<unknown, E>) =>
        Effect.filter(items, (item) =>
          Effect.matchCauseEffect(apply(item), {
            onFailure: (cause) =>
              Cause.isInterrupted(cause)
                ? Effect.failCause(cause)
                : Effect.as(logFailure("A payment could not be reconciled with Stripe", cause), true),
            onSuccess: () => Effect.succeed(false)
          })
        ).pipe(Effect.map(({ length }) => length))

      const adopt = ({ paymentIntent }: typeof IntentRow.Type) =>
        Effect.orDie(Effect.uninterruptible(sql.withTransaction(adoptRefused(sql, paymentIntent, suspendsDisputed))))

      const run = Effect.fn("PaymentSync.run")(function* (since: Date) {
        if (!suspendsDisputed) yield* liftSuspensions
        yield* expireWithoutPage
        const failedAdoptions = yield* countFailures(yield* findEnteredRefused, adopt)
        const sessions = yield* provider.sessionsSince(since)
        const reversals = yield* provider.reversalsSince(since)
        const unapplied = yield* findUnappliedSessions(sessions.items)
        const intents = new Set(
          [
            ...(yield* findUnappliedReversals(reversals.items)),
            ...(yield* findOpenReversals),
            ...(yield* findEntered)
          ].map(({ paymentIntent }) => paymentIntent)
        )
        const sessionIds = new Set([
          ...unapplied.map(({ id }) => id),
          ...(yield* findOverdue).flatMap(({ session }) => (session === null ? [] : [session]))
        ])
        const references = [
          ...[...sessionIds].map((session) => ({ session })),
          ...[...intents].map((paymentIntent) => ({ paymentIntent }))
        ]
        const failedReconciliations = yield* countFailures(references, (reference) => reconcile(reference))
        return {
          sessions: sessions.items.length,
          reversals: reversals.items.length,
          reconciled: references.length,
          failed: failedAdoptions + failedReconciliations,
          unreadable: sessions.unreadable + reversals.unreadable
        }
      })

      return PaymentSync.of({ run })
    })
  )

  /** Runs once an hour on one instance, and again 5 minutes after a failure. */
  static readonly hourly = Layer.scopedDiscard(
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { run } = yield* PaymentSync

      const claimTurn = Effect.uninterruptible(sql`
        UPDATE payment_syncs SET next_at = now() + interval '1 hour' WHERE next_at <= now() RETURNING next_at`)
      const postpone = Effect.uninterruptible(sql`UPDATE payment_syncs SET next_at = now() + interval '5 minutes'`)

      const runIfDue = Effect.gen(function* () {
        if ((yield* claimTurn).length === 0) return
        const since = new Date((yield* Clock.currentTimeMillis) - Duration.toMillis(hourlyPeriod))
        yield* Effect.tapErrorCause(run(since), () => Effect.ignore(postpone))
      })
      yield* runIfDue.pipe(
        Effect.catchAllCause((cause) => logFailure("Payments could not be synchronized with Stripe", cause)),
        Effect.repeat(Schedule.spaced(checkInterval)),
        Effect.forkScoped
      )
    })
  )
}
