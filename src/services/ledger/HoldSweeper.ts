import { SqlClient } from "@effect/sql"
import { Array as Arr, Effect, Metric } from "effect"
import * as Metrics from "../telemetry/Metrics.ts"
import * as HoldSql from "./HoldSql.ts"
import { isLockTimeout } from "./Outage.ts"
import { Prepared } from "./Prepared.ts"
import * as SettleSql from "./SettleSql.ts"

const batchSize = 500

/** The returned effect marks dead instances, releases the holds they left open, and returns how many it released. */
export const makeSweep = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const prepared = yield* Prepared

  const release = (orphans: ReadonlyArray<HoldSql.Orphan>) =>
    Effect.as(prepared.run(SettleSql.close(orphans.map(({ id }) => ({ id, cost: undefined })))), orphans.length)
  /** Passes over organizations that somebody has locked, and adds them to `locked`. */
  const releaseUnlocked = (orphans: ReadonlyArray<HoldSql.Orphan>, locked: Set<string>) =>
    Effect.catchIf(release(orphans), isLockTimeout, () =>
      Effect.reduce(Object.entries(Arr.groupBy(orphans, ({ orgId }) => orgId)), 0, (sum, [org, own]) =>
        release(own).pipe(
          Effect.catchIf(isLockTimeout, () =>
            Effect.as(
              Effect.sync(() => locked.add(org)),
              0
            )
          ),
          Effect.map((count) => sum + count)
        )
      )
    )
  return Effect.gen(function* () {
    const locked = new Set<string>()
    let released = 0
    while (true) {
      const found = yield* HoldSql.orphans(sql, batchSize, [...locked])
      if (found.length > 0) released += yield* releaseUnlocked(found, locked)
      if (found.length < batchSize) break
    }
    if (released === 0) return 0
    yield* Metric.incrementBy(Metrics.swept, released)
    yield* Effect.logWarning(`Released ${released} holds of instances that are gone`)
    return released
  }).pipe(Effect.uninterruptible, Effect.orDie)
})
