import { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { isLockTimeout } from "../sql/Outage.ts"

/** Rows of one transaction, which changes of counted rows wait for. */
const rowsAtOnce = 5_000

const Counted = Schema.decodeUnknown(Schema.Tuple(Schema.Struct({ counted: Schema.Number })))

/** Adds all queued rows of the log to the totals, as `requests/RequestColumns.ts` says; does nothing while another gateway adds. */
export const countUsage = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [{ counted }] = yield* Effect.flatMap(sql`SELECT count_uncounted(${rowsAtOnce}) AS counted`, Counted)
  return counted === rowsAtOnce
}).pipe(
  Effect.catchIf(isLockTimeout, () => Effect.succeed(false)),
  Effect.uninterruptible,
  Effect.repeat({ while: (isFull) => isFull }),
  Effect.asVoid
)
