import type { SqlClient } from "@effect/sql"
import { Schema } from "effect"
import type { OrgId } from "../../domain/Organization.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { TextOrNull, UnixSeconds } from "../resources/Record.ts"
import { equals, inTimeRange, recordsOf } from "../sql/Statement.ts"

export interface FailureQuery {
  readonly org?: OrgId | undefined
  /** Unix milliseconds; `until` is exclusive. */
  readonly since?: number | undefined
  readonly until?: number | undefined
}

/** The requests that ended with one status and code. */
export const FailureCount = Schema.Struct({
  status: Schema.Number,
  code: TextOrNull,
  requests: Schema.Number,
  last_at: UnixSeconds
}).annotations({ identifier: "FailureCount" })
export type FailureCount = typeof FailureCount.Type

/** Far more than the gateway has codes. */
const maxListed = 100

/** The most frequent first. Streams that broke began with a status 200: an index has them by their code. */
export const countFailures = (sql: SqlClient.SqlClient, scope: OrganizationScope, { org, ...range }: FailureQuery) => {
  const asked = [...equals(sql, { org_id: scope.narrow(org) }), ...inTimeRange(sql, "at", range)]
  const rows = sql`SELECT status, code, at FROM request_log`
  return recordsOf(FailureCount)(sql`
    SELECT status, code, count(*)::int AS requests, max(at) AS last_at FROM (
      ${rows} WHERE ${sql.and([...asked, sql`status >= 400`])}
      UNION ALL ${rows} WHERE ${sql.and([...asked, sql`status < 400 AND code = 'stream_error'`])}
    ) AS failed
    GROUP BY status, code ORDER BY requests DESC, last_at DESC LIMIT ${maxListed}`)
}
