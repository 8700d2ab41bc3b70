import { SqlClient } from "@effect/sql"
import { Context, Data, Duration, Effect, Layer, Option, Schema, Stream } from "effect"
import { type CsvCell, csvLine } from "../../domain/Csv.ts"
import { type NanoUsd, NanoUsdFromRow } from "../../domain/Money.ts"
import { availableOf, Balance, type OrgId } from "../../domain/Organization.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { Timings } from "../runtime/Timings.ts"
import { afterAllOf, inScope, recordsOf, rowsOf } from "../sql/SqlStatement.ts"
import { Entry, type EntryQuery, entryColumns, ListedEntry, makeEntryQueries } from "./Entry.ts"
import { HoldContended } from "./HoldClosing.ts"
import { type HoldQuery, makeOpenHolds, OpenHold, ProcessHolds } from "./OpenHolds.ts"
import { makeRefundedAmounts, type Refund, refundPrefix, refundRequest, refundsOf } from "./Refunds.ts"
import { type Counts, type Proof, verify } from "./Verification.ts"

export class RefTaken extends Data.TaggedError("RefTaken")<{ readonly ref: string }> {
  override get message() {
    return `The reference ${this.ref} is already used by a payment of another organization or amount.`
  }
}

/** Returns whether the reference is in the format of refunds, or of reversals of Stripe payments. */
const isReserved = (ref: string): boolean =>
  ref.startsWith(refundPrefix) || /^stripe:(?:(?:re|pyr|du|dp)_|.*:\d+$)/.test(ref)

/** Reserved, because a top-up with this reference would block the refund or reversal that later needs it. */
export class RefReserved extends Data.TaggedError("RefReserved")<{ readonly ref: string }> {
  override get message() {
    return `The reference ${this.ref} is reserved for refunds. Choose another reference.`
  }
}

export class WouldOverdraw extends Data.TaggedError("WouldOverdraw")<{ readonly available: bigint }> {}

export class HoldRow extends Schema.Class<HoldRow>("HoldRow")({
  id: Schema.String,
  amount: NanoUsdFromRow,
  state: Schema.Literal("open", "settled", "released"),
  charged: Schema.NullOr(NanoUsdFromRow),
  createdAt: Schema.DateFromSelf,
  closedAt: Schema.NullOr(Schema.DateFromSelf)
}) {}

export interface HoldHistory {
  readonly hold: HoldRow
  /** The charge of the hold and its refunds, oldest first. */
  readonly entries: ReadonlyArray<Entry>
}

export class NothingToRefund extends Data.TaggedError("NothingToRefund")<{
  readonly charged: bigint
  readonly remaining: bigint
}> {}

interface Violation {
  readonly invariant: string
  readonly row: Readonly<Record<string, unknown>>
}

export interface TopUp {
  readonly org: OrgId
  readonly amount: NanoUsd
  readonly ref?: string | undefined
  readonly note?: string | undefined
}

interface Adjustment {
  readonly org: OrgId
  readonly amount: NanoUsd
  readonly note: string
  readonly force: boolean
}

interface VerificationResult extends Counts {
  readonly violations: ReadonlyArray<Violation>
}

export class LedgerAdmin extends Context.Tag("gateway/LedgerAdmin")<
  LedgerAdmin,
  {
    /** Idempotent by `ref`: a repeated payment returns the first entry. */
    readonly topUp: (
      payment: TopUp
    ) => Effect.Effect<{ readonly entry: Entry; readonly replayed: boolean }, RefTaken | RefReserved>
    readonly adjust: (correction: Adjustment) => Effect.Effect<Entry, WouldOverdraw>
    /** Returns entries with names and requests, newest first. */
    readonly page: (scope: OrganizationScope, query: EntryQuery) => Effect.Effect<ReadonlyArray<ListedEntry>>
    /** Returns the oldest first. */
    readonly openHolds: (scope: OrganizationScope, query: HoldQuery) => Effect.Effect<ReadonlyArray<OpenHold>>
    /** Returns the newest first. */
    readonly entries: (org: OrgId, options: { readonly limit: number }) => Effect.Effect<ReadonlyArray<Entry>>
    /** Refunds a charge, and subtracts the amount from the key's spend on the day of the charge. */
    readonly refund: (refund: Refund) => Effect.Effect<Entry, NothingToRefund>
    readonly hold: (scope: OrganizationScope, id: string) => Effect.Effect<HoldHistory | undefined>
    /** Returns the refunded amounts by hold id. */
    readonly refundedAmounts: ReturnType<typeof makeRefundedAmounts>
    /** Verifies every invariant over the whole database. */
    readonly verify: Effect.Effect<VerificationResult>
    /** Like `verify`, and calls `onProof` after each invariant. */
    readonly verifyEach: (onProof: (proof: Proof) => Effect.Effect<void>) => Effect.Effect<VerificationResult>
  }
