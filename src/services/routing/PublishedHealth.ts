import { SqlClient } from "@effect/sql"
import { Context, type Duration, Effect, Layer, Schedule, Schema } from "effect"
import { isAlive } from "../instance/Instance.ts"
import { Timings } from "../runtime/Timings.ts"
import { rowsOf, toStorable } from "../sql/SqlStatement.ts"
import type { RouteReport } from "./CircuitRegistry.ts"
import { ProviderRouter } from "./ProviderRouter.ts"

/** The health of one route, as an instance published it. */
export class RouteHealth extends Schema.Class<RouteHealth>("RouteHealth")({
  instanceId: Schema.String,
  route: Schema.String,
  provider: Schema.String,
  model: Schema.String,
  circuit: Schema.Literal("closed", "open", "half_open"),
  openUntil: Schema.NullOr(Schema.DateFromSelf),
  lastError: Schema.NullOr(Schema.String),
  lastErrorAt: Schema.NullOr(Schema.DateFromSelf),
  latencyMs: Schema.NullOr(Schema.Number),
  requests: Schema.NumberFromString,
  failures: Schema.NumberFromString,
  openForOrganizations: Schema.Number,
  publishedAt: Schema.DateFromSelf
}) {}

/** The route health of all instances, for operators. Routing uses only the circuits of its own instance. */
export class PublishedHealth extends Context.Tag("gateway/PublishedHealth")<
  PublishedHealth,
  {
    /** Lists the health of routes on every running instance. Routes without requests are missing. */
    readonly list: Effect.Effect<ReadonlyArray<RouteHealth>>
  }
>() {
  static readonly layer = Layer.effect(
    PublishedHealth,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { deadAfter } = yield* Timings
      const list = rowsOf(RouteHealth)(sql`
        SELECT h.* FROM route_health h JOIN ${aliveInstances(sql, deadAfter)} i ON i.id = h.instance_id ORDER BY h.route, h.instance_id`)
      return PublishedHealth.of({ list })
    })
  )

  static readonly publisher = (instanceId: Effect.Effect<string>) =>
    Layer.scopedDiscard(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { deadAfter, publishHealthEvery } = yield* Timings
        const router = yield* ProviderRouter
        let publishedId = ""
        /** The published reports by route, as JSON text. Only changed ones are written again. */
        const published = new Map<string, string>()

        const publish = Effect.gen(function* () {
          const id = yield* instanceId
          if (id !== publishedId) published.clear()
          publishedId = id
          const routes = new Map((yield* router.health).map((report) => [report.route, report]))
          const removedRoutes = [...published.keys()].filter((route) => !routes.has(route))
          if (removedRoutes.length > 0) {
            yield* sql`DELETE FROM route_health WHERE instance_id = ${id} AND route = ANY (${removedRoutes}::text[])`
            for (const route of removedRoutes) published.delete(route)
          }
          const changedReports = [...routes.values()].filter(
            (report) => published.get(report.route) !== JSON.stringify(report)
          )
          if (changedReports.length === 0) return
          yield* upsert(sql, id, changedReports)
          for (const report of changedReports) published.set(report.route, JSON.stringify(report))
        }).pipe(Effect.catchAllCause((cause) => Effect.logDebug("Publishing route health failed", cause)))

        const remove = Effect.flatMap(instanceId, (id) => sql`DELETE FROM route_health WHERE instance_id = ${id}`)
        const removeDead = sql`DELETE FROM route_health WHERE instance_id NOT IN (SELECT id FROM ${aliveInstances(sql, deadAfter)} i)`

        yield* Effect.addFinalizer(() => Effect.ignore(remove))
        yield* Effect.ignore(Effect.uninterruptible(removeDead))
        yield* publish.pipe(
          Effect.uninterruptible,
          Effect.repeat(Schedule.spaced(publishHealthEvery)),
          Effect.forkScoped
        )
      })
    )
}

const aliveInstances = (sql: SqlClient.SqlClient, deadAfter: Duration.Duration) => sql`(
  SELECT id FROM instances
  WHERE ${sql.literal(isAlive("instances", deadAfter))}
)`

const upsert = (sql: SqlClient.SqlClient, instance: string, routes: ReadonlyArray<RouteReport>) => sql`
  INSERT INTO route_health
  SELECT ${instance}::uuid, r.route, r.provider, r.model, r.circuit, to_timestamp(r."openUntil" / 1000.0), r."lastError",
    to_timestamp(r."lastErrorAt" / 1000.0), r."latencyMs", r.requests, r.failures, now(), r."openForOrganizations"
  FROM jsonb_to_recordset(${JSON.stringify(routes.map(toStored))}::jsonb) AS r (
    route text, provider text, model text, circuit text, "openUntil" float8, "lastError" text, "lastErrorAt" float8,
    "latencyMs" float8, requests bigint, failures bigint, "openForOrganizations" int
  )
  ON CONFLICT (instance_id, route) DO UPDATE SET circuit = EXCLUDED.circuit, open_until = EXCLUDED.open_until,
    last_error = EXCLUDED.last_error, last_error_at = EXCLUDED.last_error_at, latency_ms = EXCLUDED.latency_ms,
    requests = EXCLUDED.requests, failures = EXCLUDED.failures, published_at = EXCLUDED.published_at,
    open_for_organizations = EXCLUDED.open_for_organizations`

const toStored = ({ lastError, ...report }: RouteReport) => ({
  ...report,
  lastError: lastError === undefined ? undefined : toStorable(lastError)
})
