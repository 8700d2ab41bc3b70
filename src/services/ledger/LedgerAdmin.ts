import { SqlClient } from "@effect/sql"
import { Context, Data, Effect, Layer, Schema } from "effect"
import { KeyId } from "../../domain/ApiKey.ts"
import { type NanoUsd, NanoUsdFromRow } from "../../domain/Money.ts"
import { OrgId } from "../../domain/Organization.ts"
import { invariants } from "./Invariants.ts"

/** The reference belongs to another payment: another organization or another amount. */
export class RefTaken extends Data.TaggedError("RefTaken")<{ readonly ref: string }> {}

/** The adjustment would leave less than nothing available. */
export class WouldOverdraw extends Data.TaggedError("WouldOverdraw")<{ readonly available: bigint }> {}

export class Entry extends Schema.Class<Entry>("Entry")({
  id: Schema.String,
  orgId: OrgId,
  at: Schema.DateFromSelf,
  kind: Schema.Literal("top_up", "charge", "adjustment"),
  amount: NanoUsdFromRow,
  holdId: Schema.NullOr(Schema.String),
  keyId: Schema.NullOr(KeyId),
  ref: Schema.NullOr(Schema.String),
  note: Schema.NullOr(Schema.String)
}) {}

/** A row that breaks a rule of the ledger. */
export interface Violation {
  readonly invariant: string
  readonly row: Readonly<Record<string, unknown>>
}

export interface Proof {
  readonly violations: ReadonlyArray<Violation>
  readonly organizations: number
  readonly entries: number
  readonly holds: number
}

/** The operator's side of the ledger: payments in, corrections, and the proof that all of it adds up. */
export class LedgerAdmin extends Context.Tag("gateway/LedgerAdmin")<
  LedgerAdmin,
  {
    /** A top-up whose `ref` was seen before for the same payment answers the first entry and adds nothing. */
    readonly topUp: (payment: {
      readonly org: OrgId
      readonly amount: NanoUsd
      readonly ref?: string | undefined
      readonly note?: string | undefined
    }) => Effect.Effect<{ readonly entry: Entry; readonly replayed: boolean }, RefTaken>
    readonly adjust: (correction: {
      readonly org: OrgId
      readonly amount: NanoUsd
      readonly note: string
      readonly force: boolean
    }) => Effect.Effect<Entry, WouldOverdraw>
    /** Newest first. */
    readonly entries: (org: OrgId, options: { readonly limit: number }) => Effect.Effect<ReadonlyArray<Entry>>
    /** Checks every invariant over the whole database in one snapshot. */
    readonly verify: Effect.Effect<Proof>
  }
>() {
  static readonly layer = Layer.effect(
    LedgerAdmin,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const decode = Schema.decodeUnknown(Schema.Array(Entry))

      const topUp = Effect.fn("LedgerAdmin.topUp")(function* (payment: {
        readonly org: OrgId
        readonly amount: NanoUsd
        readonly ref?: string | undefined
        readonly note?: string | undefined
      }) {
        const { amount, note = null, org, ref = null } = payment
        const [added] = yield* Effect.orDie(
          Effect.flatMap(
            sql`
              WITH entered AS (
                INSERT INTO ledger_entries (org_id, kind, amount, ref, note)
                VALUES (${org}, 'top_up', ${amount}, ${ref}, ${note})
                ON CONFLICT (ref) DO NOTHING RETURNING *
              ), moved AS (
                UPDATE organizations SET balance = organizations.balance + entered.amount FROM entered
                WHERE organizations.id = entered.org_id
              )
              SELECT * FROM entered`,
            decode
          )
        )
        if (added !== undefined) return { entry: added, replayed: false }
        const [first] = yield* Effect.orDie(
          Effect.flatMap(
            sql`SELECT * FROM ledger_entries
              WHERE ref = ${ref} AND org_id = ${org} AND amount = ${amount} AND kind = 'top_up'`,
            decode
          )
        )
        if (first === undefined) return yield* new RefTaken({ ref: ref ?? "" })
        return { entry: first, replayed: true }
      }, Effect.uninterruptible)

      const adjust = Effect.fn("LedgerAdmin.adjust")(function* (correction: {
        readonly org: OrgId
        readonly amount: NanoUsd
        readonly note: string
        readonly force: boolean
      }) {
        const { amount, force, note, org } = correction
        const [entry] = yield* Effect.orDie(
          Effect.flatMap(
            sql`
              WITH moved AS (
                UPDATE organizations SET balance = balance + ${amount}
                WHERE id = ${org} AND (${force} OR ${amount}::bigint >= 0 OR balance - held + ${amount} >= 0)
                RETURNING id
              )
              INSERT INTO ledger_entries (org_id, kind, amount, note)
              SELECT id, 'adjustment', ${amount}, ${note} FROM moved RETURNING *`,
            decode
          )
        )
        if (entry !== undefined) return entry
        const [row] = yield* Effect.orDie(
          Effect.flatMap(
            sql`SELECT balance - held AS available FROM organizations WHERE id = ${org}`,
            Schema.decodeUnknown(Schema.Tuple(Schema.Struct({ available: NanoUsdFromRow })))
          )
        )
        return yield* new WouldOverdraw({ available: row.available })
      }, Effect.uninterruptible)

      const verify = Effect.gen(function* () {
        yield* sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY`
        const violations: Array<Violation> = []
        for (const { check, name } of invariants(sql)) {
          for (const row of yield* check) violations.push({ invariant: name, row })
        }
        const [counts] = yield* Effect.flatMap(
          sql`SELECT (SELECT count(*) FROM organizations)::int AS organizations,
            (SELECT count(*) FROM ledger_entries)::int AS entries, (SELECT count(*) FROM holds)::int AS holds`,
          Schema.decodeUnknown(Schema.Tuple(Counts))
        )
        return { violations, ...counts }
      }).pipe(sql.withTransaction, Effect.withSpan("LedgerAdmin.verify"), Effect.orDie, Effect.uninterruptible)

      return LedgerAdmin.of({
        topUp,
        adjust,
        verify,
        entries: Effect.fn("LedgerAdmin.entries")(
          (org: OrgId, { limit }: { readonly limit: number }) =>
            Effect.flatMap(
              // By its own index alone: the primary key would lead through everybody's entries since its last.
              sql`SELECT * FROM ledger_entries WHERE id = ANY (ARRAY(
                  SELECT id FROM ledger_entries WHERE org_id = ${org} ORDER BY id DESC LIMIT ${limit}
                )) ORDER BY id DESC`,
              decode
            ),
          Effect.orDie,
          Effect.uninterruptible
        )
      })
    })
  )
}

const Counts = Schema.Struct({ organizations: Schema.Number, entries: Schema.Number, holds: Schema.Number })
