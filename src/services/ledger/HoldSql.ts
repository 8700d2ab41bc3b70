import type { SqlClient } from "@effect/sql"
import type { Duration } from "effect"
import { CapPeriod } from "../../domain/ApiKey.ts"
import { balanceShares, type Hold } from "../../domain/Hold.ts"
import type { NanoUsd } from "../../domain/Money.ts"
import { capSpent, jobHoldsOfKey, spentOfKey } from "../access/Cap.ts"
import { addUnits } from "../access/RateLimiter.ts"
import { type TokenRequest, windowId, windowLeft } from "../access/TokenLimiter.ts"
import { isAlive } from "../instance/InstanceState.ts"
import { productionTimings } from "../runtime/Timings.ts"
import {
  afterAllOf,
  amountIn,
  lockTimeout,
  lockTimeoutSql,
  type Query,
  type Row,
  unexpectedRow
} from "../sql/Statement.ts"

/** Always true; the commit does not wait for the disk: a crash may lose the hold, which is no money. */
const commitsBeforeDisk = `(SELECT set_config('synchronous_commit', 'off', true)) IS NOT NULL`

/** Limits of a hold's key and organization, and what it takes of them. */
export interface HoldLimits {
  /** Holds of the key at once. */
  readonly concurrency?: number | undefined
  readonly tokens?: TokenRequest | undefined
  readonly isOrgCapped?: boolean | undefined
}

/** Whether a hold has limits. */
export const isLimited = ({ concurrency, isOrgCapped = false, tokens }: HoldLimits): boolean =>
  isOrgCapped || concurrency !== undefined || tokens !== undefined

/** Of a key with a limit of tokens, after the statement. */
export interface TokenWindow {
  /** The window from which the hold took its tokens. */
  readonly window: string | undefined
  readonly used: number
  readonly resetSeconds: number
}

export interface RatedHold extends Hold, HoldLimits {
  readonly rateLimit: number | undefined
  /** Beside other open holds it takes no more than its share of the balance. */
  readonly hasFittedHold?: boolean | undefined
}

/** `instance_dead`: this instance counts as dead. */
const verdicts = ["held", "insufficient", "capped", "instance_dead", "limited", "tokens", "concurrency"] as const

export interface HoldResult {
  readonly verdict: (typeof verdicts)[number]
  readonly period: CapPeriod | null
  readonly cappedBy: "key" | "organization"
  readonly remaining: NanoUsd
  readonly ordinal: number | undefined
  readonly tokens: TokenWindow | undefined
  /** Refused by a limit of its key that has room for it after all: holds before it were not placed. */
  readonly isWithinLimits: boolean
}

const readTokenWindow = ({ token_window, tokens_left_for, tokens_used }: Row): TokenWindow | undefined =>
  typeof tokens_used === "string"
    ? {
        window: typeof token_window === "string" ? token_window : undefined,
        used: Number(tokens_used),
        resetSeconds: Number(tokens_left_for)
      }
    : undefined

const limitValues = (batch: ReadonlyArray<RatedHold>) => [
  batch.map(({ tokens }) => tokens?.amount ?? 0),
  batch.map(({ tokens }) => tokens?.limit ?? null),
  batch.map(({ concurrency }) => concurrency ?? null),
  // The cap of its organization is judged too.
  batch.map(isLimited)
]

const readHoldResult = (row: Row): HoldResult => {
  const { capped_by, ordinal, remaining } = row
  const verdict = verdicts.find((one) => one === row["verdict"])
  const period = row["period"] === null ? null : CapPeriod.literals.find((one) => one === row["period"])
  if (verdict === undefined || period === undefined) throw unexpectedRow(row)
  return {
    verdict,
    period,
    cappedBy: capped_by === "organization" ? capped_by : "key",
    remaining: amountIn(remaining, row),
    ordinal: typeof ordinal === "string" ? Number(ordinal) : undefined,
    tokens: readTokenWindow(row),
    isWithinLimits: row["may_fit"] === true
  }
}

const mayPlace = (deadAfter: Duration.Duration) => `$6::uuid IS NULL OR EXISTS (
  SELECT FROM instances WHERE id = $6 AND ${isAlive("instances", deadAfter)}
)`

