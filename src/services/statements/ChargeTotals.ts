import { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"

const Added = Schema.decodeUnknown(Schema.Tuple(Schema.Struct({ more: Schema.Boolean })))

/** Adds up charges of before `latest`, the oldest first; does nothing while another gateway does, or removes rows. */
export const addCharges = (latest: Date | "infinity" = "infinity") =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [{ more }] = yield* Effect.flatMap(sql`SELECT add_charges(${latest}::timestamptz) AS more`, Added)
    return more
  }).pipe(Effect.uninterruptible, Effect.repeat({ while: (more) => more }), Effect.asVoid)
