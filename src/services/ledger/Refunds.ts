import { SqlClient, type SqlError } from "@effect/sql"
import { Array as Arr, Cause, Context, Data, Effect, Layer, Option, Queue, Schedule, Schema } from "effect"
import { KeyId } from "../../domain/ApiKey.ts"
import type { Hold } from "../../domain/Hold.ts"
import { type NanoUsd, NanoUsdFromRow } from "../../domain/Money.ts"
import { OrgId } from "../../domain/Organization.ts"
import { pluralize } from "../../domain/Wording.ts"
import { Instance } from "../instance/Instance.ts"
import { errorOf, internalFailure } from "../requests/RequestEntry.ts"
import { isOutage } from "../sql/Outage.ts"
import { lockTimeout, rowsOf } from "../sql/SqlStatement.ts"
import { HoldContended, type HoldMissing, releaseOne } from "./HoldClosing.ts"
import * as HoldSql from "./HoldSql.ts"

/** Only references of refunds have this prefix. */
export const refundPrefix = "refund:"

/** Returns the condition for a hold's refunds. The text must match their partial index. */
export const refundsOf = (hold: string): string =>
  `kind = 'adjustment' AND ref LIKE 'refund:%' AND substr(ref, 8, 36) = ${hold}::text`

export const refundedByHold = `
  SELECT substr(ref, 8, 36)::uuid AS hold_id, min(org_id) AS org_id, max(org_id) AS other_org_id,
    sum(amount) AS amount, min(amount) AS least
  FROM ledger_entries WHERE kind = 'adjustment' AND ref LIKE 'refund:%' GROUP BY 1`

/**
 * Returns `WITH` expressions: `charged` has the refundable amount as `remaining`, `entered` the new entry. Without an
 * amount, the refund is the whole `remaining`. The reference of a refund contains its number, so only one of two
 * concurrent refunds can insert an entry.
 */
const refundCtes = (sql: SqlClient.SqlClient, hold: string, amount: NanoUsd | null, note: string) => sql`
  payer AS (
    SELECT id FROM organizations
    WHERE ${lockTimeout(sql, "one")} AND id IN (SELECT org_id FROM all_holds WHERE id = ${hold}) FOR NO KEY UPDATE
  ), charged AS (
    SELECT hold.id, hold.org_id, coalesce(hold.charged, 0) AS charged, before.refunds,
      coalesce(hold.charged, 0) - before.amount AS remaining
    FROM all_holds AS hold, LATERAL (
      SELECT count(*) AS refunds, coalesce(sum(amount), 0)::bigint AS amount
      FROM ledger_entries WHERE ${sql.literal(refundsOf("hold.id"))}
    ) AS before
    WHERE hold.id = ${hold} AND (SELECT count(*) FROM payer) > 0
  ), entered AS (
    INSERT INTO ledger_entries (org_id, kind, amount, ref, note)
    SELECT org_id, 'adjustment', coalesce(${amount}, remaining),
      ${refundPrefix} || id || CASE refunds WHEN 0 THEN '' ELSE ':' || refunds + 1 END, ${note}
    FROM charged WHERE remaining > 0 AND coalesce(${amount}, remaining) <= remaining
    ON CONFLICT DO NOTHING
    RETURNING *
  ), unspent AS (
    UPDATE key_spend SET spent = key_spend.spent - entered.amount FROM entered, ledger_entries AS charge
    WHERE charge.hold_id = ${hold} AND key_spend.key_id = charge.key_id
      AND key_spend.day = (charge.at AT TIME ZONE 'UTC')::date
  ), moved AS (
    UPDATE organizations SET balance = organizations.balance + entered.amount FROM entered
    WHERE organizations.id = entered.org_id
  )`

