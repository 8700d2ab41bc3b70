import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Schema } from "effect"
import { beatAgeOf, InstanceState, stateOf } from "../instance/InstanceState.ts"
import { TextOrNull, TimeOrNull, UnixSeconds } from "../resources/Record.ts"
import { Timings } from "../runtime/Timings.ts"
import { recordsOf, rowsOf } from "../sql/Statement.ts"

/** What an instance serves is null where it does not tell: it runs an older version, or is gone. */
export const Instance = Schema.Struct({
  id: Schema.String,
  host: TextOrNull,
  pid: Schema.NullOr(Schema.Number),
  fingerprint: TextOrNull.annotations({ description: "Of the catalog that it serves." }),
  models: Schema.NullOr(Schema.Number),
  problem: TextOrNull.annotations({ description: "Why it goes on with the catalog it had." }),
  generation: Schema.NullOr(Schema.Number).annotations({ description: "Of the last reload that it answered." }),
  read_at: TimeOrNull,
  state: InstanceState.annotations({
    description: "`silent`: its heartbeat is late; `dead`: so late that others release its holds."
  }),
  started_at: UnixSeconds,
  beat_at: UnixSeconds,
  beat_age_seconds: Schema.Number.annotations({ description: "Since its last heartbeat; one is due every 5 seconds." }),
  stopped_at: TimeOrNull
}).annotations({ identifier: "Instance" })
export type Instance = typeof Instance.Type

const Generation = Schema.Struct({ generation: Schema.Number })

const maxListed = 1000

export class Instances extends Context.Tag("gateway/Instances")<
  Instances,
  {
    /** Those that run, and those that ended within a day; newest first. */
    readonly list: Effect.Effect<ReadonlyArray<Instance>>
    /** Makes every instance read its catalog again. Returns the generation that it answers, within two seconds. */
    readonly requestReload: Effect.Effect<number>
  }
>() {
  static readonly layer = Layer.effect(
    Instances,
    Effect.map(Effect.all([SqlClient.SqlClient, Timings]), ([sql, timings]) => {
      const list = recordsOf(Instance)(sql`
        SELECT i.id, i.started_at, i.beat_at, i.stopped_at, ${sql.literal(beatAgeOf("i"))} AS beat_age_seconds,
          ${sql.literal(stateOf("i", timings))} AS state,
          c.host, c.pid, c.fingerprint, c.models, c.problem, c.generation, c.read_at
        FROM instances i LEFT JOIN instance_catalogs c ON c.instance_id = i.id
        WHERE coalesce(i.stopped_at, i.beat_at) > now() - interval '1 day'
        ORDER BY i.started_at DESC, i.id LIMIT ${maxListed}`)
      const requestReload = Effect.flatMap(
        rowsOf(Generation)(sql`UPDATE catalog_generation SET generation = generation + 1 RETURNING generation`),
        ([row]) => (row === undefined ? Effect.dieMessage("no generation") : Effect.succeed(row.generation))
      )
      return Instances.of({
        list: Effect.withSpan(list, "Instances.list"),
        requestReload: Effect.withSpan(requestReload, "Instances.requestReload")
      })
    })
  )
}
