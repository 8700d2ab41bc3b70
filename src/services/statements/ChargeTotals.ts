import { SqlClient } from "@effect/sql"
import { Effect, Layer, Schedule, Schema } from "effect"
import { logFailure } from "../sql/Outage.ts"

const Added = Schema.decodeUnknown(Schema.Tuple(Schema.Struct({ more: Schema.Boolean })))

/** Adds up charges of before `latest`, the oldest first; does nothing while another gateway does, or removes rows. */
export const addCharges = (latest: Date | "infinity" = "infinity") =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [{ more }] = yield* Effect.flatMap(sql`SELECT add_charges(${latest}::timestamptz) AS more`, Added)
    return more
  }).pipe(Effect.uninterruptible, Effect.repeat({ while: (more) => more }), Effect.asVoid)

export const chargeTotals = Layer.scopedDiscard(
  addCharges().pipe(
    Effect.catchAllCause((cause) => logFailure("Charges could not be added up for statements", cause)),
    Effect.repeat(Schedule.spaced("1 minute")),
    Effect.forkScoped
  )
)