/** Keys that have reached their cap. */
const cappedOf = (condition: string) => `
  SELECT id, cap_period FROM api_keys
  WHERE ${condition} AND cap IS NOT NULL AND cap <= ${spentOfKey()} + ${jobHoldsOfKey}`

/** `up_to`: what the batch's holds of the organization come to, from the first to this one. */
const fitsBalance = `up_to - amount < available AND up_to <= available
  AND (NOT is_fitted OR amount <= share OR (held = 0 AND up_to = amount))`

const payerColumns = `id, balance - held AS available, held, balance / ${balanceShares} AS share`

const keysWith = (limit: string) =>
  `ARRAY(SELECT DISTINCT key_id FROM input WHERE ${limit} IS NOT NULL AND ${afterAllOf("payers")})`

const tokensAfter = "asked.tokens_used + coalesce(taken_of_keys.tokens, 0)"
const windowAfter = "coalesce(asked.window_start, CASE WHEN taken_of_keys.tokens > 0 THEN now() END)"

/**
 * For any holds of an instance, or of jobs. What a key has used is read after the locks of `payers`; `judged` says what a hold
 * lacks, were all holds before it in the batch placed that lack nothing.
 */
const placeText = (forInstance: boolean, deadAfter: Duration.Duration) => {
  const table = forInstance ? "open_holds" : "holds"
  const timeLimit = lockTimeoutSql(forInstance ? "many" : "one")
  return `
  WITH input AS (
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $7::boolean[],
        $8::bigint[], $9::bigint[], $10::bigint[], $11::boolean[])
      WITH ORDINALITY AS t (id, org_id, key_id, amount, rate_limit, is_fitted, tokens, token_limit, place_limit, is_limited, ord)
  ), known AS (
    SELECT id, created_at FROM ${table} WHERE id = ANY ($1::uuid[])
  ), taken_units AS (
    INSERT INTO rate_windows AS w (key_id, started_at, used)
    SELECT key_id, now(), count(*) FROM input
    WHERE ${timeLimit} AND rate_limit IS NOT NULL AND id NOT IN (SELECT id FROM known)
    GROUP BY key_id ORDER BY key_id
    ${addUnits}
    RETURNING key_id, used
  ), numbered AS (
    SELECT input.*, known.id IS NOT NULL AS known, known.created_at AS placed_at,
      CASE WHEN rate_limit IS NOT NULL AND known.id IS NOT NULL
        THEN (SELECT coalesce(max(used), 1) FROM rate_windows WHERE rate_windows.key_id = input.key_id)
      WHEN rate_limit IS NOT NULL THEN taken_units.used
        - count(*) FILTER (WHERE rate_limit IS NOT NULL AND known.id IS NULL) OVER (PARTITION BY key_id)
        + count(*) FILTER (WHERE rate_limit IS NOT NULL AND known.id IS NULL) OVER (PARTITION BY key_id ORDER BY ord)
      END AS ordinal
    FROM input LEFT JOIN known ON known.id = input.id LEFT JOIN taken_units USING (key_id)
  ), payers AS (
    SELECT ${payerColumns}, cap, cap_period, ${capSpent} AS cap_spent FROM organizations
    WHERE ${timeLimit} ${forInstance ? `AND ${commitsBeforeDisk}` : ""} AND id IN (SELECT org_id FROM input)
      AND ${afterAllOf("taken_units")}
    ORDER BY id FOR NO KEY UPDATE
  ), alive AS (
    SELECT ${mayPlace(deadAfter)} AS yes
  ), capped_keys AS (
    ${cappedOf("id IN (SELECT key_id FROM input)")}
  ), capped AS (
    SELECT id, cap_period, 'key' AS capped_by FROM capped_keys
    UNION ALL
    SELECT DISTINCT input.key_id, payers.cap_period, 'organization' FROM input JOIN payers ON payers.id = input.org_id
    WHERE input.is_limited AND payers.cap IS NOT NULL AND input.key_id NOT IN (SELECT id FROM capped_keys)
      AND payers.cap <= payers.cap_spent + job_holds_of(payers.id)
  ), places AS MATERIALIZED (
    SELECT * FROM places_of(${keysWith("place_limit")})
  ), windows AS MATERIALIZED (
    SELECT * FROM token_windows_of(${keysWith("token_limit")})
  ), candidates AS (
    SELECT numbered.*, coalesce(places.places, 0) AS places_used, coalesce(windows.used, 0) AS tokens_used,
      windows.started_at AS window_start, capped.cap_period, capped.capped_by,
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
  ), asked AS (
    SELECT judged.*, payers.available, payers.held, payers.share,
      coalesce(sum(amount) FILTER (WHERE is_candidate AND NOT lacks_tokens AND NOT lacks_place)
        OVER (PARTITION BY org_id ORDER BY ord), 0) AS up_to
    FROM judged JOIN payers ON payers.id = judged.org_id
  ), admitted AS (
    SELECT * FROM asked
    WHERE is_candidate AND NOT lacks_tokens AND NOT lacks_place AND (SELECT yes FROM alive) AND ${fitsBalance}
  ), taken AS (
    SELECT org_id, sum(amount)::bigint AS amount FROM admitted GROUP BY org_id
  ), reserved AS (
    UPDATE organizations SET held = organizations.held + taken.amount FROM taken WHERE organizations.id = taken.org_id
  ), placed AS (
    INSERT INTO ${table} (id, org_id, key_id, amount, instance_id)
    SELECT id, org_id, key_id, amount, $6 FROM admitted
  ), taken_tokens AS (
    INSERT INTO token_windows AS w (key_id, started_at, used)
    SELECT key_id, now(), sum(tokens) FROM admitted WHERE token_limit IS NOT NULL GROUP BY key_id ORDER BY key_id
    ${addUnits}
  ), taken_of_keys AS (
    SELECT key_id, count(*) AS places, sum(tokens) AS tokens FROM admitted GROUP BY key_id
  )
  SELECT CASE
      WHEN asked.known OR admitted.id IS NOT NULL THEN 'held'
      WHEN asked.ordinal > asked.rate_limit THEN 'limited'
      WHEN asked.cap_period IS NOT NULL THEN 'capped'
      WHEN asked.lacks_tokens THEN 'tokens'
      WHEN asked.lacks_place THEN 'concurrency'
      WHEN NOT (SELECT yes FROM alive) THEN 'instance_dead'
      ELSE 'insufficient'
    END AS verdict,
    asked.cap_period AS period,
    asked.capped_by,
    asked.ordinal::text AS ordinal,
    (asked.available - coalesce(taken.amount, 0))::text AS remaining,
    CASE WHEN asked.lacks_tokens THEN ${tokensAfter} + asked.tokens <= asked.token_limit OR ${tokensAfter} = 0
      WHEN asked.lacks_place THEN asked.places_used + coalesce(taken_of_keys.places, 0) < asked.place_limit
    END AS may_fit,
    CASE WHEN asked.token_limit IS NOT NULL THEN (${tokensAfter})::text END AS tokens_used,
    CASE WHEN asked.placed_at IS NULL OR ${windowAfter} <= asked.placed_at THEN ${windowId(windowAfter)}::text END AS token_window,
    ${windowLeft(windowAfter)} AS tokens_left_for
  FROM asked LEFT JOIN admitted ON admitted.id = asked.id LEFT JOIN taken ON taken.org_id = asked.org_id
  LEFT JOIN taken_of_keys ON taken_of_keys.key_id = asked.key_id
  ORDER BY asked.ord`
}

