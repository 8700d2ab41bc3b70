import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Schema } from "effect"
import { isAlive } from "../instance/InstanceState.ts"
import { Timings } from "../runtime/Timings.ts"
import { recordsOf, rowsOf } from "../sql/Statement.ts"
import { ServedCatalog } from "./Instances.ts"

/** A running instance and its catalog; null where it runs a version that does not tell. */
export const InstanceCatalog = Schema.Struct({ instance: Schema.String, ...ServedCatalog.fields })
export type InstanceCatalog = typeof InstanceCatalog.Type

const Generation = Schema.Struct({ generation: Schema.Number })

/** Every instance reads its own file again, and answers within two seconds. */
export class CatalogReloads extends Context.Tag("gateway/CatalogReloads")<
  CatalogReloads,
  {
    /** Returns the generation that instances answer. */
    readonly request: Effect.Effect<number>
    /** Lists instances with a recent heartbeat. */
    readonly list: Effect.Effect<ReadonlyArray<InstanceCatalog>>
  }
>() {
  static readonly layer = Layer.effect(
    CatalogReloads,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { silentAfter } = yield* Timings
      const generations = rowsOf(Generation)
      const instances = recordsOf(InstanceCatalog)
      const request = Effect.flatMap(
        generations(sql`UPDATE catalog_generation SET generation = generation + 1 RETURNING generation`),
        ([row]) => (row === undefined ? Effect.dieMessage("no generation") : Effect.succeed(row.generation))
      )
      const list = instances(sql`
        SELECT i.id AS instance, c.host, c.pid, c.generation, c.fingerprint, c.models, c.problem, c.read_at
        FROM instances i LEFT JOIN instance_catalogs c ON c.instance_id = i.id
        WHERE ${sql.literal(isAlive("i", silentAfter))}
        ORDER BY i.started_at, i.id`)
      return CatalogReloads.of({
        request: Effect.withSpan(request, "CatalogReloads.request"),
        list: Effect.withSpan(list, "CatalogReloads.list")
      })
    })
  )
}
