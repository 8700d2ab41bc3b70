import { SqlClient, type SqlError } from "@effect/sql"
import { Effect } from "effect"
import type { Hold } from "../../domain/Hold.ts"
import type { VideoRoute } from "../../domain/Model.ts"
import { clipPrice } from "../../domain/VideoRules.ts"
import { isSandbox, sandboxAdapter } from "../catalog/CatalogRules.ts"
import * as Closing from "../ledger/HoldClosing.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { MediaStore } from "../media/MediaStore.ts"
import * as Metrics from "../metrics/Metrics.ts"
import type { KeyedSemaphore } from "../runtime/KeyedSemaphore.ts"
import { videoRetries } from "../runtime/Schedules.ts"
import { resume, type SpanParent, Tracing, withSpan } from "../tracing/Tracing.ts"
import type { Failing, VideoSql } from "./VideoSql.ts"
import type { LeasedJob, VideoError } from "./VideoState.ts"
import { makeVideoViews, notifyOfEnd, unbind } from "./VideoViews.ts"

/** A job goes on in the trace of the request that created it, whichever instance works on it. */
export const makeVideoTrace = Effect.map(Tracing, ({ source }) => {
  const parentOf = (job: LeasedJob): SpanParent | undefined => resume(source, job.trace)

  /** One span for the whole life of the job. */
  const end = (job: LeasedJob, error?: string): void => {
    const route = job.step === "submit" ? undefined : job.route?.id
    parentOf(job)
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

  return { parentOf, end }
})

export const holdOf = (job: LeasedJob): Hold => ({ id: job.holdId, org: job.orgId, key: job.keyId, amount: job.price })

type FailOptions = Pick<Failing, "attempts" | "cancelling" | "failure">

/** Row, money and view change in one transaction; repeatable, and without effect for another lease holder. */
export const makeFinish = (rows: VideoSql, inTurn: KeyedSemaphore) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const ledger = yield* Ledger
    const store = yield* MediaStore
    const trace = yield* makeVideoTrace
    const views = makeVideoViews(sql)

    const inTransaction = <A>(job: LeasedJob, changes: Effect.Effect<A, SqlError.SqlError>) =>
      withSpan(
        trace.parentOf(job),
        "settle",
        sql
          .withTransaction(changes)
          .pipe(inTurn(job.orgId), Effect.uninterruptible, Effect.retry(videoRetries), Effect.orDie)
      )

    /** Only after the end: another lease holder may submit it again. */
    const removeReference = (job: LeasedJob) =>
      job.reference === null
        ? Effect.void
        : Effect.zipRight(store.remove(job.reference), views.forgetReference(job.id)).pipe(Effect.ignoreLogged)

    const complete = Effect.fnUntraced(function* (job: LeasedJob, media: string, route: VideoRoute) {
      const cost = route.cost === undefined ? undefined : clipPrice(route.cost, job.seconds)
      const settlement = yield* inTransaction(
        job,
        Effect.gen(function* () {
          const accepted = yield* rows.complete(job, { media, isSandbox: isSandbox(route), cost })
          if (accepted === undefined) return undefined
          yield* notifyOfEnd(sql, job.id, store.link)
          return yield* ledger.job.settle(holdOf(job), job.price)
        })
      )
      if (settlement !== undefined) {
        Closing.countSettlement(settlement)
        Metrics.costNanoUsd.unsafeUpdate(cost ?? 0n, [])
      } else {
        // After a commit without an answer the clip is this job's all the same.
        const found = yield* rows.findMedia(job.id).pipe(Effect.retry(videoRetries), Effect.orDie)
        if (found !== media) return yield* Effect.ignoreLogged(store.remove(media))
      }
      trace.end(job)
      yield* Metrics.count(Metrics.videos, { outcome: "completed" })
      yield* removeReference(job)
    })

    /** Returns whether the customer knew of the job; false frees its key, undefined: it belongs to another. */
    const fail = Effect.fnUntraced(function* (job: LeasedJob, error: VideoError, options: FailOptions = {}) {
      const isSandbox = job.step !== "submit" && job.route?.provider.adapter === sandboxAdapter
      const failed = yield* inTransaction(
        job,
        Effect.gen(function* () {
          const wasAccepted = yield* rows.fail(job, { error, isSandbox, ...options })
          if (wasAccepted === undefined) return undefined
          yield* notifyOfEnd(sql, job.id, store.link)
          yield* ledger.job.release(holdOf(job))
          if (!wasAccepted) yield* unbind(sql, job.holdId)
          return wasAccepted
        })
      )
      const wasAccepted =
        failed ?? (yield* rows.findFailed(job.id, error).pipe(Effect.retry(videoRetries), Effect.orDie))
      if (wasAccepted === undefined) return undefined
      trace.end(job, error.code)
      yield* Metrics.count(Metrics.videos, { outcome: error.code })
      yield* removeReference(job)
      return wasAccepted
    })

    return { complete, fail }
  })
export type Finish = Effect.Effect.Success<ReturnType<typeof makeFinish>>
