import type { SqlClient } from "@effect/sql"
import { Schema } from "effect"
import { CapPeriod, type KeyId } from "../../domain/ApiKey.ts"
import { type NanoUsd, NanoUsdFromRow } from "../../domain/Money.ts"
import type { OrgId } from "../../domain/Organization.ts"

/** Milliseconds that a statement for many waits for a lock: none of them may wait long for another's. */
const sharedLockWait = 250
/** The same for a statement of one organization's, of which few run at a time. */
const ownLockWait = 1_000

/**
 * A condition that is always true, and by which a statement, and what follows it in its transaction, is given up when a
 * lock is not to be had in time: whoever waits occupies a connection.
 */
export const waitsBriefly = (sql: SqlClient.SqlClient, forWhom: "many" | "one") =>
  sql.literal(
    `(SELECT set_config('lock_timeout', '${forWhom === "many" ? sharedLockWait : ownLockWait}', true)) IS NOT NULL`
  )

/** Seconds without a heartbeat after which an instance is dead and its holds are released. */
export const deadAfterSeconds = 45

export interface Reservation {
  readonly id: string
  readonly org: OrgId
  readonly key: KeyId
  readonly amount: NanoUsd
}

export interface Closing {
  readonly id: string
  /** What to charge; undefined releases. */
  readonly cost: NanoUsd | undefined
}

export const Verdict = Schema.Struct({
  verdict: Schema.Literal("held", "insufficient", "capped", "fenced"),
  period: Schema.NullOr(CapPeriod),
  /** What is left to the organization after this statement. */
  remaining: NanoUsdFromRow
})
export type Verdict = typeof Verdict.Type

export const Closed = Schema.Struct({
  state: Schema.Literal("open", "settled", "released"),
  charged: Schema.NullOr(NanoUsdFromRow),
  amount: NanoUsdFromRow
})
export type Closed = typeof Closed.Type

/**
 * Reserves many amounts at once, for an instance or, without one, for jobs that outlive it. Organizations are locked
 * in order of id, so that batches of several instances cannot deadlock. Within an organization the batch is a queue:
 * an amount is admitted while the sum up to it fits.
 * A hold that is already there (the same statement came through before) counts as held.
 */
export const reserve = (sql: SqlClient.SqlClient, instance: string | null, batch: ReadonlyArray<Reservation>) => sql`
  WITH input AS (
    SELECT * FROM unnest(
      ${batch.map(({ id }) => id)}::uuid[], ${batch.map(({ org }) => org)}::text[],
      ${batch.map(({ key }) => key)}::text[], ${batch.map(({ amount }) => amount)}::bigint[]
    ) WITH ORDINALITY AS t (id, org_id, key_id, amount, ord)
  ), payers AS (
    SELECT id, balance - held AS available FROM organizations
    WHERE ${waitsBriefly(sql, instance === null ? "one" : "many")} AND id IN (SELECT org_id FROM input) ORDER BY id FOR NO KEY UPDATE
  ), known AS (
    SELECT id FROM holds WHERE id IN (SELECT id FROM input)
  ), alive AS (
    SELECT ${instance}::uuid IS NULL OR EXISTS (
      SELECT FROM instances
      WHERE id = ${instance} AND swept_at IS NULL AND beat_at > now() - ${deadAfterSeconds} * interval '1 second'
    ) AS yes
  ), capped AS (
    SELECT id, cap_period FROM api_keys
    WHERE id IN (SELECT key_id FROM input) AND cap IS NOT NULL AND cap <= (
      SELECT coalesce(sum(spent), 0) FROM key_spend
      WHERE key_id = api_keys.id AND day >= cap_period_start(api_keys.cap_period)
    ) + (
      SELECT coalesce(sum(amount), 0) FROM holds
      WHERE key_id = api_keys.id AND state = 'open' AND instance_id IS NULL
    )
  ), asked AS (
    SELECT input.*, payers.available, known.id IS NOT NULL AS known, capped.cap_period,
      coalesce(sum(input.amount) FILTER (WHERE known.id IS NULL AND capped.id IS NULL)
        OVER (PARTITION BY input.org_id ORDER BY input.ord), 0) AS up_to
    FROM input JOIN payers ON payers.id = input.org_id
    LEFT JOIN known ON known.id = input.id LEFT JOIN capped ON capped.id = input.key_id
  ), admitted AS (
    SELECT * FROM asked WHERE NOT known AND cap_period IS NULL
      AND up_to - amount < available AND up_to <= available AND (SELECT yes FROM alive)
  ), taken AS (
    SELECT org_id, sum(amount)::bigint AS amount FROM admitted GROUP BY org_id
  ), reserved AS (
    UPDATE organizations SET held = organizations.held + taken.amount FROM taken WHERE organizations.id = taken.org_id
  ), placed AS (
    INSERT INTO holds (id, org_id, key_id, amount, instance_id)
    SELECT id, org_id, key_id, amount, ${instance} FROM admitted
  )
  SELECT CASE
      WHEN asked.known OR admitted.id IS NOT NULL THEN 'held'
      WHEN asked.cap_period IS NOT NULL THEN 'capped'
      WHEN NOT (SELECT yes FROM alive) THEN 'fenced'
      ELSE 'insufficient'
    END AS verdict,
    asked.cap_period AS period,
    (asked.available - coalesce(taken.amount, 0))::bigint AS remaining
  FROM asked LEFT JOIN admitted ON admitted.id = asked.id LEFT JOIN taken ON taken.org_id = asked.org_id
  ORDER BY asked.ord`

