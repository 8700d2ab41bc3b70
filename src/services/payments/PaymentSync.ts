import { SqlClient } from "@effect/sql"
import { Clock, Context, Duration, Effect, Layer, Schedule, Schema } from "effect"
import type { CheckoutSession } from "../../domain/Payment.ts"
import { logFailure } from "../sql/Outage.ts"
import { rowsOf } from "../sql/Statement.ts"
import { type FoundReversal, PaymentProvider, type PaymentProviderFailed } from "./PaymentProvider.ts"
import { makeReconciliation } from "./Reconciliation.ts"

export const SyncReport = Schema.Struct({
  sessions: Schema.Number,
  reversals: Schema.Number,
  /** Payments that were asked for again. */
  reconciled: Schema.Number,
  /** Of these, the ones that the provider would not tell of. */
  failed: Schema.Number
})
export type SyncReport = typeof SyncReport.Type

const SessionRow = Schema.Struct({ session: Schema.NullOr(Schema.String), status: Schema.String })
const ReversalRow = Schema.Struct({ id: Schema.String, status: Schema.String, amount: Schema.BigInt })
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
      const { reconcile } = yield* makeReconciliation

      const unknownSessions = Effect.fnUntraced(function* (found: ReadonlyArray<CheckoutSession>) {
        const ids = found.map(({ id }) => id)
        const rows = yield* rowsOf(SessionRow)(sql`
          SELECT session, status FROM payments WHERE session = ANY (${ids}::text[])`)
        const known = new Map(rows.map(({ session, status }) => [session, status]))
        return found.filter(({ id, isExpired, isPaid }) => {
          const status = known.get(id)
          if (isPaid) return status !== "paid" && status !== "refused"
          return isExpired && status === "open"
        })
      })

      const unknownReversals = Effect.fnUntraced(function* (found: ReadonlyArray<FoundReversal>) {
        const ids = found.map(({ id }) => id)
        const rows = yield* rowsOf(ReversalRow)(sql`
          SELECT id, status, amount FROM payment_reversals WHERE id = ANY (${ids}::text[])`)
        const known = new Map(rows.map((row) => [row.id, row]))
        return found.filter(({ amount, id, status }) => {
          const row = known.get(id)
          return row?.status !== status || row.amount !== amount
        })
      })

      /** Their end may come long after they began. */
      const unfinished = rowsOf(IntentRow)(sql`
        SELECT DISTINCT payment_intent FROM payments JOIN payment_reversals ON payment_id = payments.id
        WHERE is_open AND payment_intent IS NOT NULL`)

      const run = Effect.fn("PaymentSync.run")(function* (since: Date) {
        const sessions = yield* provider.sessionsSince(since)
        const reversals = yield* provider.reversalsSince(since)
        const lacking = yield* unknownSessions(sessions)
        const intents = new Set([
          ...(yield* unknownReversals(reversals)).map(({ paymentIntent }) => paymentIntent),
          ...(yield* unfinished).map(({ paymentIntent }) => paymentIntent)
        ])
        const places = [
          ...lacking.map(({ id }) => ({ session: id })),
          ...[...intents].map((paymentIntent) => ({ paymentIntent }))
        ]
        // One that an account of before had must not keep the others from being entered.
        const failed = yield* Effect.filter(places, (place) =>
          Effect.matchEffect(reconcile(place), {
            onFailure: ({ message }) =>
              Effect.as(Effect.logWarning(`A payment could not be asked for: ${message}`), true),
            onSuccess: () => Effect.succeed(false)
          })
        )
        return {
          sessions: sessions.length,
          reversals: reversals.length,
          reconciled: places.length,
          failed: failed.length
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
