import { SqlClient } from "@effect/sql"
import { Array as Arr, Duration, Effect, Layer, Metric, Schedule } from "effect"
import { pluralize } from "../../domain/Wording.ts"
import * as Metrics from "../metrics/Metrics.ts"
import { Timings } from "../runtime/Timings.ts"
import { isLockTimeout, logFailure } from "../sql/Outage.ts"
import { Prepared } from "../sql/SqlStatement.ts"
import { release } from "./ClosingSql.ts"

const batchSize = 500

interface Orphan {
  readonly id: string
  readonly orgId: string
}

/** Marks instances without heartbeats as dead, and returns open holds of dead and stopped instances. */
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
      Effect.reduce(Object.entries(Arr.groupBy(holds, ({ orgId }) => orgId)), 0, (sum, [org, orgHolds]) =>
        Effect.map(
          Effect.catchIf(releaseAll(orgHolds), isLockTimeout, () => Effect.sync(() => void lockedOrgs.add(org))),
          (count) => sum + (count ?? 0)
        )
      )
    )

  let releasedCount = 0
  while (true) {
    const orphans = yield* findOrphans(sql, deadAfter, batchSize, [...lockedOrgs])
    if (orphans.length > 0) releasedCount += yield* releaseUnlocked(orphans)
    if (orphans.length < batchSize) break
  }
  if (releasedCount === 0) return 0
  yield* Metric.incrementBy(Metrics.swept, releasedCount)
  yield* Effect.logWarning(`Released ${pluralize(releasedCount, "hold")} of dead instances`)
  return releasedCount
}).pipe(Effect.uninterruptible, Effect.orDie)

/** Keeps released holds in `open_holds` for longer than a statement that may place or settle them can run. */
const retentionMinutes = 10

const archiveBatchSize = 5_000

/** Moves released holds out of the small table `open_holds`. */
export const archiveReleased = (sql: SqlClient.SqlClient) => sql`
  WITH released AS (
    DELETE FROM open_holds WHERE id = ANY (ARRAY(
      SELECT id FROM open_holds WHERE released_at < now() - ${retentionMinutes} * interval '1 minute'
      LIMIT ${archiveBatchSize} FOR UPDATE SKIP LOCKED
    )) RETURNING *
  )
  INSERT INTO holds (id, org_id, key_id, amount, state, instance_id, created_at, closed_at)
  SELECT id, org_id, key_id, amount, 'released', instance_id, created_at, released_at FROM released
  ON CONFLICT (id) DO NOTHING`

const archive = Effect.flatMap(SqlClient.SqlClient, archiveReleased).pipe(Effect.uninterruptible)

/** Sweeps and archives every `sweepEvery`, on every instance. */
export const layer = Layer.scopedDiscard(
  Effect.flatMap(Timings, ({ sweepEvery }) =>
    sweep.pipe(
      Effect.catchAllCause((cause) => logFailure("Failed to release holds of dead instances", cause)),
      Effect.zipRight(archive),
      Effect.catchAllCause((cause) => logFailure("Failed to archive released holds", cause)),
      Effect.repeat(Schedule.spaced(sweepEvery)),
      Effect.forkScoped
    )
  )
)
