import { SqlClient } from "@effect/sql"
import { Effect, Layer, Schedule, Schema } from "effect"
import { month } from "../../domain/Month.ts"
import { OrgId } from "../../domain/Organization.ts"
import { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { Ids } from "../runtime/Ids.ts"
import { logFailure } from "../sql/Outage.ts"
import { rowsOf } from "../sql/Statement.ts"
import { Statement, sectionNames } from "./Statement.ts"
import { Statements } from "./Statements.ts"

const Ended = Schema.Struct({ month: Schema.String })
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

/** The oldest month that is not told of, once it can have no other entry and its charges are added up. */
const findEnded = (sql: SqlClient.SqlClient) => sql`
  SELECT to_char(month, 'YYYY-MM') AS month
  FROM statement_notices, LATERAL (SELECT (month + interval '1 month') AT TIME ZONE 'UTC' AS ends_at) AS bounds
  WHERE ends_at <= entries_complete_until() AND NOT EXISTS (
    SELECT FROM ledger_entries WHERE at >= (SELECT added_until FROM monthly_charges_progress) AND at < ends_at
  )`

/**
 * Takes the month and writes all its events, or nothing where another gateway has. In one statement, since the server ends
 * a transaction that waits for a busy gateway.
 */
const write = (sql: SqlClient.SqlClient, ended: string, notices: ReadonlyArray<Notice>) => sql`
  WITH taken AS (
    UPDATE statement_notices SET month = month + interval '1 month' WHERE month = ${`${ended}-01`}::date RETURNING month
  )
  INSERT INTO webhook_deliveries (event_id, org_id, endpoint_id, url, type, data)
  SELECT notice.event_id, endpoint.org_id, endpoint.id, endpoint.url, 'statement.ready', notice.data::json
  FROM unnest(
    ${notices.map(({ event }) => event)}::text[], ${notices.map(({ org }) => org)}::text[],
    ${notices.map(({ data }) => data)}::text[]
  ) AS notice (event_id, org_id, data)
  JOIN webhook_endpoints AS endpoint ON endpoint.org_id = notice.org_id
  WHERE endpoint.disabled_at IS NULL AND EXISTS (SELECT FROM taken)`

/** Tells endpoints of the months that have ended, each once, whichever gateways do. */
export const notifyOfStatements = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Ids
  const { find } = yield* Statements

  const noticesOf = Effect.fnUntraced(
    function* (org: OrgId, ended: string) {
      const statement = yield* find(OrganizationScope.all, org, month(ended))
      if (!hasEntries(statement)) return []
      return [{ event: ids.prefixed("evt"), org, data: yield* encode(statement) }]
    },
    // There is none of an organization that was created later.
    Effect.catchTag("NoStatement", () => Effect.succeed([]))
  )

  const notifyOfMonth = Effect.gen(function* () {
    const [ended] = yield* rowsOf(Ended)(findEnded(sql))
    if (ended === undefined) return false
    const owners = yield* rowsOf(Owner)(sql`SELECT DISTINCT org_id FROM webhook_endpoints WHERE disabled_at IS NULL`)
    const notices = yield* Effect.forEach(owners, ({ orgId }) => noticesOf(orgId, ended.month))
    yield* write(sql, ended.month, notices.flat())
    return true
  })
  yield* Effect.repeat(notifyOfMonth, { while: (more) => more })
})

export const statementNotices = Layer.scopedDiscard(
  notifyOfStatements.pipe(
    Effect.catchAllCause((cause) => logFailure("Webhooks could not be told of statements", cause)),
    Effect.repeat(Schedule.spaced("1 minute")),
    Effect.forkScoped
  )
)
