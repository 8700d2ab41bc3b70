import { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { rowsOf } from "../../services/sql/Statement.ts"
import { ok, warning } from "./Finding.ts"

/** Charges are added up an hour after they were made. */
const lateAfterHours = 3

const Waiting = Schema.Struct({ since: Schema.NullOr(Schema.DateFromSelf) })
const Oldest = Schema.Struct({ pid: Schema.Number, name: Schema.String, since: Schema.DateFromSelf })

const timeOf = (date: Date) => date.toISOString().replace(/\.\d+Z$/, "Z")

/** Whether charges are added up for statements: every transaction that runs keeps those since its beginning from it. */
export const checkStatements = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [waiting] = yield* rowsOf(Waiting)(sql`
    SELECT min(at) AS since FROM ledger_entries WHERE at >= (SELECT added_until FROM monthly_charges_progress)
      AND at < now() - ${lateAfterHours} * interval '1 hour'`)
  if (!waiting?.since) return ok("statements", "charges are added up")
  const late = `charges since ${timeOf(waiting.since)} are not added up, which makes statements slow and their webhooks late`
  const [oldest] = yield* rowsOf(Oldest)(sql`
    SELECT pid, coalesce(nullif(application_name, ''), usename, 'unknown') AS name, xact_start AS since FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
      AND xact_start < now() - interval '1 hour'
    ORDER BY xact_start LIMIT 1`)
  return warning(
    "statements",
    oldest === undefined
      ? `${late}: a gateway does that once a minute, look for "Charges could not be added up" in its log`
      : `${late}: a transaction of ${oldest.name} (pid ${oldest.pid}) has been open since ${timeOf(oldest.since)}, end it or the backup that it belongs to`
  )
})
