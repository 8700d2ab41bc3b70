import type { SqlClient } from "@effect/sql"
import { Duration } from "effect"
import { CapPeriod } from "../../domain/ApiKey.ts"
import { balanceShares, type Hold } from "../../domain/Hold.ts"
import { type NanoUsd, zero } from "../../domain/Money.ts"
import { addUnits, type TokenRequest } from "../access/RateLimiter.ts"
import { productionTimings } from "../runtime/Timings.ts"
import {
  afterAllOf,
  amountIn,
  lockTimeout,
  lockTimeoutOf,
  lockTimeoutSql,
  type Query,
  type Row,
  unexpectedRow
} from "../sql/SqlStatement.ts"

/** Always true. Makes the commit not wait for the disk: a database crash may lose the hold, but no money. */
const setAsynchronousCommit = `(SELECT set_config('synchronous_commit', 'off', true)) IS NOT NULL`

/** Limits of a hold's key. */
export interface HoldLimits {
  /** The maximum number of open holds of the key. */
  readonly concurrency?: number | undefined
  readonly tokens?: TokenRequest | undefined
}

/** The token window of a key after the statement. */
export interface TokenWindow {
  /** The start of the window that counts the tokens of the hold, in microseconds. */
  readonly window: string | undefined
  readonly used: number
  readonly resetSeconds: number
}

export interface RatedHold extends Hold, HoldLimits {
  readonly rateLimit: number | undefined
  /** If the organization has other open holds, a hold above its share of the balance is refused. */
  readonly canReduceHold?: boolean | undefined
  /** A database crash lost the hold. Its request was admitted before, so spending caps no longer apply to it. */
  readonly isRestored?: boolean | undefined
}

/**
 * `limited`: the key's requests a minute are used up; `tokens`: its tokens a minute; `concurrency`: its open holds.
 * `capped`: a spending cap of the key or organization is reached. `insufficient`: the balance is too low.
 * `instance_dead`: the last heartbeat of the placing instance is too old.
 */
const verdicts = ["held", "insufficient", "capped", "instance_dead", "limited", "tokens", "concurrency"] as const

export interface HoldResult {
  readonly verdict: (typeof verdicts)[number]
  readonly period: CapPeriod | null
  readonly cappedBy: "key" | "organization"
  /** The organization's available credit after the batch, for a refused hold. */
  readonly remaining: NanoUsd
  /** Numbers the request in the current rate window, from 1. */
  readonly ordinal: number | undefined
  readonly tokens: TokenWindow | undefined
  /** A limit of the key refused the hold, but has room again, because earlier holds of the batch were not placed. */
  readonly mayFit: boolean
}

const readTokenWindow = ({ token_window, tokens_left_for, tokens_used }: Row): TokenWindow | undefined =>
  typeof tokens_used === "string"
    ? {
        window: typeof token_window === "string" ? token_window : undefined,
        used: Number(tokens_used),
        resetSeconds: Number(tokens_left_for)
      }
    : undefined

const readHoldResult = (row: Row): HoldResult => {
  const { is_capped_by_organization, ordinal, remaining } = row
  const verdict = verdicts.find((one) => one === row["verdict"])
  const period = row["period"] === null ? null : CapPeriod.literals.find((one) => one === row["period"])
  if (verdict === undefined || period === undefined) throw unexpectedRow(row)
  return {
    verdict,
    period,
    cappedBy: is_capped_by_organization === true ? "organization" : "key",
    remaining: remaining === null ? zero : amountIn(remaining, row),
    ordinal: typeof ordinal === "string" ? Number(ordinal) : undefined,
    tokens: readTokenWindow(row),
    mayFit: row["may_fit"] === true
  }
}

/**
 * Returns the statement that places a batch of holds: of a running instance, or of jobs if the instance `$6` is null.
 * To avoid deadlocks, it locks rate windows first and then organizations, in order of id. A hold that is already placed
 * is not counted again. To save CPU, `take_limits` and the functions for caps run only for keys and organizations that
 * have limits or caps. They are volatile, so they see rows that were committed while the statement waited for its
 * locks. In batches of 1, 8, 32 and 256, PostgreSQL uses 733, 122, 67 and 23 us of CPU per hold.
 */