/** Refunds a failed request in full and releases its idempotency key. Idempotent. */
export const refundFailed = (sql: SqlClient.SqlClient, hold: string) => sql<{ readonly contended: boolean }>`
  WITH ${refundCtes(sql, hold, null, "charged for an answer that failed")}, freed AS (
    UPDATE idempotency_keys SET key = NULL WHERE hold_id = ${hold}
  ), relogged AS (
    UPDATE request_log SET charge = 0, images = NULL, seconds = NULL,
      status = CASE WHEN stream OR status = 499 THEN status ELSE 500 END,
      code = CASE WHEN status = 499 THEN code WHEN stream THEN 'stream_error' ELSE 'internal_error' END,
      error = CASE WHEN status <> 499 THEN ${JSON.stringify(errorOf(internalFailure))}::text::jsonb END
    WHERE id = ${hold} AND hold_id = id AND charge > 0
  )
  SELECT remaining > 0 AND NOT EXISTS (SELECT FROM entered) AS contended FROM charged`

export interface Refund {
  /** The id of the request's log row. */
  readonly row: string
  readonly hold: string
  /** The amount to refund. Undefined for the whole remaining charge. */
  readonly amount: NanoUsd | undefined
  readonly note: string
}

/** Refunds part or all of a request's charge, and updates the charge in its log row. */
export const refundRequest = (sql: SqlClient.SqlClient, { amount, hold, note, row }: Refund) => sql`
  WITH ${refundCtes(sql, hold, amount ?? null, note)}, relogged AS (
    UPDATE request_log SET charge = charge - entered.amount FROM entered
    WHERE request_log.id = ${row} AND charge >= entered.amount
  )
  SELECT charged.charged, remaining, entered.id AS entry FROM charged LEFT JOIN entered ON true`

const RefundedAmount = Schema.Struct({ hold: Schema.String, amount: NanoUsdFromRow })

/** Returns a function that returns the refunded amount by hold id, without holds that have no refunds. */
export const makeRefundedAmounts =
  (sql: SqlClient.SqlClient) =>
  (holds: ReadonlyArray<string>): Effect.Effect<ReadonlyMap<string, NanoUsd>> =>
    holds.length === 0
      ? Effect.succeed(new Map())
      : Effect.map(
          rowsOf(RefundedAmount)(sql`
            SELECT hold.id AS hold, refunds.amount FROM unnest(${holds}::text[]) AS hold (id), LATERAL (
              SELECT sum(amount)::bigint AS amount FROM ledger_entries WHERE ${sql.literal(refundsOf("hold.id"))}
            ) AS refunds WHERE refunds.amount IS NOT NULL`),
          (rows) => new Map(rows.map(({ amount, hold }) => [hold, amount]))
        )

export const PendingRefund = Schema.Struct({
  hold: Schema.UUID,
  org: OrgId,
  key: KeyId,
  video: Schema.optional(Schema.String)
})
export type PendingRefund = typeof PendingRefund.Type

export class JournalFailed extends Data.TaggedError("JournalFailed")<{ readonly message: string }> {}

/** A durable journal of pending refunds, because the process may end while the database is unreachable. */
export class RefundJournal extends Context.Tag("gateway/RefundJournal")<
  RefundJournal,
  {
    /** The entry is durable when this returns. */
    readonly add: (entry: PendingRefund) => Effect.Effect<void, JournalFailed>
    readonly remove: (hold: string) => Effect.Effect<void, JournalFailed>
    readonly entries: Effect.Effect<ReadonlyArray<PendingRefund>, JournalFailed>
  }
>() {}

/** The port through which a refund cancels the video of the hold. */
export class RefundedVideos extends Context.Tag("gateway/RefundedVideos")<
  RefundedVideos,
  {
    /** Cancels the video and releases its hold. Does nothing if the video is finished or was never written. */
    readonly cancel: (id: string) => Effect.Effect<void, SqlError.SqlError | HoldContended | HoldMissing>
  }
>() {}

const retryInterval = "1 second"
const recoverInterval = "10 seconds"
const flushTimeout = "5 seconds"
const maxOrganizations = 2

const isTransient = (error: unknown) => error instanceof HoldContended || isOutage(error)

interface Pending {
  readonly entry: PendingRefund
  /** True if the hold may have been settled. It then needs a refund, not only a release. */
  mayBeCharged: boolean
  readonly onConfirmed: Array<Effect.Effect<void>>
  isReported: boolean
}

