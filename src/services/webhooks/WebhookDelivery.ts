import { createHmac, randomBytes } from "node:crypto"
import { SqlClient, type SqlError } from "@effect/sql"
import { Cause, Clock, Duration, Effect, FiberSet, Layer, type ParseResult, Queue, Random, Schema } from "effect"
import { explainFailure, Fetcher } from "../media/Fetcher.ts"
import * as Metrics from "../metrics/Metrics.ts"
import { Failpoint } from "../runtime/Failpoint.ts"
import { backoffFor } from "../runtime/Schedules.ts"
import { Timings } from "../runtime/Timings.ts"
import { logFailure } from "../sql/Outage.ts"
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

const prefix = "whsec_"

export const newSecret = (): string => prefix + randomBytes(32).toString("base64")

/** The value of `webhook-signature`, by Standard Webhooks; `timestamp` in Unix seconds. */
const sign = (
  secret: string,
  { body, id, timestamp }: { readonly id: string; readonly timestamp: number; readonly body: string }
): string => {
  const key = Buffer.from(secret.slice(prefix.length), "base64")
  return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`
}

const tryWithinSeconds = 15

const isDelivered = (status: number) => status >= 200 && status < 300

type Message = Pick<Leased, "createdAt" | "data" | "eventId" | "secret" | "type" | "url">

interface Sent extends Try {
  /** The beginning of the answer's body, of at most the bytes that were asked for. */
  readonly answer: string
}

/** One try: a signed POST, which follows no redirect. */
export const makeSend = Effect.map(
  Fetcher,
  ({ post }) =>
    ({ createdAt, data, eventId: id, secret, type, url }: Message, answerBytes = 0): Effect.Effect<Sent> =>
      Effect.gen(function* () {
        const body = JSON.stringify({ type, timestamp: createdAt.toISOString(), data })
        const timestamp = Math.floor((yield* Clock.currentTimeMillis) / 1000)
        const { answer, status } = yield* post({
          url,
          body,
          answerBytes,
          withinSeconds: tryWithinSeconds,
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

/** A longer try makes its lane slow. The time limit of a try is three times as long. */
const slowAfter = Duration.seconds(5)

/** Slow lanes have separate places, so that they delay no other deliveries. */
interface Share {
  readonly isSlow: boolean
  readonly places: number
  /** The last places are reserved for organizations without a running delivery. */
  readonly spare: number
  readonly perLane: number
  readonly perOrganization: number
}

const shares: ReadonlyArray<Share> = [
  { isSlow: false, places: 96, spare: 32, perLane: 4, perOrganization: 16 },
  { isSlow: true, places: 32, spare: 8, perLane: 1, perOrganization: 2 }
]

/** After each failed try, the last but one; together below 24 hours. */
const rests = ["5 seconds", "1 minute", "5 minutes", "30 minutes", "2 hours", "6 hours", "15 hours"] as const

/** Shortened by up to a fifth, so that what failed together is not repeated together; undefined after the last try. */
const delayAfter = (tries: number) =>
  Effect.map(Random.nextRange(0.8, 1), (share) => {
    const rest = rests[tries]
    return rest === undefined ? undefined : Math.round(Duration.toMillis(rest) * share)
  })

const gone = 410

export type Send = (leased: Leased) => Effect.Effect<Try>

/** Sends due deliveries, a few of each destination and organization at a time, until the scope closes. */
export const makeRunner = Effect.fnUntraced(function* (queue: DeliveryQueue, send: Send) {
  const failpoint = yield* Failpoint
  const { findDeliveriesEvery, settleWithin } = yield* Timings
  const untilRecorded = backoffFor(settleWithin)
  const fibers = yield* FiberSet.make<void>()
  const running = new Map<string, { readonly leased: Leased; readonly share: Share }>()
  const wakeups = yield* Queue.sliding<void>(1)

  const record = Effect.fnUntraced(function* (leased: Leased, outcome: Outcome) {
    if (outcome.failure === undefined) {
      yield* Effect.retry(queue.deliver(leased, outcome), untilRecorded)
      return "delivered"
    }
    if (outcome.status === gone) {
      yield* Effect.retry(queue.disable(leased, outcome), untilRecorded)
      if (leased.endpointId !== null)
        yield* Effect.logWarning(`The webhook endpoint ${leased.endpointId} is disabled: 410`)
      return "gone"
    }
    const rest = yield* delayAfter(leased.tries)
    yield* Effect.retry(queue.fail(leased, outcome, rest), untilRecorded)
    if (rest !== undefined) return "retried"
    yield* Effect.logWarning(`The webhook ${leased.eventId} could not be delivered: ${outcome.failure}`)
    return "failed"
  })

  const deliver = (leased: Leased) =>
    Effect.gen(function* () {
      yield* failpoint.reach("webhook_leased")
      const [took, done] = yield* Effect.onInterrupt(Effect.interruptible(Effect.timed(send(leased))), () =>
        Effect.ignoreLogged(queue.release(leased))
      )
      yield* failpoint.reach("webhook_sent")
      const outcome = { ...done, isSlow: Duration.greaterThan(took, slowAfter) }
      yield* Metrics.count(Metrics.webhooks, { outcome: yield* record(leased, outcome) })
    }).pipe(
      Effect.catchAllCause((cause) =>
        Cause.isInterruptedOnly(cause)
          ? Effect.void
          : logFailure(`The webhook ${leased.eventId} was sent, but not recorded`, cause)
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
      const own = all.filter((one) => one.share === share)
      const free = share.places - own.length
      if (free === 0) return Effect.succeed([])
      const isSpare = free <= share.spare
      return queue.claim({
        isSlow: share.isSlow,
        limit: isSpare ? free : free - share.spare,
        perLane: share.perLane,
        perOrganization: isSpare ? 1 : share.perOrganization,
        busyLanes: all.map(({ leased }) => leased.lane),
        organizations: own.map(({ leased }) => leased.orgId)
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
      Effect.zipRight(logFailure("Webhooks could not be taken on", cause), Effect.sleep(findDeliveriesEvery))
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
