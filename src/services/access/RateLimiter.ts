import { SqlClient } from "@effect/sql"
import { type Array as Arr, Context, Effect, Layer, Schema } from "effect"
import { type KeyId, rateWindowSeconds } from "../../domain/ApiKey.ts"
import { stepTimeout } from "../sql/DatabaseRetry.ts"
import { lockTimeout } from "../sql/Statement.ts"
import * as StatementBatcher from "../sql/StatementBatcher.ts"

export interface Allowance {
  readonly limit: number
  readonly remaining: number
  readonly admitted: boolean
}

/** `ordinal` counts a window's requests from 1. */
export const allowanceAt = (ordinal: number, limit: number): Allowance => ({
  limit,
  remaining: Math.max(0, limit - ordinal),
  admitted: ordinal <= limit
})

/** Ends an `INSERT INTO rate_windows AS w`: adds to the key's window, or begins the next one. */
export const addUnits = `ON CONFLICT (key_id) DO UPDATE SET
  started_at = CASE WHEN w.started_at <= now() - ${rateWindowSeconds} * interval '1 second'
    THEN now() ELSE w.started_at END,
  used = CASE WHEN w.started_at <= now() - ${rateWindowSeconds} * interval '1 second'
    THEN excluded.used ELSE w.used + excluded.used END`

/** Fixed windows of 60 s per key, exact over all instances, on the database's clock from the key's first request. */
export class RateLimiter extends Context.Tag("gateway/RateLimiter")<
  RateLimiter,
  {
    readonly take: (key: KeyId, limit: number) => Effect.Effect<Allowance>
    readonly peek: (key: KeyId, limit: number) => Effect.Effect<Allowance>
  }
>() {
  static readonly layer = Layer.scoped(
    RateLimiter,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const decode = Schema.decodeUnknown(
        Schema.Array(Schema.Struct({ keyId: Schema.String, used: Schema.NumberFromString }))
      )

      const takeAll = Effect.fnUntraced(function* (keys: Arr.NonEmptyReadonlyArray<KeyId>) {
        const wanted = new Map<string, number>()
        for (const key of keys) wanted.set(key, (wanted.get(key) ?? 0) + 1)
        const rows = yield* sql`
          INSERT INTO rate_windows AS w (key_id, started_at, used)
          SELECT key_id, now(), wanted
          FROM unnest(${[...wanted.keys()]}::text[], ${[...wanted.values()]}::bigint[]) AS t (key_id, wanted)
          WHERE ${lockTimeout(sql, "many")}
          ORDER BY key_id
          ${sql.literal(addUnits)}
          RETURNING key_id, used`
        const last = new Map((yield* decode(rows)).map(({ keyId, used }) => [keyId, used - (wanted.get(keyId) ?? 0)]))
        return keys.map((key) => {
          const ordinal = (last.get(key) ?? 0) + 1
          last.set(key, ordinal)
          return ordinal
        })
      })
      const submit = yield* StatementBatcher.make({
        maxSize: 256,
        timeout: stepTimeout,
        lanes: { laneOf: (key: KeyId) => key, permits: yield* Effect.makeSemaphore(1) },
        run: takeAll
      })

      const usedBy = Effect.fnUntraced(function* (key: KeyId) {
        const rows = yield* sql`
          SELECT key_id, used FROM rate_windows
          WHERE key_id = ${key} AND started_at > now() - ${rateWindowSeconds} * interval '1 second'`
        return (yield* decode(rows))[0]?.used ?? 0
      }, Effect.uninterruptible)

      return RateLimiter.of({
        take: (key, limit) => Effect.map(Effect.orDie(submit(key)), (ordinal) => allowanceAt(ordinal, limit)),
        peek: (key, limit) => Effect.map(Effect.orDie(usedBy(key)), (used) => allowanceAt(used, limit))
      })
    })
  )
}
