import { SqlClient } from "@effect/sql"
import { Cause, Duration, Effect, FiberSet, Layer, Queue, Random } from "effect"
import * as Metrics from "../metrics/Metrics.ts"
import { Failpoint } from "../runtime/Failpoint.ts"
import { Timings } from "../runtime/Timings.ts"
import { untilSettled } from "../sql/DatabaseRetry.ts"
import { logFailure } from "../sql/Outage.ts"
import { type DeliveryQueue, type Leased, makeDeliveryQueue, maxPerOrganization, type Try } from "./DeliveryQueue.ts"
import { makeSend } from "./Sending.ts"

const maxAtOnce = 64

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

/** Takes what is due, a few deliveries of each destination at a time, until the scope closes. */
export const makeRunner = Effect.fnUntraced(function* (queue: DeliveryQueue, send: Send) {
  const failpoint = yield* Failpoint
  const { findDeliveriesEvery, settleWithin } = yield* Timings
  const untilRecorded = untilSettled(settleWithin)
  const fibers = yield* FiberSet.make<void>()
  const running = new Map<string, Leased>()
  const wakeups = yield* Queue.sliding<void>(1)

  const record = Effect.fnUntraced(function* (leased: Leased, done: Try) {
    if (done.failure === undefined) {
      yield* Effect.retry(queue.deliver(leased, done), untilRecorded)
      return "delivered"
    }
    if (done.status === gone) {
      yield* Effect.retry(queue.disable(leased, done), untilRecorded)
      if (leased.endpointId !== null)
        yield* Effect.logWarning(`The webhook endpoint ${leased.endpointId} is disabled: 410`)
      return "gone"
    }
    const rest = yield* delayAfter(leased.tries)
    yield* Effect.retry(queue.fail(leased, done, rest), untilRecorded)
    if (rest !== undefined) return "retried"
    yield* Effect.logWarning(`The webhook ${leased.eventId} could not be delivered: ${done.failure}`)
    return "failed"
  })

  const deliver = (leased: Leased) =>
    Effect.gen(function* () {
      yield* failpoint.reach("webhook_leased")
      const done = yield* Effect.onInterrupt(Effect.interruptible(send(leased)), () =>
        Effect.ignoreLogged(queue.release(leased))
      )
      yield* failpoint.reach("webhook_sent")
      yield* Metrics.count(Metrics.webhooks, { outcome: yield* record(leased, done) })
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

  const busy = () => {
    const lanes = new Set<string>()
    const byOrganization = new Map<string, number>()
    for (const { lane, orgId } of running.values()) {
      lanes.add(lane)
      byOrganization.set(orgId, (byOrganization.get(orgId) ?? 0) + 1)
    }
    const full = [...byOrganization].filter(([, count]) => count >= maxPerOrganization)
    return [...lanes, ...full.map(([org]) => org)]
  }

  const claimDue = Effect.gen(function* () {
    const capacity = maxAtOnce - running.size
    if (capacity === 0) return yield* Queue.take(wakeups)
    const claimed = yield* Effect.uninterruptible(
      Effect.tap(
        queue.claim(capacity, busy()),
        Effect.forEach((leased) => {
          running.set(leased.id, leased)
          return FiberSet.run(fibers, deliver(leased))
        })
      )
    )
    if (claimed.length === 0) yield* Effect.timeoutOption(Queue.take(wakeups), findDeliveriesEvery)
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
