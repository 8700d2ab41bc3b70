import type { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { NanoUsdFromRow } from "../../domain/Money.ts"
import { OrgId } from "../../domain/Organization.ts"
import { type Reversal, shareOut } from "../../domain/Payment.ts"
import { rowsOf } from "../sql/Statement.ts"
import { enterReversal, storeReversals } from "./ReversalSql.ts"

const ReversalRow = Schema.Struct({
  id: Schema.String,
  kind: Schema.Literal("refund", "dispute"),
  amount: NanoUsdFromRow,
  createdAt: Schema.DateFromSelf,
  taken: NanoUsdFromRow,
  entries: Schema.Number,
  paid: NanoUsdFromRow,
  org: OrgId
})

/**
 * Keeps what the provider lists now, and makes the ledger what all that is known comes to: one that it no longer lists
 * keeps its share.
 */
export const applyReversals = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  payment: string,
  listed: ReadonlyArray<Reversal>
) {
  yield* storeReversals(sql, payment, listed)
  const known = yield* rowsOf(ReversalRow)(sql`
    SELECT reversal.id, kind, reversal.amount, reversal.created_at, taken, entries,
      payments.amount AS paid, payments.org_id AS org
    FROM payment_reversals AS reversal JOIN payments ON payments.id = payment_id
    WHERE payment_id = ${payment} AND payments.status = 'paid'`)
  const [first] = known
  if (first === undefined) return
  const shares = shareOut(first.paid, known)
  const changes = known.flatMap(({ entries, id, kind, org, taken }) => {
    const amount = (shares.get(id) ?? 0n) - taken
    return amount === 0n ? [] : [{ id, kind, org, amount, entries }]
  })
  // What is given back comes first, so that no more than the payment is ever taken.
  const ordered = changes.toSorted((a, b) => (a.amount < b.amount ? -1 : 1))
  yield* Effect.forEach(ordered, (change) => enterReversal(sql, change), { discard: true })
})
