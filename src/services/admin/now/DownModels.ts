import type { SqlClient } from "@effect/sql"
import { Array as Arr, Effect, Schema } from "effect"
import type { RouteControl } from "../../control/RouteControls.ts"
import type { PublishedHealth } from "../../routing/RouteHealth.ts"
import { rowsOf } from "../../sql/Statement.ts"
import type { Attention } from "./Record.ts"

const minutes = 15
const fewest = 3
const newest = 2_000

/** Codes of errors that are not the request's; a 503 of a gateway that is busy or restarts has none. */
const failures = ["upstream_error", "no_provider_available", "timeout", "internal_error", "stream_error"]

const Failing = Schema.Struct({ model: Schema.String, failed: Schema.Number })

/** Circuits stay closed where the failures in a row are few, or of one customer. */
const readFailing = (sql: SqlClient.SqlClient, now: Date) =>
  Effect.map(
    rowsOf(Failing)(sql`
      SELECT model, count(*)::int AS failed FROM (
        SELECT model, status, coalesce(code = ANY (${failures}::text[]), false) AS has_failed FROM request_log
        WHERE at > ${now}::timestamptz - ${minutes} * interval '1 minute' AND at <= ${now}::timestamptz
        ORDER BY at DESC, id DESC LIMIT ${newest}
      ) AS newest
      WHERE model IS NOT NULL AND (status < 400 OR has_failed)
      GROUP BY model HAVING count(*) >= ${fewest} AND bool_and(has_failed)`),
    (rows) => new Map(rows.map(({ failed, model }) => [model, failed]))
  )

interface Routes {
  readonly health: ReadonlyArray<PublishedHealth>
  readonly disabled: ReadonlyArray<RouteControl>
}

/** Each instance publishes every route of the models that it was asked for. */
const findRouteless = ({ disabled, health }: Routes): ReadonlyMap<string, ReadonlyArray<PublishedHealth>> => {
  const off = new Set(disabled.map(({ id }) => id))
  const works = ({ circuit, route }: PublishedHealth) => circuit === "closed" && !off.has(route)
  const ofInstances = Object.values(Arr.groupBy(health, ({ instanceId, model }) => `${instanceId} ${model}`))
  return new Map(ofInstances.filter((routes) => !routes.some(works)).map((routes) => [routes[0].model, routes]))
}

const stateOf = ({ circuit, lastError, route }: PublishedHealth): string =>
  circuit === "closed" ? `${route} is disabled` : `${route}: ${lastError ?? circuit}`

/** Models that no customer gets an answer of. */
export const downModels = (sql: SqlClient.SqlClient, routes: Routes, now: Date) =>
  Effect.map(readFailing(sql, now), (failing) => {
    const routeless = findRouteless(routes)
    return [...new Set([...routeless.keys(), ...failing.keys()])].toSorted().map((model): Attention => {
      const found = routeless.get(model)
      const failed = failing.get(model)
      const parts = [
        ...(found === undefined ? [] : [`No route works (${found.map(stateOf).join("; ")}).`]),
        ...(failed === undefined ? [] : [`All of its last ${failed} requests failed.`])
      ]
      return { kind: "model_down", title: `${model} is down`, detail: parts.join(" "), href: "#/routes" }
    })
  })