/**
 * As `placeText` for an instance, for holds without limits that no statement can have placed before: nearly all. In batches of
 * 1, 8 and 32 it takes PostgreSQL 264, 56 and 27 us of CPU a hold, `placeText` 542, 93 and 38.
 */
const placeNewText = (deadAfter: Duration.Duration) => `
  WITH input AS (
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $7::boolean[])
      WITH ORDINALITY AS t (id, org_id, key_id, amount, rate_limit, is_fitted, ord)
  ), taken_units AS (
    INSERT INTO rate_windows AS w (key_id, started_at, used)
    SELECT key_id, now(), count(*) FROM input WHERE ${lockTimeoutSql("many")} AND rate_limit IS NOT NULL
    GROUP BY key_id ORDER BY key_id
    ${addUnits}
    RETURNING key_id, used
  ), payers AS (
    SELECT ${payerColumns} FROM organizations
    WHERE ${lockTimeoutSql("many")} AND ${commitsBeforeDisk} AND id = ANY ($2::text[]) AND ${afterAllOf("taken_units")}
    ORDER BY id FOR NO KEY UPDATE
  ), capped AS (
    ${cappedOf("id = ANY ($3::text[])")}
  ), numbered AS (
    SELECT input.*, payers.available, payers.held, payers.share, capped.cap_period, alive.yes AS alive,
      CASE WHEN rate_limit IS NOT NULL THEN taken_units.used
        - count(*) FILTER (WHERE rate_limit IS NOT NULL) OVER (PARTITION BY input.key_id)
        + count(*) FILTER (WHERE rate_limit IS NOT NULL) OVER (PARTITION BY input.key_id ORDER BY ord)
      END AS ordinal
    FROM input JOIN payers ON payers.id = input.org_id
    LEFT JOIN taken_units USING (key_id) LEFT JOIN capped ON capped.id = input.key_id
    CROSS JOIN (SELECT ${mayPlace(deadAfter)} AS yes) AS alive
  ), asked AS (
    SELECT *, coalesce(ordinal > rate_limit, false) AS limited,
      coalesce(sum(amount) FILTER (WHERE cap_period IS NULL AND coalesce(ordinal <= rate_limit, true))
        OVER (PARTITION BY org_id ORDER BY ord), 0)::bigint AS up_to
    FROM numbered
  ), judged AS (
    SELECT *, NOT limited AND cap_period IS NULL AND alive AND ${fitsBalance} AS fits FROM asked
  ), reserved AS (
    UPDATE organizations SET held = organizations.held + taken.amount
    FROM (SELECT org_id, sum(amount)::bigint AS amount FROM judged WHERE fits GROUP BY org_id) AS taken
    WHERE organizations.id = taken.org_id
  ), placed AS (
    INSERT INTO open_holds (id, org_id, key_id, amount, instance_id)
    SELECT id, org_id, key_id, amount, $6 FROM judged WHERE fits
  )
  SELECT CASE
      WHEN fits THEN 'held'
      WHEN limited THEN 'limited'
      WHEN cap_period IS NOT NULL THEN 'capped'
      WHEN NOT alive THEN 'instance_dead'
      ELSE 'insufficient'
    END AS verdict,
    cap_period AS period,
    ordinal::text AS ordinal,
    (available - coalesce(sum(amount) FILTER (WHERE fits) OVER (PARTITION BY org_id), 0))::bigint::text AS remaining
  FROM judged ORDER BY ord`

