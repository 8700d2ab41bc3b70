import type { SqlClient, SqlError } from "@effect/sql"
import { Effect, type ParseResult, Schema } from "effect"
import { toStorable } from "../sql/Statement.ts"

/** Longer than a try with its statements takes. */
const leaseSeconds = 60
/** Replaces `perOrganization` for organizations with a slow lane, which may have many hosts that never answer. */
const maxBesideSlowLanes = 4
/** Due rows that are looked at for one claim. */
const farthest = 1_000
const longestFailure = 200
/** An index accepts no long keys. A longer host name cannot exist, so its tries fail at once. */
const maxSlowLaneLength = 1_000

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

/** A slow try makes its lane slow; a quick one ends that. */
export interface Outcome extends Try {
  readonly isSlow: boolean
}

export interface Claim {
  /** True claims only deliveries of slow lanes, false only those of other lanes. */
  readonly isSlow: boolean
  readonly limit: number
  readonly perLane: number
  /** Includes deliveries that are already running. */
  readonly perOrganization: number
  /** Deliveries of these lanes are not claimed. */
  readonly busyLanes: ReadonlyArray<string>
  /** One entry for each running delivery of the same kind of lanes. */
  readonly organizations: ReadonlyArray<string>
}

export interface DeliveryQueue {
  /** Prefers organizations with few running deliveries. Drops deliveries to an endpoint that was being removed. */
  readonly claim: (claim: Claim) => Effect.Effect<ReadonlyArray<Leased>, SqlError.SqlError | ParseResult.ParseError>
  readonly deliver: (leased: Leased, outcome: Outcome) => Effect.Effect<unknown, SqlError.SqlError>
  /** Without `retryMs` it is the last try. */
  readonly fail: (leased: Leased, outcome: Outcome, retryMs?: number) => Effect.Effect<unknown, SqlError.SqlError>
  /** Fails everything that waits for the endpoint, and writes nothing more for it; not by a try from before it was enabled. */
  readonly disable: (leased: Leased, outcome: Outcome) => Effect.Effect<unknown, SqlError.SqlError>
  readonly release: (leased: Leased) => Effect.Effect<unknown, SqlError.SqlError>
}

export const makeDeliveryQueue = (sql: SqlClient.SqlClient): DeliveryQueue => {
  const decode = Schema.decodeUnknown(Schema.Array(Leased))
  const failureOf = ({ failure = "" }: Try) => toStorable(failure.slice(0, longestFailure))
  const setTried = ({ status }: Try) =>
    sql`tries = tries + 1, tried_at = now(), lease = NULL, status = ${status ?? null}`
  const setPace = ({ lane, orgId }: Leased, { isSlow }: Outcome) =>
    isSlow && lane.length <= maxSlowLaneLength
      ? sql`INSERT INTO webhook_slow_lanes (lane, org_id) VALUES (${lane}, ${orgId})
          ON CONFLICT (lane) DO UPDATE SET tried_at = now()`
      : sql`DELETE FROM webhook_slow_lanes WHERE lane = ${lane}`
  return {
    claim: ({ busyLanes, isSlow, limit, organizations, perLane, perOrganization }) =>
      Effect.flatMap(
        sql`
          WITH due AS (
            SELECT * FROM (
              SELECT id, org_id, lane, next_at,
                (SELECT count(*) FROM unnest(${organizations}::text[]) AS running WHERE running = org_id) AS running,
                CASE WHEN EXISTS (SELECT FROM webhook_slow_lanes AS slow WHERE slow.org_id = delivery.org_id)
                  THEN ${Math.min(perOrganization, maxBesideSlowLanes)} ELSE ${perOrganization} END::integer AS places
              FROM webhook_deliveries AS delivery
              WHERE next_at <= now() AND lane <> ALL (${busyLanes}::text[])
                AND EXISTS (SELECT FROM webhook_slow_lanes AS slow WHERE slow.lane = delivery.lane) = ${isSlow}
            ) AS ready
            WHERE running < places ORDER BY next_at LIMIT ${farthest}
          ), chosen AS (
            SELECT id FROM (
              SELECT id, next_at, places, row_number() OVER (PARTITION BY lane ORDER BY next_at, id) AS lane_place,
                running + row_number() OVER (PARTITION BY org_id ORDER BY next_at, id) AS place
              FROM due
            ) AS placed
            WHERE lane_place <= ${perLane} AND place <= places ORDER BY place, next_at LIMIT ${limit}
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

    deliver: (leased, outcome) => sql`
      WITH pace AS (${setPace(leased, outcome)})
      UPDATE webhook_deliveries SET state = 'delivered', ${setTried(outcome)}, failure = NULL, next_at = NULL
      WHERE id = ${leased.id} AND lease = ${leased.lease}`,

    fail: (leased, outcome, retryMs) => sql`
      WITH failed AS (
        UPDATE webhook_deliveries SET state = ${retryMs === undefined ? "failed" : "pending"}, ${setTried(outcome)},
          failure = ${failureOf(outcome)}, next_at = now() + ${retryMs ?? null}::double precision * interval '1 millisecond'
        WHERE id = ${leased.id} AND lease = ${leased.lease} RETURNING endpoint_id
      ), pace AS (${setPace(leased, outcome)})
      UPDATE webhook_endpoints SET failure = ${failureOf(outcome)}, failed_at = now()
      FROM failed WHERE webhook_endpoints.id = failed.endpoint_id`,

    disable: (leased, outcome) => sql`
      WITH gone AS (
        UPDATE webhook_deliveries SET state = 'failed', ${setTried(outcome)}, failure = ${failureOf(outcome)}, next_at = NULL
        WHERE id = ${leased.id} AND lease = ${leased.lease} RETURNING endpoint_id
      ), disabled AS (
        UPDATE webhook_endpoints SET failure = ${failureOf(outcome)}, failed_at = now(),
          disabled_at = coalesce(disabled_at, now())
        WHERE id IN (SELECT endpoint_id FROM gone)
      ), pace AS (${setPace(leased, outcome)})
      UPDATE webhook_deliveries SET state = 'failed', lease = NULL, failure = 'the endpoint is disabled', next_at = NULL
      WHERE endpoint_id IN (SELECT endpoint_id FROM gone) AND next_at IS NOT NULL AND id <> ${leased.id}`,

    release: ({ id, lease }) => sql`
      UPDATE webhook_deliveries SET lease = NULL, next_at = now() WHERE id = ${id} AND lease = ${lease}`
  }
}
