import type { SqlClient } from "@effect/sql"
import { Duration } from "effect"
import type { CapPeriod } from "../../domain/ApiKey.ts"
import { balanceShares, type Hold } from "../../domain/Hold.ts"
import type { NanoUsd } from "../../domain/Money.ts"
import { addUnits } from "../access/RateLimiter.ts"
import { productionTimings } from "../runtime/Timings.ts"
import { afterAllOf, lockTimeout, lockTimeoutSql, type Query, type Row } from "../sql/Statement.ts"
import { amountIn, isKeyOf, unexpectedRow } from "./LedgerRows.ts"
import * as LimitSql from "./LimitSql.ts"

/** Always true; the commit does not wait for the disk: a crash may lose the hold, which is no money. */
const commitsBeforeDisk = `(SELECT set_config('synchronous_commit', 'off', true)) IS NOT NULL`

export interface RatedHold extends Hold {
  readonly rateLimit: number | undefined
  /** Beside other open holds it takes no more than its share of the balance. */
  readonly isLimitedToShare?: boolean | undefined
  /** Placed by a statement of its own, together with others that have limits. */
  readonly limits?: LimitSql.HoldLimits | undefined
}

export interface HoldResult {
  /** `instance_dead`: this instance counts as dead. */
  readonly verdict: "held" | "insufficient" | "capped" | "instance_dead" | "limited" | "tokens" | "concurrency"
  readonly period: CapPeriod | null
  readonly cappedBy: LimitSql.CappedBy
  readonly remaining: NanoUsd
  readonly ordinal: number | undefined
  readonly tokens: LimitSql.TokenWindow | undefined
  /** Refused by a limit of its key that has room for it after all: holds before it were not placed. */
  readonly isWithinLimits: boolean
}

const verdicts = {
  held: true,
  insufficient: true,
  capped: true,
  instance_dead: true,
  limited: true,
  tokens: true,
  concurrency: true
} as const
const periods = { day: true, week: true, month: true, total: true } as const

const readHoldResult = (row: Row): HoldResult => {
  const { ordinal, period, remaining, verdict } = row
  if (!isKeyOf(verdicts, verdict) || !(period === null || isKeyOf(periods, period))) throw unexpectedRow(row)
  return {
    verdict,
    period,
    cappedBy: LimitSql.readCappedBy(row),
    remaining: amountIn(remaining, row),
    ordinal: typeof ordinal === "string" ? Number(ordinal) : undefined,
    tokens: LimitSql.readTokenWindow(row),
    isWithinLimits: row["may_fit"] === true
  }
}

const inputOf = (isLimited: boolean) => `
  SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $7::boolean[]${isLimited ? `, ${LimitSql.limitArrays}` : ""})
    WITH ORDINALITY AS t (id, org_id, key_id, amount, rate_limit, is_shared, ${isLimited ? `${LimitSql.limitColumns}, ` : ""}ord)`

const isAlive = (deadAfter: Duration.Duration) => `$6::uuid IS NULL OR EXISTS (
  SELECT FROM instances
  WHERE id = $6 AND swept_at IS NULL AND beat_at > now() - ${Duration.toSeconds(deadAfter)} * interval '1 second'
)`

const lockPayers = (conditions: string, isLimited: boolean) => `
  SELECT id, balance - held AS available, held, balance / ${balanceShares} AS share${isLimited ? LimitSql.payerColumns : ""} FROM organizations
  WHERE ${conditions} AND ${afterAllOf("taken_units")}
  ORDER BY id FOR NO KEY UPDATE`

/** Keys that have reached their cap. */
const cappedOf = (condition: string) => `
  SELECT id, cap_period FROM api_keys
  WHERE ${condition} AND cap IS NOT NULL AND cap <= (
    SELECT coalesce(sum(spent), 0) FROM key_spend
    WHERE key_id = api_keys.id AND day >= cap_period_start(api_keys.cap_period)
  ) + (
    SELECT coalesce(sum(amount), 0) FROM holds
    WHERE key_id = api_keys.id AND state = 'open' AND instance_id IS NULL
  )`

/** `up_to`: what the batch's holds of the organization come to, from the first to this one. */
const fitsBalance = `up_to - amount < available AND up_to <= available
  AND (NOT is_shared OR amount <= share OR (held = 0 AND up_to = amount))`

