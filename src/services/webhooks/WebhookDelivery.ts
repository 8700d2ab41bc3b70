import { SqlClient } from "@effect/sql"
import { Cause, Duration, Effect, FiberSet, Layer, Queue, Random } from "effect"
import * as Metrics from "../metrics/Metrics.ts"
import { Failpoint } from "../runtime/Failpoint.ts"
import { backoffFor } from "../runtime/Schedules.ts"
import { Timings } from "../runtime/Timings.ts"
import { logFailure } from "../sql/Outage.ts"
import { type DeliveryQueue, type Leased, makeDeliveryQueue, type Outcome, type Try } from "./DeliveryQueue.ts"
import { makeSend } from "./Sending.ts"

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
