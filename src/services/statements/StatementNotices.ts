import { SqlClient } from "@effect/sql"
import { Effect, Layer, Schedule, Schema } from "effect"
import { month } from "../../domain/Month.ts"
import { OrgId } from "../../domain/Organization.ts"
import { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { logFailure } from "../sql/Outage.ts"
import { rowsOf } from "../sql/Statement.ts"
import * as Outbox from "../webhooks/Outbox.ts"
import { Statement, sectionNames } from "./Statement.ts"
import { Statements } from "./Statements.ts"

const Ended = Schema.Struct({ month: Schema.String })
const Owner = Schema.Struct({ orgId: OrgId })

const encode = Schema.encode(Statement.pick("month", "opening_usd", "closing_usd", "total_charge_usd"))

const hasEntries = (statement: Statement) =>
  statement.usage.length > 0 || sectionNames.some((section) => statement[section].length > 0)

/** Takes the oldest month that is not told of and can have no other entry, in the transaction that tells of it. */
const takeMonth = (sql: SqlClient.SqlClient) => sql`
  WITH ended AS (
    SELECT only_row FROM statement_notices
    WHERE (month + interval '1 month') AT TIME ZONE 'UTC' <= entries_complete_until() FOR UPDATE SKIP LOCKED
  )
  UPDATE statement_notices AS notices SET month = month + interval '1 month' FROM ended
  RETURNING to_char(month - interval '1 month', 'YYYY-MM') AS month`

const notify = Effect.fnUntraced(function* (org: OrgId, ended: string) {
  const sql = yield* SqlClient.SqlClient
  const { find } = yield* Statements
  const statement = yield* find(OrganizationScope.all, org, month(ended))
  if (!hasEntries(statement)) return
  yield* Outbox.write(sql, { org, type: "statement.ready", url: undefined, data: yield* encode(statement) })
})

const notifyOfMonth = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [ended] = yield* rowsOf(Ended)(takeMonth(sql))
  if (ended === undefined) return false
  const owners = yield* rowsOf(Owner)(sql`
    SELECT DISTINCT org_id FROM webhook_endpoints WHERE disabled_at IS NULL`)
  yield* Effect.forEach(
    owners,
    // There is none of an organization that was created later.
    ({ orgId }) => Effect.catchTag(notify(orgId, ended.month), "NoStatement", () => Effect.void),
    { discard: true }
  )
  return true
})

/** Tells endpoints of the months that have ended, each once; one of all gateways does. */
export const notifyOfStatements = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql.withTransaction(notifyOfMonth).pipe(Effect.uninterruptible, Effect.repeat({ while: (more) => more }))
})

export const statementNotices = Layer.scopedDiscard(
  notifyOfStatements.pipe(
    Effect.catchAllCause((cause) => logFailure("Webhooks could not be told of statements", cause)),
    Effect.repeat(Schedule.spaced("1 minute")),
    Effect.forkScoped
  )
)
