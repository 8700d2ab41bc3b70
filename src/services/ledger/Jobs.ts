import { SqlClient, SqlError } from "@effect/sql"
import { Effect } from "effect"
import { InsufficientCredits, SpendLimitReached } from "../../domain/Failure.ts"
import { min, mostStored, type NanoUsd } from "../../domain/Money.ts"
import type { Hold } from "./Hold.ts"
import * as HoldSql from "./HoldSql.ts"
import * as SettleSql from "./SettleSql.ts"
import * as Settling from "./Settling.ts"
import { runWith } from "./StatementParts.ts"

/** Holds of jobs, which belong to no process. */
export const jobs = (sql: SqlClient.SqlClient) => {
  const closeOne = (closing: SettleSql.Closing) =>
    Settling.closeOne(sql, closing).pipe(
      Effect.catchTag("HoldContended", (cause) =>
        Effect.fail(new SqlError.SqlError({ cause, message: "the hold is being closed by somebody else" }))
      ),
      Effect.catchTag("HoldMissing", Effect.die)
    )

  const hold = Effect.fn("Ledger.job.hold")(function* (wanted: Hold) {
    const hold = { ...wanted, amount: min(wanted.amount, mostStored) }
    const [placed] = yield* runWith(sql, HoldSql.reserve(null, [{ ...hold, rateLimit: undefined }]))
    const { period = null, verdict = "insufficient" } = placed ?? {}
    if (verdict === "capped" && period !== null) return yield* new SpendLimitReached({ period })
    if (verdict !== "held") return yield* new InsufficientCredits()
    return hold
  }, Effect.uninterruptible)

  const settle = Effect.fn("Ledger.job.settle")(
    (hold: Hold, cost: NanoUsd) =>
      Effect.map(closeOne(Settling.closingOf(hold, cost)), (closed) => Settling.settlementOf(hold, cost, closed)),
    Effect.uninterruptible
  )

  const release = Effect.fn("Ledger.job.release")(
    ({ id }: Hold) => Effect.asVoid(closeOne({ id, cost: undefined })),
    Effect.uninterruptible
  )

  return { hold, settle, release }
}