>() {
  static readonly layer = Layer.effect(
    LedgerAdmin,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const records = recordsOf(Entry)
      const columnsOf = (from: string) => sql.literal(entryColumns(from))

      const topUp = Effect.fn("LedgerAdmin.topUp")(function* (payment: TopUp) {
        const { amount, note = null, org, ref = null } = payment
        if (ref !== null && isReserved(ref)) return yield* new RefReserved({ ref })
        const [newEntry] = yield* records(sql`
          WITH entered AS (
            INSERT INTO ledger_entries (org_id, kind, amount, ref, note)
            VALUES (${org}, 'top_up', ${amount}, ${ref}, ${note})
            ON CONFLICT DO NOTHING RETURNING *
          ), moved AS (
            UPDATE organizations SET balance = organizations.balance + entered.amount FROM entered
            WHERE organizations.id = entered.org_id
          )
          SELECT ${columnsOf("entered")} FROM entered`)
        if (newEntry !== undefined) return { entry: newEntry, replayed: false }
        const [existingEntry] = yield* records(sql`
          SELECT ${columnsOf("ledger_entries")} FROM ledger_entries
          WHERE ref = ${ref} AND org_id = ${org} AND amount = ${amount} AND kind = 'top_up'`)
        if (existingEntry === undefined) return yield* new RefTaken({ ref: ref ?? "" })
        return { entry: existingEntry, replayed: true }
      })

      const adjust = Effect.fn("LedgerAdmin.adjust")(function* ({ amount, force, note, org }: Adjustment) {
        const [entry] = yield* records(sql`
          WITH moved AS (
            UPDATE organizations SET balance = balance + ${amount}
            WHERE id = ${org} AND (${force} OR ${amount}::bigint >= 0 OR balance - held + ${amount} >= 0)
            RETURNING id
          ), notified AS (
            SELECT notify_of_low_credits(id, -${amount}::bigint) FROM moved
          )
          INSERT INTO ledger_entries (org_id, kind, amount, note)
          SELECT id, 'adjustment', ${amount}, ${note} FROM moved WHERE ${sql.literal(afterAllOf("notified"))} RETURNING ${columnsOf("ledger_entries")}`)
        if (entry !== undefined) return entry
        const [balance] = yield* rowsOf(Balance)(sql`SELECT balance, held FROM organizations WHERE id = ${org}`)
        if (balance === undefined) return yield* Effect.dieMessage(`there is no organization ${org}`)
        return yield* new WouldOverdraw({ available: availableOf(balance) })
      })

      const hold = Effect.fn("LedgerAdmin.hold")(function* (scope: OrganizationScope, id: string) {
        const [hold] = yield* rowsOf(HoldRow)(
          sql`SELECT * FROM all_holds WHERE ${sql.and([sql`id = ${id}`, ...inScope(sql, scope)])}`
        )
        if (hold === undefined) return undefined
        const entries = yield* records(sql`
          SELECT ${columnsOf("ledger_entries")} FROM ledger_entries WHERE hold_id = ${id}
          UNION ALL SELECT ${columnsOf("ledger_entries")} FROM ledger_entries WHERE ${sql.literal(refundsOf(`'${hold.id}'`))} ORDER BY id`)
        return { hold, entries }
      })

      const tryRefund = Effect.fnUntraced(function* (refund: Refund) {
        const [outcome] = yield* rowsOf(RefundOutcome)(refundRequest(sql, refund))
        if (outcome === undefined) return yield* new NothingToRefund({ charged: 0n, remaining: 0n })
        const { charged, entry, remaining } = outcome
        if (entry !== null)
          return yield* records(sql`SELECT ${columnsOf("ledger_entries")} FROM ledger_entries WHERE id = ${entry}`)
        const isContended = remaining > 0n && (refund.amount ?? remaining) <= remaining
        return yield* isContended ? new HoldContended() : new NothingToRefund({ charged, remaining })
      })

      const refund = Effect.fn("LedgerAdmin.refund")(function* (refund: Refund) {
        const [entry] = yield* tryRefund(refund).pipe(
          Effect.retry({ while: (error) => error._tag === "HoldContended", times: 20 }),
          Effect.catchTag("HoldContended", Effect.die)
        )
        return entry ?? (yield* Effect.dieMessage("no refund was entered"))
      })

      const verifyEach = (onProof: (proof: Proof) => Effect.Effect<void>) =>
        Effect.gen(function* () {
          const violations: Array<Violation> = []
          const counts = yield* verify(sql, (proof) => {
            for (const row of proof.violations) violations.push({ invariant: proof.invariant, row })
            return onProof(proof)
          })
          return { violations, ...counts }
        }).pipe(Effect.orDie, Effect.uninterruptible)

      return LedgerAdmin.of({
        topUp,
        adjust,
        refund,
        hold,
        refundedAmounts: makeRefundedAmounts(sql),
        verify: verifyEach(() => Effect.void),
        verifyEach,
        ...makeEntryQueries(sql),
        openHolds: makeOpenHolds(sql, yield* ProcessHolds, yield* Timings)
      })
    })
  )
}

