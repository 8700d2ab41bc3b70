import type { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { ChangesLimited } from "../../domain/Failure.ts"
import type { OrgId } from "../../domain/Organization.ts"
import { makeKeyedSemaphore } from "../runtime/KeyedSemaphore.ts"
import { rowsOf } from "../sql/Statement.ts"

/** Per organization, because each change adds a permanent row to the audit. */
const maxPerMinute = 60
const maxAtOnce = 8
/** The check reads only the newest rows, which include operators' changes. */
const maxRows = 1_000

const Full = Schema.Struct({ waitSeconds: Schema.Number })

/** Limits the rate of members' changes. */
export const makeMemberChanges = (sql: SqlClient.SqlClient) =>
  Effect.map(makeKeyedSemaphore(maxAtOnce), (inTurn) => ({
    /** Runs an organization's changes one at a time: those that wait for its locks would hold database connections. */
    inTurn: (org: OrgId | undefined) => (org === undefined ? <A>(change: A) => change : inTurn(org)),
    /** Fails if the last minute already has `maxPerMinute` changes. Run it in the transaction of the change. */
    check: Effect.fnUntraced(function* (org: OrgId) {
      const [full] = yield* rowsOf(Full)(sql`
        SELECT ceil(extract(epoch FROM at + interval '1 minute' - now()))::integer AS wait_seconds
        FROM (SELECT id, at, operator_id FROM audit WHERE org_id = ${org} ORDER BY id DESC LIMIT ${maxRows}) AS newest
        WHERE at > now() - interval '1 minute' AND operator_id IN (SELECT id FROM operators WHERE org_id = ${org})
        ORDER BY id DESC OFFSET ${maxPerMinute - 1} LIMIT 1`)
      if (full === undefined) return
      return yield* new ChangesLimited({ limit: maxPerMinute, retryAfterSeconds: Math.max(1, full.waitSeconds) })
    })
  }))
