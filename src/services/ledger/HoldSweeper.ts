import { SqlClient } from "@effect/sql"
import { Array as Arr, Duration, Effect, Layer, Metric, Schedule } from "effect"
import { pluralize } from "../../domain/Plural.ts"
import * as Metrics from "../metrics/Metrics.ts"
import { Timings } from "../runtime/Timings.ts"
import { isLockTimeout, logFailure } from "../sql/Outage.ts"
import { Prepared } from "../sql/Statement.ts"
import { release } from "./ClosingSql.ts"

const batchSize = 500

interface Orphan {
  readonly id: string
  readonly orgId: string
}

/** Marks silent instances dead and lists the open holds of dead ones. */
export const findOrphans = (
  sql: SqlClient.SqlClient,
  deadAfter: Duration.Duration,
  limit: number,
  exceptOrgs: ReadonlyArray<string>
) => sql<Orphan>`
  WITH dead AS (
    UPDATE instances SET swept_at = now()
    WHERE swept_at IS NULL AND stopped_at IS NULL AND beat_at <= now() - ${Duration.toSeconds(deadAfter)} * interval '1 second'
    RETURNING id
  )
  SELECT hold.id, hold.org_id FROM all_holds AS hold JOIN instances ON instances.id = hold.instance_id
  WHERE hold.state = 'open' AND hold.org_id <> ALL (${exceptOrgs}::text[])
    AND (instances.swept_at IS NOT NULL OR instances.stopped_at IS NOT NULL OR instances.id IN (SELECT id FROM dead))
  LIMIT ${limit}`

export const sweep = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const prepared = yield* Prepared
  const { deadAfter } = yield* Timings
  const lockedOrgs = new Set<string>()

  const releaseAll = (holds: ReadonlyArray<Orphan>) =>
    Effect.as(prepared.run(release(holds.map(({ id }) => id))), holds.length)
  const releaseUnlocked = (holds: ReadonlyArray<Orphan>) =>
    Effect.catchIf(releaseAll(holds), isLockTimeout, () =>
      Effect.reduce(Object.entries(Arr.groupBy(holds, ({ orgId }) => orgId)), 0, (sum, [org, own]) =>
        Effect.map(
          Effect.catchIf(releaseAll(own), isLockTimeout, () => Effect.sync(() => void lockedOrgs.add(org))),
          (count) => sum + (count ?? 0)
        )
      )
    )

  let released = 0
  while (true) {
    const found = yield* findOrphans(sql, deadAfter, batchSize, [...lockedOrgs])
    if (found.length > 0) released += yield* releaseUnlocked(found)
    if (found.length < batchSize) break
  }
  if (released === 0) return 0
  yield* Metric.incrementBy(Metrics.swept, released)
  yield* Effect.logWarning(`Released ${pluralize(released, "hold")} of dead instances`)
  return released
}).pipe(Effect.uninterruptible, Effect.orDie)

/** Longer than a statement that may place or settle a hold can be on its way. */
const keptMinutes = 10

const archivedAtOnce = 5_000

/** What was released stays known, but is in nobody's way. */
export const archiveReleased = (sql: SqlClient.SqlClient) => sql`
  WITH released AS (
    DELETE FROM open_holds WHERE id = ANY (ARRAY(
      SELECT id FROM open_holds WHERE released_at < now() - ${keptMinutes} * interval '1 minute'
      LIMIT ${archivedAtOnce} FOR UPDATE SKIP LOCKED
    )) RETURNING *
  )
  INSERT INTO holds (id, org_id, key_id, amount, state, instance_id, created_at, closed_at)
  SELECT id, org_id, key_id, amount, 'released', instance_id, created_at, released_at FROM released
  ON CONFLICT (id) DO NOTHING`

const archive = Effect.flatMap(SqlClient.SqlClient, archiveReleased).pipe(Effect.uninterruptible)

/** Every few seconds, as every gateway does. */
export const layer = Layer.scopedDiscard(
  Effect.flatMap(Timings, ({ sweepEvery }) =>
    sweep.pipe(
      Effect.catchAllCause((cause) => logFailure("Sweep failed", cause)),
      Effect.zipRight(archive),
      Effect.catchAllCause((cause) => logFailure("Released holds could not be moved", cause)),
      Effect.repeat(Schedule.spaced(sweepEvery)),
      Effect.forkScoped
    )
  )
)
