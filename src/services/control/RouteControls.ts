import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Schema } from "effect"
import { rowsOf, storable } from "../sql/Statement.ts"

export class RouteControl extends Schema.Class<RouteControl>("RouteControl")({
  route: Schema.String,
  disabledAt: Schema.NullOr(Schema.DateFromSelf),
  note: Schema.NullOr(Schema.String)
}) {}

/** Instances follow within two seconds; a route may be one that no catalog has. */
export class RouteControls extends Context.Tag("gateway/RouteControls")<
  RouteControls,
  {
    /** New requests leave the route out. Repeated, it keeps the time, and the note unless there is a new one. */
    readonly disable: (route: string, note?: string) => Effect.Effect<RouteControl>
    readonly enable: (route: string) => Effect.Effect<RouteControl>
    /** Closes the route's circuit on every instance. */
    readonly reset: (route: string) => Effect.Effect<RouteControl>
    /** Undefined for a route that was never disabled or reset. */
    readonly find: (route: string) => Effect.Effect<RouteControl | undefined>
    /** Disabled routes, those disabled last first. */
    readonly disabled: Effect.Effect<ReadonlyArray<RouteControl>>
  }
>() {
  static readonly layer = Layer.effect(
    RouteControls,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const rows = rowsOf(RouteControl)
      const columns = sql.literal("route, disabled_at, note")
      const change = (statement: Parameters<typeof rows>[0]) =>
        Effect.flatMap(rows(statement), ([row]) =>
          row === undefined ? Effect.dieMessage("no route was changed") : Effect.succeed(row)
        )

      return RouteControls.of({
        disable: Effect.fn("RouteControls.disable")((route: string, note?: string) =>
          change(sql`
            INSERT INTO route_controls (route, disabled_at, note)
            VALUES (${route}, now(), ${note === undefined ? null : storable(note)})
            ON CONFLICT (route) DO UPDATE SET disabled_at = coalesce(route_controls.disabled_at, now()),
              note = coalesce(EXCLUDED.note, route_controls.note)
            RETURNING ${columns}`)
        ),
        enable: Effect.fn("RouteControls.enable")((route: string) =>
          change(sql`
            INSERT INTO route_controls (route) VALUES (${route})
            ON CONFLICT (route) DO UPDATE SET disabled_at = NULL, note = NULL RETURNING ${columns}`)
        ),
        reset: Effect.fn("RouteControls.reset")((route: string) =>
          change(sql`
            INSERT INTO route_controls (route, resets) VALUES (${route}, 1)
            ON CONFLICT (route) DO UPDATE SET resets = route_controls.resets + 1 RETURNING ${columns}`)
        ),
        find: Effect.fn("RouteControls.find")((route: string) =>
          Effect.map(rows(sql`SELECT ${columns} FROM route_controls WHERE route = ${route}`), ([row]) => row)
        ),
        disabled: Effect.withSpan(
          rows(
            sql`SELECT ${columns} FROM route_controls WHERE disabled_at IS NOT NULL ORDER BY disabled_at DESC, route`
          ),
          "RouteControls.disabled"
        )
      })
    })
  )
}
