import { SqlClient } from "@effect/sql"
import { Effect, Schedule } from "effect"
import { Timings } from "../runtime/Timings.ts"
import { logFailure } from "../sql/Outage.ts"

/** Whether an organization has endpoints, at most about a second ago; true of all until it is known. */
export const watchEndpoints = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { readEndpointsEvery } = yield* Timings
  let known: ReadonlySet<string> | undefined
  const look = sql<{ readonly orgId: string }>`
    SELECT DISTINCT org_id FROM webhook_endpoints WHERE disabled_at IS NULL`.pipe(
    Effect.map((rows) => {
      known = new Set(rows.map(({ orgId }) => orgId))
    }),
    Effect.uninterruptible,
    Effect.catchAllCause((cause) => logFailure("Webhook endpoints could not be read", cause))
  )
  yield* look.pipe(Effect.repeat(Schedule.spaced(readEndpointsEvery)), Effect.forkScoped)
  return (org: string): boolean => known?.has(org) ?? true
})
