import type { SqlClient } from "@effect/sql"
import { Effect, Schedule } from "effect"
import type { KeyId } from "../../domain/ApiKey.ts"

const writeEvery = "10 seconds"
const seconds = 60

/** Returns what records a use; writes in the background, each key at most once a minute. */
export const make = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  let used = new Set<KeyId>()

  const write = Effect.suspend(() => {
    if (used.size === 0) return Effect.void
    const ids = [...used].toSorted()
    used = new Set()
    return sql`
      INSERT INTO key_uses (key_id, last_used_at)
      SELECT id, now() FROM api_keys WHERE id = ANY(${ids}::text[]) ORDER BY id
      ON CONFLICT (key_id) DO UPDATE SET last_used_at = EXCLUDED.last_used_at
      WHERE key_uses.last_used_at <= EXCLUDED.last_used_at - ${seconds} * interval '1 second'`.pipe(
      Effect.catchAllCause((cause) => Effect.logDebug("The last uses of keys could not be written", cause)),
      Effect.asVoid
    )
  })

  yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(Effect.interruptible(write), "1 second")))
  yield* write.pipe(Effect.uninterruptible, Effect.schedule(Schedule.spaced(writeEvery)), Effect.forkScoped)
  return (key: KeyId): void => {
    used.add(key)
  }
})
