import { SqlClient } from "@effect/sql"
import { type Array as Arr, Context, Effect, Layer, Schema } from "effect"
import { type KeyId, rateWindowSeconds } from "../../domain/ApiKey.ts"
import { NoAnswer, stepTimeout } from "../ledger/DatabaseRetry.ts"
import { addsUnits } from "../ledger/HoldSql.ts"
import { isLockTimeout, isOutage } from "../ledger/Outage.ts"
import { waitsBriefly } from "../ledger/StatementParts.ts"
import * as NaturalBatch from "../runtime/NaturalBatch.ts"

export interface Allowance {
  readonly limit: number
  readonly remaining: number
  readonly admitted: boolean
}

/** A request's unit of its key's window: how many there are, and once it is taken, what is left. */
export interface RateUnit {
  readonly limit: number
  allowance: Allowance | undefined
}

/** What a place in a window, from 1, leaves of it. */
export const allowanceAt = (place: number, limit: number): Allowance => ({
  limit,
  remaining: Math.max(0, limit - place),
  admitted: place <= limit
})

/**
 * Fixed windows of 60 s, one a key, counted exactly over all instances. A window starts at the key's first request
 * after the last one ended, by the database's clock.
 */
export class RateLimiter extends Context.Tag("gateway/RateLimiter")<
  RateLimiter,
  {
    /** Takes one unit of the key's window. */
    readonly take: (key: KeyId, limit: number) => Effect.Effect<Allowance>
    /** What the key has left, without taking any. */
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
          WHERE ${waitsBriefly(sql, "many")}
          ORDER BY key_id
          ${sql.literal(addsUnits)}
          RETURNING key_id, used`
        const place = new Map((yield* decode(rows)).map(({ keyId, used }) => [keyId, used - (wanted.get(keyId) ?? 0)]))
        // Every request of the batch gets its own place in the window, in the order they came.
        return keys.map((key) => {
          const mine = (place.get(key) ?? 0) + 1
          place.set(key, mine)
          return mine
        })
      })
      const submit = yield* NaturalBatch.make({
        maxSize: 256,
        patience: { duration: stepTimeout, late: () => new NoAnswer() },
        isShared: isOutage,
        lanes: { laneOf: (key: KeyId) => key, isBlocked: isLockTimeout, permits: yield* Effect.makeSemaphore(1) },
        run: takeAll
      })

      const usedBy = Effect.fnUntraced(function* (key: KeyId) {
        const rows = yield* sql`
          SELECT key_id, used FROM rate_windows
          WHERE key_id = ${key} AND started_at > now() - ${rateWindowSeconds} * interval '1 second'`
        return (yield* decode(rows))[0]?.used ?? 0
      }, Effect.uninterruptible)

      return RateLimiter.of({
        take: (key, limit) => Effect.map(Effect.orDie(submit(key)), (place) => allowanceAt(place, limit)),
        peek: (key, limit) => Effect.map(Effect.orDie(usedBy(key)), (used) => allowanceAt(used, limit))
      })
    })
  )
}