/**
 * Refunds or releases holds whose last statement has an unknown outcome, and retries until the database confirms it.
 */
export class Refunds extends Context.Tag("gateway/Refunds")<
  Refunds,
  {
    /** Returns when the refund is durable. Send the failure to the customer only after that. */
    readonly refund: (hold: Omit<Hold, "amount">, video?: string) => Effect.Effect<void>
    /** Releases a hold. This needs no journal, because the sweeper releases the holds of dead instances. */
    readonly release: (hold: Omit<Hold, "amount">) => Effect.Effect<void>
    /** Runs the effect once no refund or release of the hold is pending. */
    readonly runAfter: (hold: string | undefined, effect: Effect.Effect<void>) => Effect.Effect<void>
    /** Holds whose refund or release is not confirmed by the database. */
    readonly pendingHolds: Effect.Effect<ReadonlyArray<string>>
    readonly pendingVideos: Effect.Effect<ReadonlyArray<string>>
  }
>() {
  static readonly layer = Layer.scoped(
    Refunds,
    Effect.gen(function* () {
      const wakeups = yield* Queue.sliding<void>(1)
      const refunds = new PendingRefunds({
        sql: yield* SqlClient.SqlClient,
        instance: yield* Instance,
        journal: yield* RefundJournal,
        videos: yield* RefundedVideos,
        wakeups
      })
      yield* Effect.addFinalizer(() => refunds.flush)
      yield* Queue.take(wakeups).pipe(
        Effect.zipRight(
          Effect.repeat(refunds.attemptAll, { until: (isDone) => isDone, schedule: Schedule.spaced(retryInterval) })
        ),
        Effect.forever,
        Effect.forkScoped
      )
      yield* refunds.recover.pipe(Effect.repeat(Schedule.spaced(recoverInterval)), Effect.forkScoped)
      return Refunds.of({
        refund: (hold, video) => refunds.refund(hold, video),
        release: (hold) => refunds.release(hold),
        runAfter: (hold, effect) => refunds.runAfter(hold, effect),
        pendingHolds: Effect.sync(() => refunds.entries.map(({ hold }) => hold)),
        pendingVideos: Effect.sync(() => refunds.entries.flatMap(({ video }) => video ?? []))
      })
    })
  )
}

interface RefundServices {
  readonly sql: SqlClient.SqlClient
  readonly instance: Context.Tag.Service<Instance>
  readonly journal: Context.Tag.Service<RefundJournal>
  readonly videos: Context.Tag.Service<RefundedVideos>
  /** Receives an element when a refund or release becomes pending. */
  readonly wakeups: Queue.Enqueue<void>
}

class PendingRefunds {
  readonly #services: RefundServices
  /** Pending refunds and releases by hold id. */
  readonly #pending = new Map<string, Pending>()

  constructor(services: RefundServices) {
    this.#services = services
  }

