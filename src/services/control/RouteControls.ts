import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Schema } from "effect"
import { TextOrNull, TimeOrNull } from "../resources/ResourceRecord.ts"
import { recordsOf, toStorable } from "../sql/SqlStatement.ts"

/** The operators' controls of a route. */
export const RouteControl = Schema.Struct({
  id: Schema.String,
  disabled: Schema.Boolean,
  disabled_at: TimeOrNull,
  note: TextOrNull
}).annotations({ identifier: "RouteControl" })
export type RouteControl = typeof RouteControl.Type

/** Operators' changes of routes. Every instance applies them within two seconds. The route need not be in a catalog. */
export class RouteControls extends Context.Tag("gateway/RouteControls")<
  RouteControls,
  {
    /**
     * Excludes the route from new requests. If it is disabled already, its time stays, and its note too unless a new one is
     * passed.
     */
    readonly disable: (route: string, note?: string) => Effect.Effect<RouteControl>
    readonly enable: (route: string) => Effect.Effect<RouteControl>
    /** Closes the route's circuit on every instance. */
    readonly reset: (route: string) => Effect.Effect<RouteControl>
    /** Undefined for a route that was never disabled or reset. */
    readonly find: (route: string) => Effect.Effect<RouteControl | undefined>
    /** Disabled routes, most recently disabled first. */
    readonly disabled: Effect.Effect<ReadonlyArray<RouteControl>>
  }
>() {
  static readonly layer = Layer.effect(
    RouteControls,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const records = recordsOf(RouteControl)
      const columns = sql.literal("route AS id, disabled_at IS NOT NULL AS disabled, disabled_at, note")
      const change = (statement: Parameters<typeof records>[0]) =>
        Effect.flatMap(records(statement), ([row]) =>
          row === undefined ? Effect.dieMessage("no route was changed") : Effect.succeed(row)
        )

      return RouteControls.of({
        disable: Effect.fn("RouteControls.disable")((route: string, note?: string) =>
          change(sql`
            INSERT INTO route_controls (route, disabled_at, note)
            VALUES (${route}, now(), ${note === undefined ? null : toStorable(note)})
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
          Effect.map(records(sql`SELECT ${columns} FROM route_controls WHERE route = ${route}`), ([row]) => row)
        ),
        disabled: Effect.withSpan(
          records(
            sql`SELECT ${columns} FROM route_controls WHERE disabled_at IS NOT NULL ORDER BY disabled_at DESC, route`
          ),
          "RouteControls.disabled"
        )
      })
    })
  )
}
