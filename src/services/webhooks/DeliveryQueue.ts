import type { SqlClient, SqlError } from "@effect/sql"
import { Effect, type ParseResult, Schema } from "effect"
import { toStorable } from "../sql/Statement.ts"

/** Longer than a try with its statements takes. */
const leaseSeconds = 60
const maxPerLane = 4
/** Hosts that never answer are as many as a customer likes. */
export const maxPerOrganization = 16
/** Due rows that are looked at for one claim. */
const farthest = 1_000
const longestFailure = 200

export const Leased = Schema.Struct({
  id: Schema.String,
  eventId: Schema.String,
  orgId: Schema.String,
  endpointId: Schema.NullOr(Schema.String),
  url: Schema.String,
  type: Schema.String,
  data: Schema.Unknown,
  createdAt: Schema.DateFromSelf,
  tries: Schema.Number,
  lease: Schema.String,
  lane: Schema.String,
  secret: Schema.String
})
export type Leased = typeof Leased.Type

/** `failure` is undefined for a delivery. */
export interface Try {
  readonly status: number | undefined
  readonly failure: string | undefined
}

export interface DeliveryQueue {
  /** A few of each lane and organization, none of those that are `busy`; drops what was written for an endpoint while it was removed. */
  readonly claim: (
    limit: number,
    busy: ReadonlyArray<string>
  ) => Effect.Effect<ReadonlyArray<Leased>, SqlError.SqlError | ParseResult.ParseError>
  readonly deliver: (leased: Leased, done: Try) => Effect.Effect<unknown, SqlError.SqlError>
  /** Without `retryMs` it is the last try. */
  readonly fail: (leased: Leased, done: Try, retryMs?: number) => Effect.Effect<unknown, SqlError.SqlError>
  /** Fails everything that waits for the endpoint, and writes nothing more for it; not by a try from before it was enabled. */
  readonly disable: (leased: Leased, done: Try) => Effect.Effect<unknown, SqlError.SqlError>
  readonly release: (leased: Leased) => Effect.Effect<unknown, SqlError.SqlError>
}

export const makeDeliveryQueue = (sql: SqlClient.SqlClient): DeliveryQueue => {
  const decode = Schema.decodeUnknown(Schema.Array(Leased))
  const failureOf = ({ failure = "" }: Try) => toStorable(failure.slice(0, longestFailure))
  const setTried = ({ status }: Try) =>
    sql`tries = tries + 1, tried_at = now(), lease = NULL, status = ${status ?? null}`
  return {
    claim: (limit, busy) =>
      Effect.flatMap(
        sql`
          WITH due AS (
            SELECT id, org_id, lane, next_at FROM webhook_deliveries
            WHERE next_at <= now() AND lane <> ALL (${busy}::text[]) AND org_id <> ALL (${busy}::text[])
            ORDER BY next_at LIMIT ${farthest}
          ), chosen AS (
            SELECT id FROM (
              SELECT id, next_at, row_number() OVER (PARTITION BY lane ORDER BY next_at, id) AS place,
                row_number() OVER (PARTITION BY org_id ORDER BY next_at, id) AS org_place
              FROM due
            ) AS placed
            WHERE place <= ${maxPerLane} AND org_place <= ${maxPerOrganization} ORDER BY next_at LIMIT ${limit}
          ), locked AS (
            SELECT id, CASE
                WHEN endpoint_id IS NULL
                  THEN (SELECT secret FROM webhook_secrets WHERE webhook_secrets.org_id = delivery.org_id)
                ELSE (SELECT secret FROM webhook_endpoints WHERE webhook_endpoints.id = delivery.endpoint_id)
              END AS secret
            FROM webhook_deliveries AS delivery WHERE id IN (SELECT id FROM chosen) AND next_at <= now()
            FOR UPDATE SKIP LOCKED
          ), dropped AS (
            DELETE FROM webhook_deliveries WHERE id IN (SELECT id FROM locked WHERE secret IS NULL)
          )
          UPDATE webhook_deliveries AS delivery
          SET lease = gen_random_uuid(), next_at = now() + ${leaseSeconds} * interval '1 second'
          FROM locked WHERE delivery.id = locked.id AND locked.secret IS NOT NULL
          RETURNING delivery.*, locked.secret`,
        decode
      ),

    deliver: ({ id, lease }, done) => sql`
      UPDATE webhook_deliveries SET state = 'delivered', ${setTried(done)}, failure = NULL, next_at = NULL
      WHERE id = ${id} AND lease = ${lease}`,

    fail: ({ id, lease }, done, retryMs) => sql`
      WITH failed AS (
        UPDATE webhook_deliveries SET state = ${retryMs === undefined ? "failed" : "pending"}, ${setTried(done)},
          failure = ${failureOf(done)}, next_at = now() + ${retryMs ?? null}::double precision * interval '1 millisecond'
        WHERE id = ${id} AND lease = ${lease} RETURNING endpoint_id
      )
      UPDATE webhook_endpoints SET failure = ${failureOf(done)}, failed_at = now()
      FROM failed WHERE webhook_endpoints.id = failed.endpoint_id`,

    disable: ({ id, lease }, done) => sql`
      WITH gone AS (
        UPDATE webhook_deliveries SET state = 'failed', ${setTried(done)}, failure = ${failureOf(done)}, next_at = NULL
        WHERE id = ${id} AND lease = ${lease} RETURNING endpoint_id
      ), disabled AS (
        UPDATE webhook_endpoints SET failure = ${failureOf(done)}, failed_at = now(),
          disabled_at = coalesce(disabled_at, now())
        WHERE id IN (SELECT endpoint_id FROM gone)
      )
      UPDATE webhook_deliveries SET state = 'failed', lease = NULL, failure = 'the endpoint is disabled', next_at = NULL
      WHERE endpoint_id IN (SELECT endpoint_id FROM gone) AND next_at IS NOT NULL AND id <> ${id}`,

    release: ({ id, lease }) => sql`
      UPDATE webhook_deliveries SET lease = NULL, next_at = now() WHERE id = ${id} AND lease = ${lease}`
  }
}
