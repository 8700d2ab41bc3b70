import type { SqlError } from "@effect/sql"
import { Effect } from "effect"
import type { Hold } from "../../domain/Hold.ts"
import type { VideoRoute } from "../../domain/Model.ts"
import { clipPrice } from "../../domain/VideoRules.ts"
import { isSandbox, sandboxAdapter } from "../catalog/CatalogRules.ts"
import * as Closing from "../ledger/HoldClosing.ts"
import * as Metrics from "../metrics/Metrics.ts"
import { videoRetries } from "../runtime/Schedules.ts"
import { withSpan } from "../tracing/Tracing.ts"
import { parentOf, type VideoServices } from "./VideoServices.ts"
import type { Failing } from "./VideoSql.ts"
import type { LeasedJob, VideoError } from "./VideoState.ts"
import { notifyOfEnd, unbind } from "./VideoViews.ts"

export const holdOf = (job: LeasedJob): Hold => ({ id: job.holdId, org: job.orgId, key: job.keyId, amount: job.price })

/** Repeatable, and without effect for another lease holder. */
export const completeJob = Effect.fnUntraced(function* (
  services: VideoServices,
  job: LeasedJob,
  media: string,
  route: VideoRoute
) {
  const cost = route.cost === undefined ? undefined : clipPrice(route.cost, job.seconds)
  const { ledger, rows, sql, store } = services
  const charging = Effect.gen(function* () {
    const accepted = yield* rows.complete(job, { media, isSandbox: isSandbox(route), cost })
    if (accepted === undefined) return undefined
    yield* notifyOfEnd(sql, job.id, store.link)
    return yield* ledger.job.settle(holdOf(job), job.price)
  })
  const settlement = yield* inTransaction(services, job, charging)
  if (settlement !== undefined) {
    Closing.countSettlement(settlement)
    Metrics.costNanoUsd.unsafeUpdate(cost ?? 0n, [])
  } else {
    // After a commit without an answer the clip is this job's all the same.
    const found = yield* rows.findMedia(job.id).pipe(Effect.retry(videoRetries), Effect.orDie)
    if (found !== media) return yield* Effect.ignoreLogged(store.remove(media))
  }
  endTrace(services, job)
  yield* Metrics.count(Metrics.videos, { outcome: "completed" })
  yield* removeReference(services, job)
})

export type FailOptions = Pick<Failing, "attempts" | "cancelling" | "failure">

/**
 * Returns whether the customer knew of the job; false frees its key, undefined: it belongs to another. Repeatable, and
 * without effect for another lease holder.
 */
export const failJob = Effect.fnUntraced(function* (
  services: VideoServices,
  job: LeasedJob,
  error: VideoError,
  options: FailOptions = {}
) {
  const isSandbox = job.step !== "submit" && job.route?.provider.adapter === sandboxAdapter
  const { ledger, rows, sql, store } = services
  const releasing = Effect.gen(function* () {
    const wasAccepted = yield* rows.fail(job, { error, isSandbox, ...options })
    if (wasAccepted === undefined) return undefined
    yield* notifyOfEnd(sql, job.id, store.link)
    yield* ledger.job.release(holdOf(job))
    if (!wasAccepted) yield* unbind(sql, job.holdId)
    return wasAccepted
  })
  const failed = yield* inTransaction(services, job, releasing)
  const wasAccepted = failed ?? (yield* rows.findFailed(job.id, error).pipe(Effect.retry(videoRetries), Effect.orDie))
  if (wasAccepted === undefined) return undefined
  endTrace(services, job, error.code)
  yield* Metrics.count(Metrics.videos, { outcome: error.code })
  yield* removeReference(services, job)
  return wasAccepted
})

/** Row, money and view change together, and what has begun to is not interrupted. */
const inTransaction = <A>(services: VideoServices, job: LeasedJob, changes: Effect.Effect<A, SqlError.SqlError>) => {
  const { inTurn, sql } = services
  const transaction = sql.withTransaction(changes).pipe(inTurn(job.orgId), Effect.uninterruptible)
  const settling = transaction.pipe(Effect.retry(videoRetries), Effect.orDie)
  return withSpan(parentOf(services, job), "settle", settling)
}

/** Only after the end: another lease holder may submit it again. */
const removeReference = Effect.fnUntraced(function* ({ store, views }: VideoServices, { id, reference }: LeasedJob) {
  if (reference === null) return
  yield* store.remove(reference)
  yield* views.forgetReference(id)
}, Effect.ignoreLogged)

/** One span for the whole life of the job. */
const endTrace = (services: VideoServices, job: LeasedJob, error?: string): void => {
  const route = job.step === "submit" ? undefined : job.route?.id
  parentOf(services, job)
    ?.start("video", {
      startedAt: BigInt(job.createdAt.getTime()) * 1_000_000n,
      attributes: {
        "gateway.video_id": job.id,
        "gateway.model": job.model,
        "gateway.organization_id": job.orgId,
        "gateway.route": route,
        "gateway.polls": job.polls,
        "gateway.error_code": error
      }
    })
    .end(error)
}
