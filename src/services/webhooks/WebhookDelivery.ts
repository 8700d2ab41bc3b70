import { createHmac, randomBytes } from "node:crypto"
import { SqlClient, type SqlError } from "@effect/sql"
import { Cause, Clock, Duration, Effect, FiberSet, Layer, type ParseResult, Queue, Random, Schema } from "effect"
import { explainFailure, Fetcher } from "../media/Fetcher.ts"
import * as Metrics from "../metrics/Metrics.ts"
import { Failpoint } from "../runtime/Failpoint.ts"
import { backoffFor } from "../runtime/Schedules.ts"
import { Timings } from "../runtime/Timings.ts"
import { logFailure } from "../sql/Outage.ts"
import { toStorable } from "../sql/SqlStatement.ts"

/** Longer than a try, including its database statements. */
const leaseSeconds = 60
/** An upper bound of `perOrganization` for organizations with a slow destination, because their other hosts may be slow too. */
const maxBesideSlow = 4
/** A claim chooses among this many due deliveries. */
const maxDueRows = 1_000
const maxFailureLength = 200
/**
 * Longer names are not stored, because index keys are limited. Their tries fail immediately: host names cannot be that long.
 */
const maxSlowLength = 1_000

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
  /**
   * The endpoint, or for a request's URL its organization and host. Deliveries to one destination share a limit. SQL calls
   * it `lane`.
   */
  destination: Schema.String,
  secret: Schema.String
})
export type Leased = typeof Leased.Type

/** `failure` is undefined if the event was delivered. */
export interface Try {
  readonly status: number | undefined
  readonly failure: string | undefined
}

/** `isSlow` marks the destination as slow until its next try. */
export interface Outcome extends Try {
  readonly isSlow: boolean
}

export interface Claim {
  /** Claims only deliveries to slow destinations if true, and only deliveries to others if false. */
  readonly isSlow: boolean
  readonly limit: number
  readonly perDestination: number
  /** The maximum per organization, including deliveries that already run. */
  readonly perOrganization: number
  /** Deliveries to these destinations are not claimed. */
  readonly busyDestinations: ReadonlyArray<string>
  /** The organization of each running delivery to a destination with the same `isSlow`. May repeat organizations. */
  readonly organizationsOfRunning: ReadonlyArray<string>
}

export interface DeliveryQueue {
  /**
   * Claims due deliveries, first those of organizations with few running ones. Deletes deliveries whose endpoint was just
   * removed.
   */
  readonly claim: (claim: Claim) => Effect.Effect<ReadonlyArray<Leased>, SqlError.SqlError | ParseResult.ParseError>
  readonly deliver: (leased: Leased, outcome: Outcome) => Effect.Effect<unknown, SqlError.SqlError>
  /** Without `retryMs`, the delivery is not tried again. */
  readonly fail: (leased: Leased, outcome: Outcome, retryMs?: number) => Effect.Effect<unknown, SqlError.SqlError>
  /** Disables the endpoint and fails its pending deliveries. Does nothing if the endpoint was enabled again during the try. */
  readonly disable: (leased: Leased, outcome: Outcome) => Effect.Effect<unknown, SqlError.SqlError>
  readonly release: (leased: Leased) => Effect.Effect<unknown, SqlError.SqlError>
}

