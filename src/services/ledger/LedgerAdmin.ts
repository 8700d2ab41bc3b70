import { SqlClient } from "@effect/sql"
import { Context, Data, Effect, Layer, Schema } from "effect"
import { type NanoUsd, NanoUsdFromRow } from "../../domain/Money.ts"
import { availableOf, Balance, type OrgId } from "../../domain/Organization.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { Timings } from "../runtime/Timings.ts"
import { inScope, recordsOf, rowsOf } from "../sql/Statement.ts"
import { lowCredits, notify } from "../webhooks/CrossingSql.ts"
import { Entry, type EntryQuery, entryColumns, type ListedEntry, makePages } from "./Entry.ts"
import { HoldContended } from "./HoldClosing.ts"
import { type HoldQuery, makeOpenHolds, type OpenHold, ProcessHolds } from "./OpenHolds.ts"
import { makeRefundedAmounts, type Refund, refundPrefix, refundRequest, refundsOf } from "./RefundSql.ts"
import { type Counts, type Proof, verify } from "./Verification.ts"

export class RefTaken extends Data.TaggedError("RefTaken")<{ readonly ref: string }> {
  override get message() {
    return `The reference ${this.ref} belongs to another payment: another organization or amount.`
  }
}

/** Those of refunds of requests, and of what refunds and disputes take back of payments by Stripe. */
const isReserved = (ref: string): boolean =>
  ref.startsWith(refundPrefix) || /^stripe:(?:(?:re|pyr|du|dp)_|.*:\d+$)/.test(ref)

/** A top-up with such a reference would prevent what it is for. */
export class RefReserved extends Data.TaggedError("RefReserved")<{ readonly ref: string }> {
  override get message() {
    return `The reference ${this.ref} begins like those of refunds: give the payment another.`
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
  /** Its charge and refunds, in order. */
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
    /** A known `ref` of the same payment returns the first entry and adds nothing. */
    readonly topUp: (
      payment: TopUp
    ) => Effect.Effect<{ readonly entry: Entry; readonly replayed: boolean }, RefTaken | RefReserved>
    readonly adjust: (correction: Adjustment) => Effect.Effect<Entry, WouldOverdraw>
    /** Entries of all organizations, with names and requests; newest first. */
    readonly page: (scope: OrganizationScope, query: EntryQuery) => Effect.Effect<ReadonlyArray<ListedEntry>>
    /** Oldest first. */
    readonly openHolds: (scope: OrganizationScope, query: HoldQuery) => Effect.Effect<ReadonlyArray<OpenHold>>
    /** Newest first. */
    readonly entries: (org: OrgId, options: { readonly limit: number }) => Effect.Effect<ReadonlyArray<Entry>>
    /** Also takes it off the key's spend, of the day of the charge. */
    readonly refund: (refund: Refund) => Effect.Effect<Entry, NothingToRefund>
    readonly hold: (scope: OrganizationScope, id: string) => Effect.Effect<HoldHistory | undefined>
    /** By the id of the hold. */
    readonly refundedAmounts: ReturnType<typeof makeRefundedAmounts>
    /** Proves every invariant over the whole database. */
    readonly verify: Effect.Effect<VerificationResult>
    /** As `verify`; passes on each proof as it is found. */
    readonly verifyEach: (tell: (proof: Proof) => Effect.Effect<void>) => Effect.Effect<VerificationResult>
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
        const [added] = yield* records(sql`
          WITH entered AS (
            INSERT INTO ledger_entries (org_id, kind, amount, ref, note)
            VALUES (${org}, 'top_up', ${amount}, ${ref}, ${note})
            ON CONFLICT DO NOTHING RETURNING *
          ), moved AS (
            UPDATE organizations SET balance = organizations.balance + entered.amount FROM entered
            WHERE organizations.id = entered.org_id
          )
          SELECT ${columnsOf("entered")} FROM entered`)
        if (added !== undefined) return { entry: added, replayed: false }
        const [first] = yield* records(sql`
          SELECT ${columnsOf("ledger_entries")} FROM ledger_entries
          WHERE ref = ${ref} AND org_id = ${org} AND amount = ${amount} AND kind = 'top_up'`)
        if (first === undefined) return yield* new RefTaken({ ref: ref ?? "" })
        return { entry: first, replayed: true }
      })

      const adjust = Effect.fn("LedgerAdmin.adjust")(function* ({ amount, force, note, org }: Adjustment) {
        const [entry] = yield* records(sql`
          WITH moved AS (
            UPDATE organizations SET balance = balance + ${amount}
            WHERE id = ${org} AND (${force} OR ${amount}::bigint >= 0 OR balance - held + ${amount} >= 0)
            RETURNING id, balance, held, notify_below, -${amount}::bigint AS charged
          ), ${sql.literal(notify("SELECT id FROM moved", lowCredits))}
          INSERT INTO ledger_entries (org_id, kind, amount, note)
          SELECT id, 'adjustment', ${amount}, ${note} FROM moved RETURNING ${columnsOf("ledger_entries")}`)
        if (entry !== undefined) return entry
        const [left] = yield* rowsOf(Balance)(sql`SELECT balance, held FROM organizations WHERE id = ${org}`)
        if (left === undefined) return yield* Effect.dieMessage(`there is no organization ${org}`)
        return yield* new WouldOverdraw({ available: availableOf(left) })
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

      const verifyEach = (tell: (proof: Proof) => Effect.Effect<void>) =>
        Effect.gen(function* () {
          const violations: Array<Violation> = []
          const counts = yield* verify(sql, (proof) => {
            for (const row of proof.violations) violations.push({ invariant: proof.invariant, row })
            return tell(proof)
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
        ...makePages(sql),
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
