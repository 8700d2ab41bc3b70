import type { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import type { OrgId } from "../../domain/Organization.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { beatAgeOf, stateOf } from "../instance/InstanceState.ts"
import type { TimingValues } from "../runtime/Timings.ts"
import { equals, inScope, recordsOf, whenDefined } from "../sql/Statement.ts"
import { explainHold, OpenHoldRow } from "./OpenHold.ts"
import type { ProcessHolds } from "./ProcessHolds.ts"

export interface HoldQuery {
  readonly org?: OrgId | undefined
  /** Only those that have been open for so many milliseconds. */
  readonly olderThan?: number | undefined
  /** The id of the last hold of the page before. */
  readonly after?: string | undefined
  readonly limit: number
}

/** A thousand years: the database's calendar ends, while a duration may be any. */
const longestAge = 1000 * 365 * 86_400_000

/** Oldest first. */
export const makeOpenHolds = (
  sql: SqlClient.SqlClient,
  { refunds, requests }: typeof ProcessHolds.Service,
  timings: TimingValues
) => {
  const ids = (scope: OrganizationScope, { after, limit, olderThan, org }: HoldQuery) => sql`
    SELECT id FROM all_holds WHERE ${sql.and([
      sql`state = 'open'`,
      ...equals(sql, { org_id: scope.narrow(org) }),
      ...whenDefined(olderThan, (millis) => {
        const age = Math.min(millis, longestAge)
        return sql`created_at <= now() - ${age} * interval '1 millisecond'`
      }),
      ...whenDefined(after, (id) => {
        const named = sql.and([sql`id = ${id}::uuid`, ...inScope(sql, scope)])
        return sql`(created_at, id) > ((SELECT created_at FROM all_holds WHERE ${named}), ${id}::uuid)`
      })
    ])} ORDER BY created_at, id LIMIT ${limit}`

  // The planner expects few ids of an array, and looks up what belongs to them.
  const rows = (scope: OrganizationScope, query: HoldQuery) =>
    recordsOf(OpenHoldRow)(sql`
      SELECT hold.id, hold.org_id AS org, organizations.name AS org_name, hold.key_id, api_keys.name AS key_name,
        videos.model, CASE WHEN videos.id IS NOT NULL THEN 'video' END AS surface, videos.request_id,
        hold.amount AS amount_usd, hold.state, hold.created_at,
        greatest(0, floor(extract(epoch FROM now() - hold.created_at)))::float8 AS age_seconds,
        hold.instance_id AS instance, served.host || ':' || served.pid AS instance_name,
        CASE WHEN instances.id IS NOT NULL THEN ${sql.literal(stateOf("instances", timings))} END AS instance_state,
        ${sql.literal(beatAgeOf("instances"))} AS beat_age_seconds,
        videos.id AS video, videos.status AS video_status, videos.step AS video_step, videos.progress
      FROM all_holds AS hold JOIN organizations ON organizations.id = hold.org_id
      LEFT JOIN api_keys ON api_keys.id = hold.key_id
      LEFT JOIN videos ON videos.hold_id = hold.id
      LEFT JOIN instances ON instances.id = hold.instance_id
      LEFT JOIN instance_catalogs AS served ON served.instance_id = hold.instance_id
      WHERE hold.state = 'open' AND hold.id = ANY (ARRAY(${ids(scope, query)}))
      ORDER BY hold.created_at, hold.id`)

  return Effect.fn("LedgerAdmin.openHolds")(function* (scope: OrganizationScope, query: HoldQuery) {
    const pending = new Set(yield* refunds)
    const found = yield* rows(scope, query)
    const running = new Map(requests().map((request) => [request.hold, request]))
    return found.map((row) => explainHold(row, pending.has(row.id), running.get(row.id), timings.deadAfter))
  })
}