/**
 * Returns the statement that places holds, except for an instance without a heartbeat for `deadAfter`. It locks
 * windows, then organizations in order of id, so that batches cannot deadlock; a repeated hold counts once.
 */
export const makePlace = (deadAfter: Duration.Duration) => {
  const texts = {
    new: placeNewText(deadAfter),
    instance: placeText(true, deadAfter),
    jobs: placeText(false, deadAfter)
  }
  return (instance: string | null, batch: ReadonlyArray<RatedHold>, areNew = false): Query<HoldResult> => {
    const isPlain = areNew && instance !== null && !batch.some(isLimited)
    return {
      text: isPlain ? texts.new : instance === null ? texts.jobs : texts.instance,
      values: [
        batch.map(({ id }) => id),
        batch.map(({ org }) => org),
        batch.map(({ key }) => key),
        batch.map(({ amount }) => amount),
        batch.map(({ rateLimit }) => rateLimit ?? null),
        instance,
        batch.map(({ hasFittedHold = false }) => hasFittedHold),
        ...(isPlain ? [] : limitValues(batch))
      ],
      read: readHoldResult
    }
  }
}

/** `makePlace` with the time of production. Whoever places only the holds of jobs needs no other. */
export const place = makePlace(productionTimings.deadAfter)

/** Takes the id of a hold whose statement may still run, so that it is never placed; changes no placed hold. */
export const tombstone = (
  sql: SqlClient.SqlClient,
  instance: string,
  { id, isOfJob, key, org }: Omit<Hold, "amount"> & { readonly isOfJob: boolean }
) => sql`
  INSERT INTO ${sql.literal(isOfJob ? "holds (state, closed_at," : "open_holds (released_at,")} id, org_id, key_id, amount, instance_id)
  SELECT ${sql.literal(isOfJob ? "'released'," : "")} now(), ${id}::uuid, ${org}, ${key}, 0, ${instance}::uuid
  WHERE ${lockTimeout(sql, "one")} AND NOT EXISTS (SELECT FROM all_holds WHERE id = ${id}::uuid)
  ON CONFLICT (id) DO NOTHING`
