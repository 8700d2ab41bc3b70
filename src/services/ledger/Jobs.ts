import { SqlClient, SqlError } from "@effect/sql"
import { Effect, Schema } from "effect"
import { InsufficientCredits, SpendLimitReached } from "../../domain/Failure.ts"
import { min, mostStored, type NanoUsd } from "../../domain/Money.ts"
import * as Settling from "./Settling.ts"
import * as Statements from "./Statements.ts"

/** Holds of jobs, which belong to no process. */
export const jobs = (sql: SqlClient.SqlClient) => {
  const decodeVerdict = Schema.decodeUnknown(Schema.Tuple(Statements.Verdict))
  const closeOne = (closing: Statements.Closing) =>
    Effect.catchTag(Settling.closeOne(sql, closing), "HoldContended", (cause) =>
      Effect.fail(new SqlError.SqlError({ cause, message: "the hold is being closed by somebody else" }))
    )

  const hold = Effect.fn("Ledger.job.hold")(function* (wanted: Statements.Reservation) {
    const hold = { ...wanted, amount: min(wanted.amount, mostStored) }
    const [{ period, verdict }] = yield* Effect.flatMap(Statements.reserve(sql, null, [hold]), (rows) =>
      Effect.orDie(decodeVerdict(rows))
    )
    if (verdict === "capped" && period !== null) return yield* new SpendLimitReached({ period })
    if (verdict !== "held") return yield* new InsufficientCredits()
    return hold
  }, Effect.uninterruptible)

  const settle = Effect.fn("Ledger.job.settle")(
    (hold: Statements.Reservation, cost: NanoUsd) =>
      Effect.map(closeOne(Settling.closingOf(hold, cost)), (closed) => Settling.settlementOf(hold, cost, closed)),
    Effect.uninterruptible
  )

  const release = Effect.fn("Ledger.job.release")(
    ({ id }: Statements.Reservation) => Effect.asVoid(closeOne({ id, cost: undefined })),
    Effect.uninterruptible
  )

  return { hold, settle, release }
}
