import { addUnits } from "../access/RateLimiter.ts"
import { windowId, windowLeft } from "../access/TokenLimiter.ts"
import { afterAllOf, type Row } from "../sql/Statement.ts"
import { capSpent } from "./CapSql.ts"

/** Of a hold's key; undefined is no limit. */
export interface HoldLimits {
  /** Holds at once. */
  readonly concurrency: number | undefined
  /** Tokens a minute. */
  readonly tpm: number | undefined
  /** What the hold takes of them. */
  readonly tokens: number
}

/** Of a key with a limit of tokens, after the statement. */
export interface TokenWindow {
  /** The window from which the hold took its tokens. */
  readonly window: string | undefined
  readonly used: number
  readonly resetSeconds: number
}

export const readTokenWindow = ({ token_window, tokens_left_for, tokens_used }: Row): TokenWindow | undefined =>
  typeof tokens_used === "string"
    ? {
        window: typeof token_window === "string" ? token_window : undefined,
        used: Number(tokens_used),
        resetSeconds: Number(tokens_left_for)
      }
    : undefined

export type CappedBy = "key" | "organization"

export const readCappedBy = ({ capped_by }: Row): CappedBy => (capped_by === "organization" ? "organization" : "key")

/** What this text reads of a payer's row, which is locked, so that its cap is exact. */
export const payerColumns = `, cap, cap_period, ${capSpent} AS cap_spent`

/** The columns of the input that only this text has, and their values. */
export const limitColumns = "tokens, token_limit, place_limit"
export const limitArrays = "$8::bigint[], $9::bigint[], $10::bigint[]"
export const limitValues = (holds: ReadonlyArray<{ readonly limits?: HoldLimits | undefined }>) => [
  holds.map(({ limits }) => limits?.tokens ?? 0),
  holds.map(({ limits }) => limits?.tpm ?? null),
  holds.map(({ limits }) => limits?.concurrency ?? null)
]

const keysWith = (limit: string) =>
  `ARRAY(SELECT DISTINCT key_id FROM input WHERE ${limit} IS NOT NULL AND ${afterAllOf("payers")})`

/** Keys that have reached their cap, and those of organizations that have reached theirs. */
const capped = `capped AS (
    SELECT id, cap_period, 'key' AS capped_by FROM capped_keys
    UNION ALL
    SELECT DISTINCT input.key_id, payers.cap_period, 'organization' FROM input JOIN payers ON payers.id = input.org_id
    WHERE payers.cap IS NOT NULL AND input.key_id NOT IN (SELECT id FROM capped_keys)
      AND payers.cap <= payers.cap_spent + job_holds_of(payers.id)
  )`

/**
 * Judges the holds of `numbered` by the limits of their keys in the order of refusal, into `judged`: each `lacks` nothing that
 * holds before it in the batch have left, were all of these placed. What a key has used is read after the locks of `payers`.
 */
export const judgeLimits = `${capped}, places AS MATERIALIZED (
    SELECT * FROM places_of(${keysWith("place_limit")})
  ), windows AS MATERIALIZED (
    SELECT * FROM token_windows_of(${keysWith("token_limit")})
  ), candidates AS (
    SELECT numbered.*, coalesce(places.places, 0) AS places_used, coalesce(windows.used, 0) AS tokens_used,
      windows.started_at AS window_start, capped.capped_by,
      NOT known AND capped.id IS NULL AND coalesce(ordinal <= rate_limit, true) AS is_candidate
    FROM numbered LEFT JOIN places ON places.key_id = numbered.key_id LEFT JOIN windows ON windows.key_id = numbered.key_id
    LEFT JOIN capped ON capped.id = numbered.key_id
  ), metered AS (
    SELECT *, is_candidate AND token_limit IS NOT NULL
      AND tokens_used + tokens_up_to > token_limit AND tokens_used + tokens_up_to > tokens AS lacks_tokens
    FROM (
      SELECT *, sum(tokens) FILTER (WHERE is_candidate) OVER (PARTITION BY key_id ORDER BY ord) AS tokens_up_to
      FROM candidates
    ) AS summed
  ), judged AS (
    SELECT *, is_candidate AND place_limit IS NOT NULL AND NOT lacks_tokens
      AND places_used + places_up_to > place_limit AS lacks_place
    FROM (
      SELECT *, count(*) FILTER (WHERE is_candidate AND NOT lacks_tokens)
        OVER (PARTITION BY key_id ORDER BY ord) AS places_up_to
      FROM metered
    ) AS counted
  ), `

export const isWithinLimits = " AND NOT lacks_tokens AND NOT lacks_place"

/** Takes the tokens of what was admitted. */
export const takeTokens = `, taken_tokens AS (
    INSERT INTO token_windows AS w (key_id, started_at, used)
    SELECT key_id, now(), sum(tokens) FROM admitted WHERE token_limit IS NOT NULL GROUP BY key_id ORDER BY key_id
    ${addUnits}
  ), taken_of_keys AS (
    SELECT key_id, count(*) AS places, sum(tokens) AS tokens FROM admitted GROUP BY key_id
  )`

export const limitVerdicts = `
      WHEN asked.lacks_tokens THEN 'tokens'
      WHEN asked.lacks_place THEN 'concurrency'`

const tokensAfter = "asked.tokens_used + coalesce(taken_of_keys.tokens, 0)"
const windowAfter = "coalesce(asked.window_start, CASE WHEN taken_of_keys.tokens > 0 THEN now() END)"

/** `may_fit`: what was placed has left room for a hold that was refused. */
export const limitResults = `,
    asked.capped_by,
    CASE WHEN asked.lacks_tokens THEN ${tokensAfter} + asked.tokens <= asked.token_limit OR ${tokensAfter} = 0
      WHEN asked.lacks_place THEN asked.places_used + coalesce(taken_of_keys.places, 0) < asked.place_limit
    END AS may_fit,
    CASE WHEN asked.token_limit IS NOT NULL THEN (${tokensAfter})::text END AS tokens_used,
    CASE WHEN asked.placed_at IS NULL OR ${windowAfter} <= asked.placed_at THEN ${windowId(windowAfter)}::text END AS token_window,
    ${windowLeft(windowAfter)} AS tokens_left_for`

export const joinTaken = " LEFT JOIN taken_of_keys ON taken_of_keys.key_id = asked.key_id"