const placeText = (table: "open_holds" | "holds") => `
  WITH input AS (
    SELECT t.*, (SELECT created_at FROM ${table} WHERE ${table}.id = t.id) AS placed_at
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $7::boolean[], $8::bigint[], $9::bigint[], $10::bigint[],
      $13::boolean[])
      WITH ORDINALITY AS t (id, org_id, key_id, amount, rate_limit, can_reduce, tokens, token_limit, place_limit, is_restored, ord)
  ), units AS (
    INSERT INTO rate_windows AS w (key_id, started_at, used)
    SELECT key_id, now(), count(*) FILTER (WHERE placed_at IS NULL) FROM input
    WHERE ${lockTimeoutSql("$11")} AND rate_limit IS NOT NULL
    GROUP BY key_id ORDER BY key_id
    ${addUnits}
    RETURNING key_id, used
  ), payers AS (
    SELECT id, cap, held, balance - held AS available, balance / ${balanceShares} AS share FROM organizations
    WHERE ${lockTimeoutSql("$11")} AND ($6::uuid IS NULL OR ${setAsynchronousCommit}) AND id = ANY ($2::text[])
      AND ${afterAllOf("units")}
    ORDER BY id FOR NO KEY UPDATE
  ), alive AS (
    SELECT $6::uuid IS NULL OR EXISTS (
      SELECT FROM instances WHERE id = $6 AND is_alive(instances, $12::float8 * interval '1 second')
    ) AS may_place
  ), capped AS (
    SELECT id, reached_cap_of_key(id) AS period FROM api_keys
    WHERE id = ANY ($3::text[]) AND cap IS NOT NULL AND ${afterAllOf("payers")}
    UNION ALL
    SELECT id, reached_cap_of_organization(id) FROM payers WHERE cap IS NOT NULL
  ), ranked AS (
    SELECT input.*, available, held, share,
      CASE WHEN rate_limit IS NOT NULL THEN greatest(1, units.used
        - count(*) FILTER (WHERE rate_limit IS NOT NULL AND placed_at IS NULL)
          OVER (PARTITION BY input.key_id ORDER BY ord DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) END AS ordinal,
      (SELECT period FROM capped WHERE capped.id = input.key_id) AS key_cap,
      (SELECT period FROM capped WHERE capped.id = input.org_id) AS org_cap
    FROM input JOIN payers ON payers.id = input.org_id LEFT JOIN units ON units.key_id = input.key_id
  ), candidates AS (
    SELECT *, placed_at IS NULL AND coalesce(ordinal <= rate_limit, true)
      AND (is_restored IS TRUE OR (key_cap IS NULL AND org_cap IS NULL)) AS is_candidate
    FROM ranked
  ), summed AS (
    SELECT *, sum(amount) FILTER (WHERE is_candidate) OVER (PARTITION BY org_id ORDER BY ord ROWS UNBOUNDED PRECEDING) AS up_to
    FROM candidates
  ), judged AS (
    SELECT *, is_candidate AND (SELECT may_place FROM alive) AND up_to - amount < available AND up_to <= available
      AND (NOT can_reduce OR amount <= share OR (held = 0 AND up_to = amount)) AS is_affordable
    FROM summed
  ), limits AS (
    SELECT taken.* FROM (
      SELECT array_agg(ord) AS ords, array_agg(key_id) AS key_ids, array_agg(placed_at) AS placed_ats,
        array_agg(is_candidate) AS are_candidates, array_agg(is_affordable) AS are_affordable,
        array_agg(tokens) AS tokens, array_agg(token_limit) AS token_limits, array_agg(place_limit) AS place_limits
      FROM judged WHERE token_limit IS NOT NULL OR place_limit IS NOT NULL HAVING count(*) > 0
    ) AS limited,
    take_limits(ords, key_ids, placed_ats, are_candidates, are_affordable, tokens, token_limits, place_limits) AS taken
  ), decided AS (
    SELECT judged.*, is_affordable AND lacks IS NULL AS fits, lacks, may_fit, tokens_used, token_window, tokens_left_for
    FROM judged LEFT JOIN limits USING (ord)
  ), reserved AS (
    UPDATE organizations SET held = organizations.held + taken.amount
    FROM (SELECT org_id, sum(amount)::bigint AS amount FROM decided WHERE fits GROUP BY org_id) AS taken
    WHERE organizations.id = taken.org_id
    RETURNING organizations.id, balance - organizations.held AS remaining
  ), placed AS (
    INSERT INTO ${table} (id, org_id, key_id, amount, instance_id)
    SELECT id, org_id, key_id, amount, $6 FROM decided WHERE fits
  )
  SELECT CASE
      WHEN placed_at IS NOT NULL OR fits THEN 'held'
      WHEN ordinal > rate_limit THEN 'limited'
      WHEN NOT is_candidate THEN 'capped'
      WHEN lacks IS NOT NULL THEN lacks
      WHEN NOT (SELECT may_place FROM alive) THEN 'instance_dead'
      ELSE 'insufficient'
    END AS verdict,
    coalesce(key_cap, org_cap) AS period, key_cap IS NULL AS is_capped_by_organization, ordinal,
    CASE WHEN NOT fits THEN coalesce((SELECT remaining FROM reserved WHERE reserved.id = org_id), available) END AS remaining,
    may_fit, tokens_used, token_window, tokens_left_for
  FROM decided ORDER BY ord`

