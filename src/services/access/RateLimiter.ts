import { SqlClient } from "@effect/sql"
import { type Array as Arr, Context, Effect, Layer, Schema } from "effect"
import { type KeyId, rateWindowSeconds } from "../../domain/ApiKey.ts"
import { stepTimeout } from "../sql/Outage.ts"
import { afterAllOf, decodeRows, lockTimeout } from "../sql/SqlStatement.ts"
import * as StatementBatcher from "../sql/StatementBatcher.ts"

export interface Allowance {
  readonly limit: number
  readonly remaining: number
  readonly isAdmitted: boolean
}

/** Returns the allowance after the window's `ordinal`th request. */
export const allowanceAt = (ordinal: number, limit: number): Allowance => ({
  limit,
  remaining: Math.max(0, limit - ordinal),
  isAdmitted: ordinal <= limit
})

/** SQL, the end of an `INSERT INTO rate_windows AS w`. Adds to the key's window, or begins a new one if it has ended. */
export const addUnits = `ON CONFLICT (key_id) DO UPDATE SET
  started_at = CASE WHEN w.started_at <= now() - ${rateWindowSeconds} * interval '1 second'
    THEN now() ELSE w.started_at END,
  used = CASE WHEN w.started_at <= now() - ${rateWindowSeconds} * interval '1 second'
    THEN excluded.used ELSE w.used + excluded.used END`

/**
 * Counts requests per key in fixed windows of 60 s, exactly over all instances. The first request after a window's end
 * begins the next one, by the database's clock.
 */
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
      const decodeWindows = decodeRows(Schema.Struct({ keyId: Schema.String, used: Schema.NumberFromString }))

      const takeAll = Effect.fnUntraced(function* (keys: Arr.NonEmptyReadonlyArray<KeyId>) {
        const unitsByKey = new Map<string, number>()
        for (const key of keys) unitsByKey.set(key, (unitsByKey.get(key) ?? 0) + 1)
        const rows = yield* decodeWindows(sql`
          INSERT INTO rate_windows AS w (key_id, started_at, used)
          SELECT key_id, now(), units
          FROM unnest(${[...unitsByKey.keys()]}::text[], ${[...unitsByKey.values()]}::bigint[]) AS t (key_id, units)
          WHERE ${lockTimeout(sql, "many")}
          ORDER BY key_id
          ${sql.literal(addUnits)}
          RETURNING key_id, used`)
        const usedByKey = new Map(rows.map(({ keyId, used }) => [keyId, used - (unitsByKey.get(keyId) ?? 0)]))
        return keys.map((key) => {
          const ordinal = (usedByKey.get(key) ?? 0) + 1
          usedByKey.set(key, ordinal)
          return ordinal
        })
      })
      const submit = yield* StatementBatcher.make({
        maxSize: 256,
        timeout: stepTimeout,
        lockGroups: { groupOf: (key: KeyId) => key, permits: yield* Effect.makeSemaphore(1) },
        run: takeAll
      })

      const usedBy = Effect.fnUntraced(function* (key: KeyId) {
        const [window] = yield* decodeWindows(sql`
          SELECT key_id, used FROM rate_windows
          WHERE key_id = ${key} AND started_at > now() - ${rateWindowSeconds} * interval '1 second'`)
        return window?.used ?? 0
      }, Effect.uninterruptible)

      return RateLimiter.of({
        take: (key, limit) => Effect.map(Effect.orDie(submit(key)), (ordinal) => allowanceAt(ordinal, limit)),
        peek: (key, limit) => Effect.map(Effect.orDie(usedBy(key)), (used) => allowanceAt(used, limit))
      })
    })
  )
}

export interface TokenAllowance {
  readonly limit: number
  readonly remaining: number
  /** Seconds until the window ends; 0 if none has begun. */
  readonly resetSeconds: number
}

/** The tokens that a hold takes from its key's `tpm` limit: the upper bound of its prompt plus its output cap. */
export interface TokenRequest {
  readonly limit: number
  readonly amount: number
}

export interface ReservedTokens extends TokenRequest {
  /** The start of the window from which they were taken, in Unix microseconds. */
  readonly window: string
}

interface ReturnedTokens {
  readonly key: KeyId
  readonly window: string
  readonly amount: number
}

/** Short, because it does no harm if unused tokens are not returned: they become free when the window ends. */
const returnTokensTimeout = "1 second"