export const makeDeliveryQueue = (sql: SqlClient.SqlClient): DeliveryQueue => {
  const decode = Schema.decodeUnknown(Schema.Array(Leased))
  const failureOf = ({ failure = "" }: Try) => toStorable(failure.slice(0, maxFailureLength))
  const setTried = ({ status }: Try) =>
    sql`tries = tries + 1, tried_at = now(), lease = NULL, status = ${status ?? null}`
  const setPace = ({ destination, orgId }: Leased, { isSlow }: Outcome) =>
    isSlow && destination.length <= maxSlowLength
      ? sql`INSERT INTO webhook_slow_lanes (lane, org_id) VALUES (${destination}, ${orgId})
          ON CONFLICT (lane) DO UPDATE SET tried_at = now()`
      : sql`DELETE FROM webhook_slow_lanes WHERE lane = ${destination}`
  return {
    claim: ({ busyDestinations, isSlow, limit, organizationsOfRunning, perDestination, perOrganization }) =>
      Effect.flatMap(
        sql`
          WITH due AS (
            SELECT * FROM (
              SELECT id, org_id, lane, next_at,
                (SELECT count(*) FROM unnest(${organizationsOfRunning}::text[]) AS running WHERE running = org_id) AS running,
                CASE WHEN EXISTS (SELECT FROM webhook_slow_lanes AS slow WHERE slow.org_id = delivery.org_id)
                  THEN ${Math.min(perOrganization, maxBesideSlow)} ELSE ${perOrganization} END::integer AS places
              FROM webhook_deliveries AS delivery
              WHERE next_at <= now() AND lane <> ALL (${busyDestinations}::text[])
                AND EXISTS (SELECT FROM webhook_slow_lanes AS slow WHERE slow.lane = delivery.lane) = ${isSlow}
            ) AS ready
            WHERE running < places ORDER BY next_at LIMIT ${maxDueRows}
          ), chosen AS (
            SELECT id FROM (
              SELECT id, next_at, places, row_number() OVER (PARTITION BY lane ORDER BY next_at, id) AS lane_place,
                running + row_number() OVER (PARTITION BY org_id ORDER BY next_at, id) AS place
              FROM due
            ) AS placed
            WHERE lane_place <= ${perDestination} AND place <= places ORDER BY place, next_at LIMIT ${limit}
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
          RETURNING delivery.*, delivery.lane AS destination, locked.secret`,
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

const prefix = "whsec_"

export const newSecret = (): string => prefix + randomBytes(32).toString("base64")

/** Returns the header `webhook-signature` of the specification Standard Webhooks. `timestamp` is in Unix seconds. */
const sign = (
  secret: string,
  { body, id, timestamp }: { readonly id: string; readonly timestamp: number; readonly body: string }
): string => {
  const key = Buffer.from(secret.slice(prefix.length), "base64")
  return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`
}

const tryTimeoutSeconds = 15

const isDelivered = (status: number) => status >= 200 && status < 300

type Message = Pick<Leased, "createdAt" | "data" | "eventId" | "secret" | "type" | "url">

interface Answer extends Try {
  /** The beginning of the response body, at most `answerBytes` long. */
  readonly answer: string
}

/** Returns a function that sends an event as a signed POST, without following redirects. */
export const makeSend = Effect.map(
  Fetcher,
  ({ post }) =>
    ({ createdAt, data, eventId: id, secret, type, url }: Message, answerBytes = 0): Effect.Effect<Answer> =>
      Effect.gen(function* () {
        const body = JSON.stringify({ type, timestamp: createdAt.toISOString(), data })
        const timestamp = Math.floor((yield* Clock.currentTimeMillis) / 1000)
        const { answer, status } = yield* post({
          url,
          body,
          answerBytes,
          withinSeconds: tryTimeoutSeconds,
          headers: {
            "content-type": "application/json",
            "webhook-id": id,
            "webhook-timestamp": String(timestamp),
            "webhook-signature": sign(secret, { id, timestamp, body })
          }
        })
        return { status, failure: isDelivered(status) ? undefined : `status ${status}`, answer }
      }).pipe(
        Effect.catchAll((failed) => {
          const { detail, reason } = explainFailure(url, failed)
          return Effect.succeed({ status: failed.status, failure: `${reason}: ${detail}`, answer: "" })
        })
      )
)

/** A longer try marks its destination as slow. Must be less than `tryTimeoutSeconds`. */
const slowAfter = Duration.seconds(5)

/** The limits for slow or for other destinations. They are separate, so slow destinations don't delay others. */
interface Share {
  readonly isSlow: boolean
  readonly places: number
  /** How many of the places only organizations without a running delivery may use. */
  readonly reserved: number
  readonly perDestination: number
  readonly perOrganization: number
}

const shares: ReadonlyArray<Share> = [
  { isSlow: false, places: 96, reserved: 32, perDestination: 4, perOrganization: 16 },
  { isSlow: true, places: 32, reserved: 8, perDestination: 1, perOrganization: 2 }
]

/** The delays between tries, which sum to less than 24 hours. */
const retryDelays = ["5 seconds", "1 minute", "5 minutes", "30 minutes", "2 hours", "6 hours", "15 hours"] as const

/**
 * Returns the milliseconds until the next try, or undefined after the last one. Shortens the delay randomly by up to a fifth,
 * so deliveries that failed together are not retried together.
 */
const nextDelay = (tries: number) =>
  Effect.map(Random.nextRange(0.8, 1), (share) => {
    const delay = retryDelays[tries]
    return delay === undefined ? undefined : Math.round(Duration.toMillis(delay) * share)
  })

const goneStatus = 410

export type Send = (leased: Leased) => Effect.Effect<Try>

/** Sends due deliveries until the scope closes. Limits concurrent deliveries per destination and per organization. */
export const makeRunner = Effect.fnUntraced(function* (queue: DeliveryQueue, send: Send) {
  const failpoint = yield* Failpoint
  const { findDeliveriesEvery, settleWithin } = yield* Timings
  const recordRetries = backoffFor(settleWithin)
  const fibers = yield* FiberSet.make<void>()
  const running = new Map<string, { readonly leased: Leased; readonly share: Share }>()
  const wakeups = yield* Queue.sliding<void>(1)

  const record = Effect.fnUntraced(function* (leased: Leased, outcome: Outcome) {
    if (outcome.failure === undefined) {
      yield* Effect.retry(queue.deliver(leased, outcome), recordRetries)
      return "delivered"
    }
    if (outcome.status === goneStatus) {
      yield* Effect.retry(queue.disable(leased, outcome), recordRetries)
      if (leased.endpointId !== null)
        yield* Effect.logWarning(`The webhook endpoint ${leased.endpointId} returned 410 and is disabled`)
      return "gone"
    }
    const delay = yield* nextDelay(leased.tries)
    yield* Effect.retry(queue.fail(leased, outcome, delay), recordRetries)
    if (delay !== undefined) return "retried"
    yield* Effect.logWarning(`The webhook ${leased.eventId} could not be delivered: ${outcome.failure}`)
    return "failed"
  })

  const deliver = (leased: Leased) =>
    Effect.gen(function* () {
      yield* failpoint.reach("webhook_leased")
      const [duration, result] = yield* Effect.onInterrupt(Effect.interruptible(Effect.timed(send(leased))), () =>
        Effect.ignoreLogged(queue.release(leased))
      )
      yield* failpoint.reach("webhook_sent")
      const outcome = { ...result, isSlow: Duration.greaterThan(duration, slowAfter) }
      yield* Metrics.count(Metrics.webhooks, { outcome: yield* record(leased, outcome) })
    }).pipe(
      Effect.catchAllCause((cause) =>
        Cause.isInterruptedOnly(cause)
          ? Effect.void
          : logFailure(`The webhook ${leased.eventId} was sent, but its result was not stored`, cause)
      ),
      Effect.ensuring(
        Effect.suspend(() => {
          running.delete(leased.id)
          return Queue.offer(wakeups, undefined)
        })
      ),
      Effect.uninterruptible
    )

  const claimFrom = (share: Share) =>
    Effect.suspend(() => {
      const all = [...running.values()]
      const ofShare = all.filter((delivery) => delivery.share === share)
      const free = share.places - ofShare.length
      if (free === 0) return Effect.succeed([])
      const isReserved = free <= share.reserved
      return queue.claim({
        isSlow: share.isSlow,
        limit: isReserved ? free : free - share.reserved,
        perDestination: share.perDestination,
        perOrganization: isReserved ? 1 : share.perOrganization,
        busyDestinations: all.map(({ leased }) => leased.destination),
        organizationsOfRunning: ofShare.map(({ leased }) => leased.orgId)
      })
    }).pipe(
      Effect.tap(
        Effect.forEach((leased) => {
          running.set(leased.id, { leased, share })
          return FiberSet.run(fibers, deliver(leased))
        })
      ),
      Effect.uninterruptible
    )

  const claimDue = Effect.gen(function* () {
    const claimed = yield* Effect.forEach(shares, claimFrom)
    if (claimed.flat().length === 0) yield* Effect.timeoutOption(Queue.take(wakeups), findDeliveriesEvery)
  })

  yield* claimDue.pipe(
    Effect.catchAllCause((cause) =>
      Effect.zipRight(logFailure("Due webhooks could not be claimed", cause), Effect.sleep(findDeliveriesEvery))
    ),
    Effect.forever,
    Effect.interruptible,
    Effect.forkScoped
  )
})

export const layer = Layer.scopedDiscard(
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* makeRunner(makeDeliveryQueue(sql), yield* makeSend)
  })
)
