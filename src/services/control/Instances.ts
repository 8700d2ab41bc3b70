import { SqlClient } from "@effect/sql"
import { Context, Duration, Effect, Layer, Schema } from "effect"
import { deadAfterSeconds, silentAfter } from "../runtime/Instance.ts"
import { rowsOf } from "../sql/Statement.ts"

export const ServedCatalog = {
  host: Schema.NullOr(Schema.String),
  pid: Schema.NullOr(Schema.Number),
  fingerprint: Schema.NullOr(Schema.String),
  models: Schema.NullOr(Schema.Number),
  /** Why it goes on with the catalog it had. */
  problem: Schema.NullOr(Schema.String),
  /** Of the last reload that it answered. */
  generation: Schema.NullOr(Schema.Number),
  readAt: Schema.NullOr(Schema.DateFromSelf)
}

/** What it serves is null where it does not tell: it runs an older version, or is gone. */
export class InstanceRow extends Schema.Class<InstanceRow>("InstanceRow")({
  id: Schema.String,
  ...ServedCatalog,
  /** `silent`: its heartbeat is late; `dead`: so late that others release its holds. */
  state: Schema.Literal("running", "silent", "stopped", "dead"),
  startedAt: Schema.DateFromSelf,
  beatAt: Schema.DateFromSelf,
  /** By the database's clock. */
  beatAgeSeconds: Schema.Number,
  stoppedAt: Schema.NullOr(Schema.DateFromSelf)
}) {}

const maxListed = 1000

export class Instances extends Context.Tag("gateway/Instances")<
  Instances,
  {
    /** Those that run, and those that ended within a day; newest first. */
    readonly list: Effect.Effect<ReadonlyArray<InstanceRow>>
  }
>() {
  static readonly layer = Layer.effect(
    Instances,
    Effect.map(SqlClient.SqlClient, (sql) => {
      const age = sql.literal("extract(epoch FROM now() - i.beat_at)::float8")
      const list = rowsOf(InstanceRow)(sql`
        SELECT i.id, i.started_at, i.beat_at, i.stopped_at, ${age} AS beat_age_seconds,
          CASE
            WHEN i.stopped_at IS NOT NULL THEN 'stopped'
            WHEN i.swept_at IS NOT NULL OR ${age} > ${deadAfterSeconds} THEN 'dead'
            WHEN ${age} > ${Duration.toSeconds(silentAfter)} THEN 'silent'
            ELSE 'running'
          END AS state,
          c.host, c.pid, c.fingerprint, c.models, c.problem, c.generation, c.read_at
        FROM instances i LEFT JOIN instance_catalogs c ON c.instance_id = i.id
        WHERE coalesce(i.stopped_at, i.beat_at) > now() - interval '1 day'
        ORDER BY i.started_at DESC, i.id LIMIT ${maxListed}`)
      return Instances.of({ list: Effect.withSpan(list, "Instances.list") })
    })
  )
}
