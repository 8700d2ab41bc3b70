import type { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { type NanoUsd, NanoUsdFromRow } from "../../domain/Money.ts"
import { rowsOf } from "../sql/Statement.ts"
import { refundsOf } from "./RefundSql.ts"

const Refunded = Schema.Struct({ hold: Schema.String, amount: NanoUsdFromRow })

/** What was given back of the charge of each hold; holds without a refund are left out. */
export const makeRefundedAmounts =
  (sql: SqlClient.SqlClient) =>
  (holds: ReadonlyArray<string>): Effect.Effect<ReadonlyMap<string, NanoUsd>> =>
    holds.length === 0
      ? Effect.succeed(new Map())
      : Effect.map(
          rowsOf(Refunded)(sql`
            SELECT hold.id AS hold, refunds.amount FROM unnest(${holds}::text[]) AS hold (id), LATERAL (
              SELECT sum(amount)::bigint AS amount FROM ledger_entries WHERE ${sql.literal(refundsOf("hold.id"))}
            ) AS refunds WHERE refunds.amount IS NOT NULL`),
          (rows) => new Map(rows.map(({ amount, hold }) => [hold, amount]))
        )
