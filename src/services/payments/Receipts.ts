import { SqlClient } from "@effect/sql"
import type { Fragment } from "@effect/sql/Statement"
import { Context, Data, Effect, Layer, Schema } from "effect"
import { receiptNumber } from "../../domain/Documents.ts"
import { NanoUsdFromRow } from "../../domain/Money.ts"
import { OrgId } from "../../domain/Organization.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { isPublicId, publicId } from "../sql/Listing.ts"
import { recordsOf, rowsOf } from "../sql/SqlStatement.ts"
import { DocumentSeller, documentFieldsOf } from "../statements/Seller.ts"
import { disputedSql, PaymentReversal, type Receipt, reversedSql } from "./PaymentRecord.ts"

class ReceiptNotFound extends Data.TaggedError("ReceiptNotFound")<{ readonly entry: string }> {
  override get message() {
    return `There is no payment or top-up with the ledger entry ${this.entry}.`
  }
}

const ReceiptRow = Schema.Struct({
  entry: Schema.String,
  org: OrgId,
  orgName: Schema.String,
  payment: Schema.NullOr(Schema.String),
  paidAt: Schema.DateFromSelf,
  amount: NanoUsdFromRow,
  reference: Schema.NullOr(Schema.String),
  hasSession: Schema.Boolean,
  reversed: NanoUsdFromRow,
  disputed: Schema.Boolean
})

/** Returns all refunds and disputes of a payment. */
export const reversalsOf = (sql: SqlClient.SqlClient, payment: string) =>
  recordsOf(PaymentReversal)(sql`
    SELECT id, kind, status, CASE WHEN NOT needs_amount THEN amount END AS amount_usd, foreign_amount,
      taken AS taken_usd, created_at
    FROM payment_reversals WHERE payment_id = ${payment} ORDER BY created_at, id`)

/** Returns a function that finds the receipt of the entry that meets a condition on `entry` or `payment`. */
export const makeReceiptFinder = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const document = yield* DocumentSeller
  return Effect.fnUntraced(function* (condition: Fragment) {
    const [row] = yield* rowsOf(ReceiptRow)(sql`
      SELECT ${sql.literal(publicId("ledger_entries", "entry"))} AS entry, entry.org_id AS org, organizations.name AS org_name,
        payment.id AS payment, coalesce(payment.paid_at, entry.at) AS paid_at, entry.amount, entry.ref AS reference,
        payment.session IS NOT NULL AS has_session, ${sql.literal(reversedSql)} AS reversed, ${sql.literal(disputedSql)} AS disputed
      FROM ledger_entries AS entry JOIN organizations ON organizations.id = entry.org_id
      LEFT JOIN payments AS payment ON payment.entry_id = entry.id
      WHERE entry.kind = 'top_up' AND ${condition}`)
    if (row === undefined) return undefined
    const { amount, disputed, entry, hasSession, org, orgName, paidAt, payment, reference, reversed } = row
    const receipt: Receipt = {
      number: receiptNumber(payment ?? entry),
      ...documentFieldsOf(document),
      org,
      org_name: orgName,
      payment,
      paid_at: paidAt,
      amount_usd: amount,
      method: hasSession ? "stripe" : "entered",
      reference,
      reversed_usd: reversed,
      disputed,
      reversals: payment === null ? [] : yield* reversalsOf(sql, payment)
    }
    return receipt
  })
})

/** The receipts of credits: payments by Stripe, and credits that an operator entered. */
export class Receipts extends Context.Tag("gateway/Receipts")<
  Receipts,
  {
    /** `entry` is the id of a ledger entry, as statements list it. */
    readonly find: (scope: OrganizationScope, org: OrgId, entry: string) => Effect.Effect<Receipt, ReceiptNotFound>
  }
>() {
  static readonly layer = Layer.effect(
    Receipts,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const findOne = yield* makeReceiptFinder
      return Receipts.of({
        find: Effect.fn("Receipts.find")(function* (scope: OrganizationScope, org: OrgId, entry: string) {
          if (!isPublicId(entry)) return yield* new ReceiptNotFound({ entry })
          const owner = scope.narrow(org) ?? org
          const receipt = yield* findOne(
            sql`entry.org_id = ${owner} AND entry.id = (SELECT number_of('ledger_entries', ${entry}, ${owner}))`
          )
          return receipt ?? (yield* new ReceiptNotFound({ entry }))
        })
      })
    })
  )
}