const RefundOutcome = Schema.Struct({
  charged: NanoUsdFromRow,
  remaining: NanoUsdFromRow,
  entry: Schema.NullOr(Schema.String)
})

const FilledFrom = Schema.decodeUnknown(Schema.Tuple(Schema.Struct({ filledFrom: Schema.String })))

/**
 * The key of an advisory lock. Adding log rows to the totals takes it exclusively, changing log rows takes it shared.
 */
export const fillingLock = "7025102615"

/**
 * Updates the charges of the next hour's rows. Rows from before totals existed lack charges made after the row was
 * written.
 */
const correctNextHour = (sql: SqlClient.SqlClient) => sql`
  UPDATE request_log AS r SET charge = h.charged - refunded.amount, cost = coalesce(v.cost, r.cost)
  FROM (SELECT usage_hour_to_fill() AS hour, filled_from FROM usage_bounds) AS next, holds AS h LEFT JOIN videos AS v ON v.hold_id = h.id, LATERAL (
    SELECT coalesce(sum(amount), 0)::bigint AS amount FROM ledger_entries WHERE ${sql.literal(refundsOf("h.id"))}
  ) AS refunded
  WHERE h.id = r.hold_id AND h.charged > refunded.amount AND r.charge = 0 AND r.at >= next.hour AND r.at < next.filled_from
    AND r.id >= first_log_id(next.hour) AND r.id < log_id_limit(next.filled_from)`

/**
 * Does nothing if another gateway has added this hour meanwhile, because `correctNextHour` has not yet corrected the
 * next one.
 */
const addHour = (sql: SqlClient.SqlClient, filledFrom: string) =>
  sql`SELECT pg_advisory_xact_lock(${sql.literal(fillingLock)})`.pipe(
    Effect.zipRight(sql`SELECT fill_usage() FROM usage_bounds WHERE filled_from = ${filledFrom}::timestamptz`),
    sql.withTransaction
  )

/** Adds the next hour of the log to the totals, while changes to log rows wait. Returns false if no hour remains. */
const fillNextHour = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [{ filledFrom }] = yield* Effect.flatMap(sql`SELECT filled_from::text FROM usage_bounds`, FilledFrom)
  if (filledFrom === "-infinity") return false
  yield* correctNextHour(sql)
  yield* addHour(sql, filledFrom)
  return true
}).pipe(Effect.uninterruptible)

/**
 * Adds the rows logged before totals existed, newest first. After each hour it pauses twice as long as the hour took,
 * because changes to the log wait while it runs.
 */
export const fillUsage = Effect.timed(fillNextHour).pipe(
  Effect.tap(([duration, hasMore]) =>
    hasMore ? Effect.sleep(Duration.sum(Duration.times(duration, 2), "20 millis")) : Effect.void
  ),
  Effect.repeat({ while: ([, hasMore]) => hasMore }),
  Effect.asVoid
)

const pageSize = 1_000

interface Paging {
  readonly after: string | undefined
  readonly limit: number
}

type Cells = { readonly [column: string]: CsvCell } & { readonly id: string }

const namesOf = ({ fields }: { readonly fields: Schema.Struct.Fields }) => Object.keys(fields)

const lineOf = (columns: ReadonlyArray<string>, record: Cells) => csvLine(columns.map((column) => record[column]))

/** Streams a header line and a line for each record, without line breaks. Reads the records page by page. */
const linesOf = <R>(
  columns: ReadonlyArray<string>,
  page: (paging: Paging) => Effect.Effect<ReadonlyArray<Cells>, never, R>
) =>
  Stream.paginateEffect<string | undefined, ReadonlyArray<string>, never, R>(undefined, (after) =>
    Effect.map(page({ after, limit: pageSize }), (rows) => {
      const next = rows.length < pageSize ? undefined : rows.at(-1)?.id
      return [rows.map((row) => lineOf(columns, row)), Option.fromNullable(next)]
    })
  ).pipe((lines) => Stream.concat(Stream.succeed([csvLine(columns)]), lines))

/** Streams the CSV lines of ledger entries, newest first. */
export const entryLines = (scope: OrganizationScope, query: Omit<EntryQuery, keyof Paging>) =>
  linesOf(namesOf(ListedEntry), (paging) =>
    Effect.flatMap(LedgerAdmin, ({ page }) => page(scope, { ...query, ...paging }))
  )

/** Streams the CSV lines of open holds, oldest first. */
export const holdLines = (scope: OrganizationScope, query: Omit<HoldQuery, keyof Paging>) =>
  linesOf(namesOf(OpenHold), (paging) =>
    Effect.flatMap(LedgerAdmin, ({ openHolds }) => openHolds(scope, { ...query, ...paging }))
  )

export const holdsCsv = (holds: ReadonlyArray<OpenHold>): ReadonlyArray<string> => {
  const columns = namesOf(OpenHold)
  return [csvLine(columns), ...holds.map((hold) => lineOf(columns, hold))]
}