const placeText = (forInstance: boolean, isLimited: boolean, deadAfter: Duration.Duration) => `
  WITH input AS (${inputOf(isLimited)}), known AS (
    SELECT id${isLimited ? ", created_at" : ""} FROM ${forInstance ? "open_holds" : "holds"} WHERE id = ANY ($1::uuid[])
  ), taken_units AS (
    INSERT INTO rate_windows AS w (key_id, started_at, used)
    SELECT key_id, now(), count(*) FROM input
    WHERE ${lockTimeoutSql(forInstance ? "many" : "one")} AND rate_limit IS NOT NULL AND id NOT IN (SELECT id FROM known)
    GROUP BY key_id ORDER BY key_id
    ${addUnits}
    RETURNING key_id, used
  ), numbered AS (
    SELECT input.*, known.id IS NOT NULL AS known,${isLimited ? " known.created_at AS placed_at," : ""}
      CASE WHEN rate_limit IS NOT NULL AND known.id IS NOT NULL
        THEN (SELECT coalesce(max(used), 1) FROM rate_windows WHERE rate_windows.key_id = input.key_id)
      WHEN rate_limit IS NOT NULL THEN taken_units.used
        - count(*) FILTER (WHERE rate_limit IS NOT NULL AND known.id IS NULL) OVER (PARTITION BY key_id)
        + count(*) FILTER (WHERE rate_limit IS NOT NULL AND known.id IS NULL) OVER (PARTITION BY key_id ORDER BY ord)
      END AS ordinal
    FROM input LEFT JOIN known ON known.id = input.id LEFT JOIN taken_units USING (key_id)
  ), payers AS (
    ${lockPayers(`${lockTimeoutSql(forInstance ? "many" : "one")} ${forInstance ? `AND ${commitsBeforeDisk}` : ""} AND id IN (SELECT org_id FROM input)`, isLimited)}
  ), alive AS (
    SELECT ${isAlive(deadAfter)} AS yes
  ), ${isLimited ? "capped_keys" : "capped"} AS (
    ${cappedOf("id IN (SELECT key_id FROM input)")}
  ), ${isLimited ? LimitSql.judgeLimits : ""}asked AS (
    SELECT input.*, payers.available, payers.held, payers.share, capped.cap_period,
      coalesce(input.ordinal > input.rate_limit, false) AS limited,
      coalesce(sum(input.amount) FILTER (WHERE NOT input.known AND capped.id IS NULL
          AND coalesce(input.ordinal <= input.rate_limit, true)${isLimited ? LimitSql.isWithinLimits : ""})
        OVER (PARTITION BY input.org_id ORDER BY input.ord), 0) AS up_to
    FROM ${isLimited ? "judged" : "numbered"} AS input JOIN payers ON payers.id = input.org_id
    LEFT JOIN capped ON capped.id = input.key_id
  ), admitted AS (
    SELECT * FROM asked
    WHERE NOT known AND NOT limited AND cap_period IS NULL AND (SELECT yes FROM alive) AND ${fitsBalance}${isLimited ? LimitSql.isWithinLimits : ""}
  ), taken AS (
    SELECT org_id, sum(amount)::bigint AS amount FROM admitted GROUP BY org_id
  ), reserved AS (
    UPDATE organizations SET held = organizations.held + taken.amount FROM taken WHERE organizations.id = taken.org_id
  ), placed AS (
    INSERT INTO ${forInstance ? "open_holds" : "holds"} (id, org_id, key_id, amount, instance_id)
    SELECT id, org_id, key_id, amount, $6 FROM admitted
  )${isLimited ? LimitSql.takeTokens : ""}
  SELECT CASE
      WHEN asked.known OR admitted.id IS NOT NULL THEN 'held'
      WHEN asked.limited THEN 'limited'
      WHEN asked.cap_period IS NOT NULL THEN 'capped'${isLimited ? LimitSql.limitVerdicts : ""}
      WHEN NOT (SELECT yes FROM alive) THEN 'instance_dead'
      ELSE 'insufficient'
    END AS verdict,
    asked.cap_period AS period,
    asked.ordinal::text AS ordinal,
    (asked.available - coalesce(taken.amount, 0))::text AS remaining${isLimited ? LimitSql.limitResults : ""}
  FROM asked LEFT JOIN admitted ON admitted.id = asked.id LEFT JOIN taken ON taken.org_id = asked.org_id${isLimited ? LimitSql.joinTaken : ""}
  ORDER BY asked.ord`

/** As `placeText` for an instance, in one pass, for holds that no statement can have placed before. */
const placeNewText = (deadAfter: Duration.Duration) => `
  WITH input AS (${inputOf(false)}), taken_units AS (
    INSERT INTO rate_windows AS w (key_id, started_at, used)
    SELECT key_id, now(), count(*) FROM input WHERE ${lockTimeoutSql("many")} AND rate_limit IS NOT NULL
    GROUP BY key_id ORDER BY key_id
    ${addUnits}
    RETURNING key_id, used
  ), payers AS (
    ${lockPayers(`${lockTimeoutSql("many")} AND ${commitsBeforeDisk} AND id = ANY ($2::text[])`, false)}
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
    CROSS JOIN (SELECT ${isAlive(deadAfter)} AS yes) AS alive
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

const makeTexts = (deadAfter: Duration.Duration) => {
  const placeNew = placeNewText(deadAfter)
  const placeForInstance = placeText(true, false, deadAfter)
  const placeForJobs = placeText(false, false, deadAfter)
  const limited = { instance: placeText(true, true, deadAfter), jobs: placeText(false, true, deadAfter) }
  return (instance: string | null, isLimited: boolean, areNew: boolean): string => {
    if (isLimited) return instance === null ? limited.jobs : limited.instance
    if (instance === null) return placeForJobs
    return areNew ? placeNew : placeForInstance
  }
}

/**
 * Returns the statement that places holds, except for an instance without a heartbeat for `deadAfter`. It locks
 * windows, then organizations in order of id, so that batches cannot deadlock; a repeated hold counts once. All holds
 * of a `batch` have limits, or none.
 */
export const makePlace = (deadAfter: Duration.Duration) => {
  const textFor = makeTexts(deadAfter)
  return (instance: string | null, batch: ReadonlyArray<RatedHold>, areNew = false): Query<HoldResult> => {
    const isLimited = batch[0]?.limits !== undefined
    return {
      text: textFor(instance, isLimited, areNew),
      values: [
        batch.map(({ id }) => id),
        batch.map(({ org }) => org),
        batch.map(({ key }) => key),
        batch.map(({ amount }) => amount),
        batch.map(({ rateLimit }) => rateLimit ?? null),
        instance,
        batch.map(({ isLimitedToShare = false }) => isLimitedToShare),
        ...(isLimited ? LimitSql.limitValues(batch) : [])
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