const Window = Schema.Struct({ used: Schema.NumberFromString, left: Schema.Number })
const Returned = Schema.Struct({ keyId: Schema.String, window: Schema.String, ...Window.fields })

/**
 * The windows in which keys use the tokens of their `tpm` limit. The limit itself is enforced in SQL, by `take_limits`
 * in migrations/functions/holds.sql: the statement that places a hold also takes its tokens. This service returns
 * unused tokens and reads what remains.
 */
export class TokenWindows extends Context.Tag("gateway/TokenWindows")<
  TokenWindows,
  {
    /**
     * Adds unused tokens back to their window, unless it has ended. The result is the key's allowance in the current window,
     * undefined if nothing was unused or the database failed. Never fails.
     */
    readonly returnTokens: (
      key: KeyId,
      taken: ReservedTokens,
      unused: number
    ) => Effect.Effect<TokenAllowance | undefined>
    readonly peek: (key: KeyId, limit: number) => Effect.Effect<TokenAllowance>
  }
>() {
  static readonly layer = Layer.scoped(
    TokenWindows,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const decodeReturned = decodeRows(Returned)
      const decodeWindow = decodeRows(Window)

      const returnAll = Effect.fnUntraced(function* (items: Arr.NonEmptyReadonlyArray<ReturnedTokens>) {
        // Locks in the order of keys, as holds do, to prevent deadlocks.
        const rows = yield* decodeReturned(sql`
          WITH returned AS (
            SELECT key_id, started, sum(amount)::bigint AS amount
            FROM unnest(${items.map(({ key }) => key)}::text[], ${items.map(({ window }) => window)}::bigint[],
              ${items.map(({ amount }) => amount)}::bigint[]) AS t (key_id, started, amount)
            GROUP BY key_id, started
          ), locked AS (
            SELECT w.key_id FROM token_windows AS w
            WHERE ${lockTimeout(sql, "many")} AND w.key_id = ANY (${items.map(({ key }) => key)}::text[])
            ORDER BY w.key_id FOR NO KEY UPDATE
          )
          UPDATE token_windows AS w SET used = greatest(0, w.used - returned.amount) FROM returned
          WHERE w.key_id = returned.key_id AND window_id(w.started_at) = returned.started
            AND w.started_at > now() - ${rateWindowSeconds} * interval '1 second' AND ${sql.literal(afterAllOf("locked"))}
          RETURNING w.key_id, returned.started::text AS window, w.used, window_left(w.started_at) AS "left"`)
        const returned = new Map(rows.map((row) => [row.keyId + row.window, row]))
        return items.map(({ key, window }) => ({ window: returned.get(key + window) }))
      })
      const submit = yield* StatementBatcher.make({
        name: "give_back_tokens",
        maxSize: 256,
        timeout: returnTokensTimeout,
        lockGroups: { groupOf: ({ key }: ReturnedTokens) => key, permits: yield* Effect.makeSemaphore(1) },
        run: returnAll
      })

      const windowsOf = (key: KeyId) =>
        Effect.uninterruptible(
          decodeWindow(sql`
            SELECT used, window_left(started_at) AS "left" FROM token_windows
            WHERE key_id = ${key} AND started_at > now() - ${rateWindowSeconds} * interval '1 second'`)
        )

      const allowanceOf = (limit: number, window: typeof Window.Type | undefined): TokenAllowance => ({
        limit,
        remaining: Math.max(0, limit - (window?.used ?? 0)),
        resetSeconds: window?.left ?? 0
      })

      return TokenWindows.of({
        returnTokens: (key, { limit, window }, unused) =>
          Effect.gen(function* () {
            if (unused <= 0) return undefined
            const returned = yield* submit({ key, window, amount: unused })
            // If the tokens' window has ended, the response headers describe the current one.
            const [currentWindow] = returned.window === undefined ? yield* windowsOf(key) : [returned.window]
            return allowanceOf(limit, currentWindow)
          }).pipe(
            Effect.catchAllCause((cause) =>
              Effect.as(
                Effect.logDebug("Returning unused tokens failed; they are freed when their window ends", cause),
                undefined
              )
            )
          ),
        peek: (key, limit) => Effect.map(Effect.orDie(windowsOf(key)), ([window]) => allowanceOf(limit, window))
      })
    })
  )
}