  get entries(): ReadonlyArray<PendingRefund> {
    return Array.from(this.#pending.values(), ({ entry }) => entry)
  }

  refund({ id, key, org }: Omit<Hold, "amount">, video?: string): Effect.Effect<void> {
    const entry = { hold: id, org, key, ...(video === undefined ? {} : { video }) }
    return this.#services.journal.add(entry).pipe(
      Effect.catchAll(({ message }) =>
        Effect.logError(`Failed to write a refund to the journal; it is in memory only: ${message}`)
      ),
      Effect.zipRight(this.#add(entry, true)),
      Effect.uninterruptible
    )
  }

  release({ id, key, org }: Omit<Hold, "amount">): Effect.Effect<void> {
    return this.#add({ hold: id, org, key }, false)
  }

  runAfter(hold: string | undefined, effect: Effect.Effect<void>): Effect.Effect<void> {
    return Effect.suspend(() => {
      const pending = hold === undefined ? undefined : this.#pending.get(hold)
      if (pending === undefined) return effect
      pending.onConfirmed.push(effect)
      return Effect.void
    })
  }

  /** Adds the journaled refunds of killed processes. */
  readonly recover = Effect.suspend(() => this.#services.journal.entries).pipe(
    Effect.flatMap((entries) => Effect.forEach(entries, (entry) => this.#add(entry, true), { discard: true })),
    Effect.catchAll(({ message }) => Effect.logWarning(`Failed to read the refund journal: ${message}`))
  )

  /**
   * Attempts each pending refund, and returns whether none remains. After a failed attempt it skips the other refunds
   * of the organization, so it waits at most once for the lock of each organization.
   */
  readonly attemptAll = Effect.suspend(() =>
    Effect.forEach(
      Object.values(Arr.groupBy([...this.#pending.values()], ({ entry }) => entry.org)),
      (orgRefunds) =>
        Effect.reduce(orgRefunds, true, (canContinue, pending) =>
          canContinue ? this.#attempt(pending) : Effect.succeed(false)
        ),
      { concurrency: maxOrganizations, discard: true }
    )
  ).pipe(Effect.map(() => this.#pending.size === 0))

  /** Attempts the pending refunds before a shutdown. The next start reads the remaining ones from the journal. */
  readonly flush = this.attemptAll.pipe(
    Effect.repeat({ until: (isDone) => isDone, schedule: Schedule.spaced("200 millis") }),
    Effect.interruptible,
    Effect.timeout(flushTimeout),
    Effect.catchAll(() =>
      Effect.logWarning(
        `${pluralize(this.#pending.size, "refund is", "refunds are")} pending and will be retried after the next start`
      )
    )
  )

  #add(entry: PendingRefund, mayBeCharged: boolean): Effect.Effect<void> {
    return Effect.suspend(() => {
      const pending = this.#pending.get(entry.hold)
      if (pending === undefined)
        this.#pending.set(entry.hold, { entry, mayBeCharged, onConfirmed: [], isReported: false })
      else pending.mayBeCharged ||= mayBeCharged
      return Effect.asVoid(Queue.offer(this.#services.wakeups, undefined))
    })
  }

  /** Returns whether the next refund of the organization can be tried. */
  #attempt(pending: Pending): Effect.Effect<boolean> {
    return Effect.catchAllCause(Effect.as(Effect.uninterruptible(this.#attemptOnce(pending)), true), (cause) => {
      if (Cause.isInterruptedOnly(cause)) return Effect.succeed(false)
      return Option.exists(Cause.failureOption(cause), isTransient)
        ? Effect.as(Effect.logDebug("A refund will be retried", cause), false)
        : Effect.as(this.#report(pending, cause), true)
    })
  }

  /** If a refund is requested during a release, the next attempt makes it. */
  #attemptOnce(pending: Pending) {
    return Effect.gen(this, function* () {
      const { entry, mayBeCharged } = pending
      yield* this.#undo(entry, mayBeCharged)
      if (mayBeCharged !== pending.mayBeCharged) return
      this.#pending.delete(entry.hold)
      if (mayBeCharged) yield* this.#removeFromJournal(entry)
      yield* Effect.all(pending.onConfirmed, { discard: true })
    })
  }

  #undo(entry: PendingRefund, mayBeCharged: boolean) {
    const { instance, sql, videos } = this.#services
    return Effect.gen(function* () {
      const hold = { ...entry, id: entry.hold, isOfJob: entry.video !== undefined }
      yield* HoldSql.tombstone(sql, yield* instance.id, hold)
      if (entry.video === undefined) yield* releaseOne(sql, entry.hold)
      else yield* videos.cancel(entry.video)
      if (!mayBeCharged) return
      const [outcome] = yield* refundFailed(sql, entry.hold)
      if (outcome?.contended === true) return yield* new HoldContended()
    })
  }

  #removeFromJournal({ hold }: PendingRefund): Effect.Effect<void> {
    return Effect.catchAll(this.#services.journal.remove(hold), ({ message }) =>
      Effect.logWarning(`Failed to write the refund journal: ${message}`)
    )
  }

  #report(pending: Pending, cause: Cause.Cause<unknown>): Effect.Effect<void> {
    const log = pending.isReported ? Effect.logDebug : Effect.logError
    pending.isReported = true
    return log(`Failed to release or refund hold ${pending.entry.hold} of a failed request`, cause)
  }
}
