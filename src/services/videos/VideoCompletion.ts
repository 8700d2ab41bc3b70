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
import type { JobFailure } from "./VideoSql.ts"
import type { LeasedJob, VideoError } from "./VideoState.ts"
import { deleteIdempotencyKey, notifyOfEnd } from "./VideoViews.ts"

export const holdOf = (job: LeasedJob): Hold => ({ id: job.holdId, org: job.orgId, key: job.keyId, amount: job.price })

/** Completes the job and charges its price. Idempotent. Does nothing if another instance has the lease. */
export const completeJob = Effect.fnUntraced(function* (
  services: VideoServices,
  job: LeasedJob,
  mediaName: string,
  route: VideoRoute
) {
  const cost = route.cost === undefined ? undefined : clipPrice(route.cost, job.seconds)
  const { ledger, rows, sql, store } = services
  const charge = Effect.gen(function* () {
    const accepted = yield* rows.complete(job, { mediaName, isSandbox: isSandbox(route), cost })
    if (accepted === undefined) return undefined
    yield* notifyOfEnd(sql, job.id, store.link)
    return yield* ledger.job.settle(holdOf(job), job.price)
  })
  const settlement = yield* inTransaction(services, job, charge)
  if (settlement !== undefined) {
    Closing.countSettlement(settlement)
    Metrics.costNanoUsd.unsafeUpdate(cost ?? 0n, [])
  } else {
    // An earlier commit may have succeeded although its answer was lost. The clip then belongs to the job and stays.
    const storedName = yield* rows.findMediaName(job.id).pipe(Effect.retry(videoRetries), Effect.orDie)
    if (storedName !== mediaName) return yield* Effect.ignoreLogged(store.remove(mediaName))
  }
  endTrace(services, job)
  yield* Metrics.count(Metrics.videos, { outcome: "completed" })
  yield* removeReference(services, job)
})

export type FailOptions = Pick<JobFailure, "attempts" | "failure" | "isCancelling">

/**
 * Fails the job and releases its hold. Idempotent. Returns whether the job was accepted; if not, its idempotency key is
 * released too. Returns undefined and changes nothing if another instance has the lease.
 */
export const failJob = Effect.fnUntraced(function* (
  services: VideoServices,
  job: LeasedJob,
  error: VideoError,
  options: FailOptions = {}
) {
  const isSandbox = job.step !== "submit" && job.route?.provider.adapter === sandboxAdapter
  const { ledger, rows, sql, store } = services
  const releaseHold = Effect.gen(function* () {
    const wasAccepted = yield* rows.fail(job, { error, isSandbox, ...options })
    if (wasAccepted === undefined) return undefined
    yield* notifyOfEnd(sql, job.id, store.link)
    yield* ledger.job.release(holdOf(job))
    if (!wasAccepted) yield* deleteIdempotencyKey(sql, job.holdId)
    return wasAccepted
  })
  const outcome = yield* inTransaction(services, job, releaseHold)
  const wasAccepted = outcome ?? (yield* rows.findFailed(job.id, error).pipe(Effect.retry(videoRetries), Effect.orDie))
  if (wasAccepted === undefined) return undefined
  endTrace(services, job, error.code)
  yield* Metrics.count(Metrics.videos, { outcome: error.code })
  yield* removeReference(services, job)
  return wasAccepted
})

/** Runs the changes of the job, its hold and its events in one uninterruptible transaction, and retries it. */
const inTransaction = <A>(services: VideoServices, job: LeasedJob, changes: Effect.Effect<A, SqlError.SqlError>) => {
  const { withOrgPermit, sql } = services
  const transaction = sql.withTransaction(changes).pipe(withOrgPermit(job.orgId), Effect.uninterruptible)
  const runRetried = transaction.pipe(Effect.retry(videoRetries), Effect.orDie)
  return withSpan(parentOf(services, job), "settle", runRetried)
}

/** Call it only after the job has ended. Until then another instance may need the reference for a submit. */
const removeReference = Effect.fnUntraced(function* ({ store, views }: VideoServices, { id, reference }: LeasedJob) {
  if (reference === null) return
  yield* store.remove(reference)
  yield* views.forgetReference(id)
}, Effect.ignoreLogged)

/** Writes one span for the lifetime of the job. */
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