/**
 * Keeps a reservation that may still be under way from ever being placed: its id is taken, by a hold of nothing that
 * is closed already. Waits for a statement that is placing it just now, and then changes nothing.
 */
export const tombstone = (
  sql: SqlClient.SqlClient,
  instance: string,
  { id, key, org }: Omit<Reservation, "amount">
) => sql`
  INSERT INTO holds (id, org_id, key_id, amount, state, instance_id, closed_at)
  SELECT ${id}::uuid, ${org}, ${key}, 0, 'released', ${instance}::uuid, now() WHERE ${waitsBriefly(sql, "one")}
  ON CONFLICT (id) DO NOTHING`

/**
 * Closes many holds at once, each only if it is still open; a charge is cut to its hold. The answer says for each
 * hold what it is now, whoever closed it.
 */
export const close = (sql: SqlClient.SqlClient, batch: ReadonlyArray<Closing>, forWhom: "many" | "one" = "many") => sql`
  WITH input AS (
    SELECT * FROM unnest(
      ${batch.map(({ id }) => id)}::uuid[], ${batch.map(({ cost }) => cost ?? null)}::bigint[]
    ) WITH ORDINALITY AS t (id, cost, ord)
  ), payers AS (
    SELECT id FROM organizations WHERE ${waitsBriefly(sql, forWhom)}
      AND id IN (SELECT org_id FROM holds WHERE id IN (SELECT id FROM input)) ORDER BY id FOR NO KEY UPDATE
  ), closed AS (
    UPDATE holds SET
      state = CASE WHEN input.cost IS NULL THEN 'released' ELSE 'settled' END,
      charged = CASE WHEN input.cost IS NOT NULL THEN least(input.cost, holds.amount) END,
      closed_at = now()
    FROM input WHERE holds.id = input.id AND holds.state = 'open' AND (SELECT count(*) FROM payers) > 0
    RETURNING holds.id, holds.org_id, holds.key_id, holds.amount, holds.state, holds.charged
  ), entered AS (
    INSERT INTO ledger_entries (org_id, kind, amount, hold_id, key_id)
    SELECT org_id, 'charge', -charged, id, key_id FROM closed WHERE state = 'settled'
  ), spent AS (
    INSERT INTO key_spend (key_id, day, spent)
    SELECT key_id, (now() AT TIME ZONE 'UTC')::date, sum(charged) FROM closed WHERE state = 'settled' GROUP BY key_id
    ON CONFLICT (key_id, day) DO UPDATE SET spent = key_spend.spent + excluded.spent
  ), moved AS (
    UPDATE organizations SET held = organizations.held - sums.held, balance = organizations.balance - sums.charged
    FROM (
      SELECT org_id, sum(amount)::bigint AS held, coalesce(sum(charged), 0)::bigint AS charged
      FROM closed GROUP BY org_id
    ) AS sums
    WHERE organizations.id = sums.org_id
  )
  SELECT coalesce(closed.state, holds.state) AS state, coalesce(closed.charged, holds.charged) AS charged, holds.amount
  FROM input JOIN holds ON holds.id = input.id LEFT JOIN closed ON closed.id = input.id
  ORDER BY input.ord`

export interface Orphan {
  readonly id: string
  readonly orgId: string
}

/** Marks instances dead that have not renewed their heartbeat, and lists open holds whose instance is gone. */
export const orphans = (sql: SqlClient.SqlClient, limit: number, exceptOrgs: ReadonlyArray<string>) => sql<Orphan>`
  WITH dead AS (
    UPDATE instances SET swept_at = now()
    WHERE swept_at IS NULL AND stopped_at IS NULL AND beat_at <= now() - ${deadAfterSeconds} * interval '1 second'
    RETURNING id
  )
  SELECT holds.id, holds.org_id FROM holds JOIN instances ON instances.id = holds.instance_id
  WHERE holds.state = 'open' AND holds.org_id <> ALL (${exceptOrgs}::text[])
    AND (instances.swept_at IS NOT NULL OR instances.stopped_at IS NOT NULL OR instances.id IN (SELECT id FROM dead))
  LIMIT ${limit}`

/**
 * Gives back what was charged for an answer that the customer never got, to the balance and to the key's cap, and frees
 * the idempotency key that would replay it. Does nothing the second time.
 */
export const refund = (sql: SqlClient.SqlClient, hold: string) => sql`
  WITH payer AS (
    SELECT id FROM organizations
    WHERE ${waitsBriefly(sql, "one")} AND id = (SELECT org_id FROM holds WHERE id = ${hold}) FOR NO KEY UPDATE
  ), entered AS (
    INSERT INTO ledger_entries (org_id, kind, amount, ref, note)
    SELECT org_id, 'adjustment', charged, 'refund:' || id, 'charged for an answer that failed'
    FROM holds WHERE id = ${hold} AND state = 'settled' AND charged > 0 AND (SELECT count(*) FROM payer) > 0
    ON CONFLICT (ref) DO NOTHING
    RETURNING org_id, amount
  ), unspent AS (
    UPDATE key_spend SET spent = key_spend.spent - entered.amount FROM entered, ledger_entries AS charge
    WHERE charge.hold_id = ${hold} AND key_spend.key_id = charge.key_id
      AND key_spend.day = (charge.at AT TIME ZONE 'UTC')::date
  ), freed AS (
    UPDATE idempotency_keys SET key = NULL WHERE hold_id = ${hold}
  )
  UPDATE organizations SET balance = organizations.balance + entered.amount FROM entered WHERE organizations.id = entered.org_id`