const placeTexts = { ofInstance: placeText("open_holds"), ofJobs: placeText("holds") }

const nullIfAllNull = <A>(values: ReadonlyArray<A | null>) => (values.every((value) => value === null) ? null : values)

/**
 * Returns the statement that places holds. The statement refuses them if the last heartbeat of the instance is older
 * than `deadAfter`.
 */
export const place = (
  instance: string | null,
  batch: ReadonlyArray<RatedHold>,
  deadAfter: Duration.Duration = productionTimings.deadAfter
): Query<HoldResult> => ({
  text: instance === null ? placeTexts.ofJobs : placeTexts.ofInstance,
  values: [
    batch.map(({ id }) => id),
    batch.map(({ org }) => org),
    batch.map(({ key }) => key),
    batch.map(({ amount }) => amount),
    batch.map(({ rateLimit }) => rateLimit ?? null),
    instance,
    batch.map(({ canReduceHold = false }) => canReduceHold),
    nullIfAllNull(batch.map(({ tokens }) => tokens?.amount ?? null)),
    nullIfAllNull(batch.map(({ tokens }) => tokens?.limit ?? null)),
    nullIfAllNull(batch.map(({ concurrency }) => concurrency ?? null)),
    lockTimeoutOf(instance === null ? "one" : "many"),
    Duration.toSeconds(deadAfter),
    nullIfAllNull(batch.map(({ isRestored }) => (isRestored === true ? true : null)))
  ],
  read: readHoldResult
})

/**
 * Inserts a released hold with this id, so a statement that still runs cannot place the hold. A placed hold stays as it
 * is.
 */
export const tombstone = (
  sql: SqlClient.SqlClient,
  instance: string,
  { id, isOfJob, key, org }: Omit<Hold, "amount"> & { readonly isOfJob: boolean }
) => sql`
  INSERT INTO ${sql.literal(isOfJob ? "holds (state, closed_at," : "open_holds (released_at,")} id, org_id, key_id, amount, instance_id)
  SELECT ${sql.literal(isOfJob ? "'released'," : "")} now(), ${id}::uuid, ${org}, ${key}, 0, ${instance}::uuid
  WHERE ${lockTimeout(sql, "one")} AND NOT EXISTS (SELECT FROM all_holds WHERE id = ${id}::uuid)
  ON CONFLICT (id) DO NOTHING`
