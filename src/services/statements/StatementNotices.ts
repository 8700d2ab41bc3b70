import { SqlClient } from "@effect/sql"
import { Effect, Layer, Schedule, Schema } from "effect"
import { month } from "../../domain/Month.ts"
import { OrgId } from "../../domain/Organization.ts"
import { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { Ids } from "../runtime/Ids.ts"
import { logFailure } from "../sql/Outage.ts"
import { rowsOf } from "../sql/SqlStatement.ts"
import { eventLiteral } from "../webhooks/WebhookEvents.ts"
import { Statement, Statements, sectionNames } from "./Statements.ts"

const DueMonth = Schema.Struct({ month: Schema.String })
const Owner = Schema.Struct({ orgId: OrgId })

const encode = Schema.encode(
  Schema.parseJson(Statement.pick("month", "opening_usd", "closing_usd", "total_charge_usd"))
)

interface Notice {
  readonly event: string
  readonly org: OrgId
  readonly data: string
}

const hasEntries = (statement: Statement) =>
  statement.usage.length > 0 || sectionNames.some((section) => statement[section].length > 0)

/** Selects the oldest month whose events are not written yet, once all its entries exist and its charges are totalled. */
const selectDueMonth = (sql: SqlClient.SqlClient) => sql`
  SELECT to_char(month, 'YYYY-MM') AS month
  FROM statement_notices, LATERAL (SELECT (month + interval '1 month') AT TIME ZONE 'UTC' AS ends_at) AS bounds
  WHERE ends_at <= entries_complete_until() AND NOT EXISTS (
    SELECT FROM ledger_entries WHERE at >= (SELECT added_until FROM monthly_charges_progress) AND at < ends_at
  )`

/**
 * Claims the month and writes all its events. Writes nothing if another gateway has claimed it. One statement and not a
 * transaction, because the server aborts a transaction that is idle while this gateway is busy.
 */
const writeNotices = (sql: SqlClient.SqlClient, dueMonth: string, notices: ReadonlyArray<Notice>) => sql`
  WITH taken AS (
    UPDATE statement_notices SET month = month + interval '1 month' WHERE month = ${`${dueMonth}-01`}::date RETURNING month
  )
  INSERT INTO webhook_deliveries (event_id, org_id, endpoint_id, url, type, data)
  SELECT notice.event_id, endpoint.org_id, endpoint.id, endpoint.url, ${sql.literal(eventLiteral("statement.ready"))}, notice.data::json
  FROM unnest(
    ${notices.map(({ event }) => event)}::text[], ${notices.map(({ org }) => org)}::text[],
    ${notices.map(({ data }) => data)}::text[]
  ) AS notice (event_id, org_id, data)
  JOIN webhook_endpoints AS endpoint ON endpoint.org_id = notice.org_id
  WHERE endpoint.disabled_at IS NULL AND EXISTS (SELECT FROM taken)`

/** Writes the `statement.ready` events of all months that have ended. All gateways together write each event once. */
export const notifyOfStatements = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Ids
  const { find } = yield* Statements

  const noticesOf = Effect.fnUntraced(
    function* (org: OrgId, dueMonth: string) {
      const statement = yield* find(OrganizationScope.all, org, month(dueMonth))
      if (!hasEntries(statement)) return []
      return [{ event: ids.prefixed("evt"), org, data: yield* encode(statement) }]
    },
    // An organization that was created after the month has no statement.
    Effect.catchTag("NoStatement", () => Effect.succeed([]))
  )

  const notifyOfMonth = Effect.gen(function* () {
    const [due] = yield* rowsOf(DueMonth)(selectDueMonth(sql))
    if (due === undefined) return false
    const owners = yield* rowsOf(Owner)(sql`SELECT DISTINCT org_id FROM webhook_endpoints WHERE disabled_at IS NULL`)
    const notices = yield* Effect.forEach(owners, ({ orgId }) => noticesOf(orgId, due.month))
    yield* writeNotices(sql, due.month, notices.flat())
    return true
  })
  yield* Effect.repeat(notifyOfMonth, { while: (hasMore) => hasMore })
})

export const statementNotices = Layer.scopedDiscard(
  notifyOfStatements.pipe(
    Effect.catchAllCause((cause) => logFailure("The events of statements could not be written", cause)),
    Effect.repeat(Schedule.spaced("1 minute")),
    Effect.forkScoped
  )
)
