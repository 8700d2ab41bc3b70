import { SqlClient } from "@effect/sql"
import { Context, Effect, Fiber, Layer, Option, Schema } from "effect"
import * as Metrics from "../metrics/Metrics.ts"
import { monotonicMillis } from "../runtime/System.ts"
import { rowsOf } from "../sql/SqlStatement.ts"

/** Counts open holds, videos or deliveries. `label` is `job` or `process` for holds, and the status for videos. */
export class OpenTotal extends Schema.Class<OpenTotal>("OpenTotal")({
  label: Schema.String,
  count: Schema.NumberFromString,
  oldestMs: Schema.Number
}) {}

class LowOrganizations extends Schema.Class<LowOrganizations>("LowOrganizations")({
  usd: Schema.Number,
  count: Schema.NumberFromString
}) {}

export interface DatabaseTotals {
  readonly holds: ReadonlyArray<OpenTotal>
  readonly videos: ReadonlyArray<OpenTotal>
  /** Deliveries that have failed and will be retried. */
  readonly webhooks: ReadonlyArray<OpenTotal>
  /** For each of several amounts, the number of organizations that have no more available. Excludes suspended ones. */
  readonly organizations: ReadonlyArray<LowOrganizations>
}

const maxAgeMillis = 15_000
const statementMillis = 900
const maxWait = "1 second"

const ageOf = (column: string) => `(extract(epoch FROM now() - min(${column})) * 1000)::double precision`
const ageColumn = (column: string) => `${ageOf(column)} AS oldest_ms`

/** Reads totals of the whole database, for metrics that only one process reports. */
export class DatabaseTotalsReader extends Context.Tag("gateway/DatabaseTotalsReader")<
  DatabaseTotalsReader,
  {
    /** The totals are at most 15 seconds old. None while the database is unreachable or slow. */
    readonly read: Effect.Effect<Option.Option<DatabaseTotals>>
  }
>() {
  static readonly layer = Layer.scoped(
    DatabaseTotalsReader,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Effect.scope
      const limit = sql`SELECT set_config('statement_timeout', ${String(statementMillis)}, true)`
      const withTimeLimit = <A, E, R>(query: Effect.Effect<A, E, R>) =>
        sql.withTransaction(Effect.zipRight(limit, query)).pipe(Effect.uninterruptible)

      const holds = rowsOf(OpenTotal)(sql`
        SELECT CASE WHEN is_job THEN 'job' ELSE 'process' END AS label, count(*) AS count,
          ${sql.literal(ageColumn("created_at"))}
        FROM all_holds WHERE state = 'open' GROUP BY 1`)
      const videos = rowsOf(OpenTotal)(sql`
        SELECT status AS label, count(*) AS count, ${sql.literal(ageColumn("created_at"))}
        FROM videos WHERE status IN ('queued', 'in_progress') GROUP BY 1`)
      const webhooks = rowsOf(OpenTotal)(sql`
        SELECT '' AS label, count(*) AS count, coalesce(${sql.literal(ageOf("created_at"))}, 0) AS oldest_ms
        FROM webhook_deliveries WHERE next_at IS NOT NULL AND tries > 0`)
      const organizations = rowsOf(LowOrganizations)(sql`
        SELECT low.* FROM (
          SELECT count(*) FILTER (WHERE balance - held <= 0) AS none,
            count(*) FILTER (WHERE balance - held <= 1000000000) AS one,
            count(*) FILTER (WHERE balance - held <= 10000000000) AS ten
          FROM organizations WHERE suspended_at IS NULL
        ) AS counts, LATERAL (VALUES (0, none), (1, one), (10, ten)) AS low (usd, count)`)

      /** Returns no rows if the query takes too long, which may happen for tables that grow without limit. */
      const orEmpty = <A>(query: Effect.Effect<ReadonlyArray<A>>): Effect.Effect<ReadonlyArray<A>> =>
        Effect.catchAllCause(withTimeLimit(query), () => Effect.succeed([]))

      const query = Effect.all({
        holds: withTimeLimit(holds),
        videos: withTimeLimit(videos),
        webhooks: orEmpty(webhooks),
        organizations: orEmpty(organizations)
      }).pipe(
        Effect.catchAllCause((cause) =>
          Effect.zipRight(Effect.logDebug("Totals failed", cause), Effect.fail("unreachable"))
        ),
        Effect.option
      )
      let running: Fiber.Fiber<Option.Option<DatabaseTotals>> | undefined
      let startedAt = 0

      const read = Effect.gen(function* () {
        const now = yield* monotonicMillis
        if (running === undefined || now - startedAt >= maxAgeMillis) {
          startedAt = now
          running = yield* Effect.forkIn(query, scope)
        }
        const totals = yield* Effect.timeoutOption(Effect.interruptible(Fiber.join(running)), maxWait)
        const { value: isUp } = Metrics.databaseUp.unsafeValue([])
        return isUp === 0 ? Option.none() : Option.flatten(totals)
      })
      return DatabaseTotalsReader.of({ read })
    })
  )
}
