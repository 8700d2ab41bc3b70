import { SqlClient } from "@effect/sql"
import { type Array as Arr, Context, Effect, Layer, Schema } from "effect"
import { type KeyId, rateWindowSeconds } from "../../domain/ApiKey.ts"
import { afterAllOf, lockTimeout } from "../sql/Statement.ts"
import * as StatementBatcher from "../sql/StatementBatcher.ts"

export interface TokenAllowance {
  readonly limit: number
  readonly remaining: number
  /** Until the window ends; 0 where none has begun. */
  readonly resetSeconds: number
}

/** What a hold takes of its key's limit of tokens a minute: the bound of its prompt and its cap. */
export interface TokenRequest {
  readonly limit: number
  readonly amount: number
}

export interface TakenTokens extends TokenRequest {
  /** When the window began from which they were taken, in microseconds. */
  readonly window: string
}

interface ReturnedTokens {
  readonly key: KeyId
  readonly window: string
  readonly amount: number
}

/** The beginning of a window as a number that is the same in every session. */
export const windowId = (startedAt: string) => `(extract(epoch FROM ${startedAt}) * 1000000)::bigint`

/** Whole seconds until a window ends; 0 where there is none. */
export const windowLeft = (startedAt: string) =>
  `greatest(0, least(${rateWindowSeconds}, ceil(extract(epoch FROM ${startedAt} - now()) + ${rateWindowSeconds})))::integer`

/** Nobody waits longer for tokens that the end of the window gives back anyway. */
const returnTimeout = "1 second"

const Returned = Schema.Array(
  Schema.Struct({ keyId: Schema.String, window: Schema.String, used: Schema.NumberFromString, left: Schema.Number })
)
const Window = Schema.Array(Schema.Struct({ used: Schema.NumberFromString, left: Schema.Number }))

/** Fixed windows as those of `RateLimiter`; holds take from them. */
export class TokenLimiter extends Context.Tag("gateway/TokenLimiter")<
  TokenLimiter,
  {
    /**
     * Gives back what a request took and did not use, unless its window is over. Never fails; returns what the key has left
     * in the window that runs then, where it is known.
     */
    readonly giveBack: (key: KeyId, taken: TakenTokens, unused: number) => Effect.Effect<TokenAllowance | undefined>
    readonly peek: (key: KeyId, limit: number) => Effect.Effect<TokenAllowance>
  }
>() {
  static readonly layer = Layer.scoped(
    TokenLimiter,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const decodeReturned = Schema.decodeUnknown(Returned)
      const decodeWindow = Schema.decodeUnknown(Window)
      const windowOf = sql.literal(windowId("w.started_at"))

      const giveBackAll = Effect.fnUntraced(function* (items: Arr.NonEmptyReadonlyArray<ReturnedTokens>) {
        // In the order of keys, as holds take them.
        const rows = yield* sql`
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
          WHERE w.key_id = returned.key_id AND ${windowOf} = returned.started
            AND w.started_at > now() - ${rateWindowSeconds} * interval '1 second' AND ${sql.literal(afterAllOf("locked"))}
          RETURNING w.key_id, returned.started::text AS window, w.used, ${sql.literal(windowLeft("w.started_at"))} AS "left"`
        const returned = new Map((yield* decodeReturned(rows)).map((row) => [row.keyId + row.window, row]))
        return items.map(({ key, window }) => ({ window: returned.get(key + window) }))
      })
      const submit = yield* StatementBatcher.make({
        name: "give_back_tokens",
        maxSize: 256,
        timeout: returnTimeout,
        lanes: { laneOf: ({ key }: ReturnedTokens) => key, permits: yield* Effect.makeSemaphore(1) },
        run: giveBackAll
      })

      const windowsOf = Effect.fnUntraced(function* (key: KeyId) {
        const rows = yield* sql`
          SELECT used, ${sql.literal(windowLeft("started_at"))} AS "left" FROM token_windows
          WHERE key_id = ${key} AND started_at > now() - ${rateWindowSeconds} * interval '1 second'`
        return yield* decodeWindow(rows)
      }, Effect.uninterruptible)

      const allowanceOf = (limit: number, window: (typeof Window.Type)[number] | undefined): TokenAllowance => ({
        limit,
        remaining: Math.max(0, limit - (window?.used ?? 0)),
        resetSeconds: window?.left ?? 0
      })

      return TokenLimiter.of({
        giveBack: (key, { limit, window }, unused) =>
          Effect.gen(function* () {
            if (unused <= 0) return undefined
            const returned = yield* submit({ key, window, amount: unused })
            // An answer tells of the window that runs when it is sent.
            const [running] = returned.window === undefined ? yield* windowsOf(key) : [returned.window]
            return allowanceOf(limit, running)
          }).pipe(
            Effect.catchAllCause((cause) =>
              Effect.as(Effect.logDebug("Tokens stay taken until their window ends", cause), undefined)
            )
          ),
        peek: (key, limit) => Effect.map(Effect.orDie(windowsOf(key)), ([window]) => allowanceOf(limit, window))
      })
    })
  )
}
