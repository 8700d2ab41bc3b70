import { SqlClient, type SqlError } from "@effect/sql"
import { Context, Effect, Layer } from "effect"
import type { VideoRoute } from "../../domain/Model.ts"
import { clipPrice } from "../../domain/Video.ts"
import { isSandbox, sandboxAdapter } from "../catalog/Rules.ts"
import * as Closing from "../ledger/Closing.ts"
import type { Hold } from "../ledger/Hold.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { MediaStore } from "../media/MediaStore.ts"
import type { AttemptEntry } from "../routing/Attempts.ts"
import { often, untilSettled, upTo } from "../sql/DatabaseRetry.ts"
import { makeTurns, type Turns } from "../sql/Turns.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import type { VideoError } from "./Errors.ts"
import { unbind } from "./FailVideo.ts"
import { type LeasedJob, VideoSql } from "./VideoSql.ts"
import { VideoViews } from "./VideoViews.ts"

/** What pays for a job. */
export const holdOf = (job: LeasedJob): Hold => ({ id: job.holdId, org: job.orgId, key: job.keyId, amount: job.price })

/** For statements about a render that its provider has taken and that somebody waits for. */
export const brief = untilSettled

/** Of the pool's connections, transactions that wait for each other's organizations must leave some to the rest. */
const transactionsAtOnce = 3

/** The turns of transactions about jobs. */
export class VideoTurns extends Context.Tag("gateway/VideoTurns")<VideoTurns, Turns>() {
  static readonly layer = Layer.effect(VideoTurns, makeTurns(transactionsAtOnce))
}

/** For what a render hangs on that has been paid for: a database that comes back finds it again. */
export const patient = upTo("2 minutes")(often)

const make = Effect.gen(function* () {
  const rows = yield* VideoSql
  const views = yield* VideoViews
  const inTurn = yield* VideoTurns
  const sql = yield* SqlClient.SqlClient
  const ledger = yield* Ledger
  const store = yield* MediaStore

  const inTransaction = <A>({ orgId }: LeasedJob, changes: Effect.Effect<A, SqlError.SqlError>) =>
    sql.withTransaction(changes).pipe(inTurn(orgId), Effect.uninterruptible, Effect.retry(patient), Effect.orDie)

  /** Of a job that is over: whoever else has it may need to submit it again. */
  const dropReference = (job: LeasedJob) =>
    job.reference === null
      ? Effect.void
      : Effect.zipRight(store.remove(job.reference), views.dropped(job.id)).pipe(Effect.ignoreLogged)

  const complete = Effect.fnUntraced(function* (job: LeasedJob, media: string, route: VideoRoute) {
    const cost = route.cost === undefined ? undefined : clipPrice(route.cost, job.seconds)
    const done = yield* inTransaction(
      job,
      Effect.gen(function* () {
        const accepted = yield* rows.finish(job, { status: "completed", media, sandbox: isSandbox(route), cost }, [])
        return accepted === undefined ? undefined : yield* ledger.job.settle(holdOf(job), job.price)
      })
    )
    if (done !== undefined) Closing.count(done)
    // After a commit whose answer was lost the clip is this job's all the same.
    const own = done !== undefined || (yield* rows.mediaOf(job.id).pipe(Effect.retry(patient), Effect.orDie)) === media
    if (!own) {
      yield* Effect.ignoreLogged(store.remove(media))
      return false
    }
    yield* Metrics.count(Metrics.videos, { outcome: "completed" })
    yield* dropReference(job)
    return true
  })

  const fail = Effect.fnUntraced(function* (job: LeasedJob, error: VideoError, options: FailOptions = {}) {
    const { attempts = [], cancelling = false } = options
    const sandbox = job.route?.provider.adapter === sandboxAdapter
    const done = yield* inTransaction(
      job,
      Effect.gen(function* () {
        const wasAccepted = yield* rows.finish(job, { status: "failed", error, cancelling, sandbox }, attempts)
        if (wasAccepted === undefined) return undefined
        yield* ledger.job.release(holdOf(job))
        if (!wasAccepted) yield* unbind(sql, job.holdId)
        return wasAccepted
      })
    )
    const wasAccepted = done ?? (yield* rows.failedWith(job.id, error).pipe(Effect.retry(patient), Effect.orDie))
    if (wasAccepted === undefined) return undefined
    yield* Metrics.count(Metrics.videos, { outcome: error.code })
    yield* dropReference(job)
    return wasAccepted
  })

  return VideoFinish.of({ complete, fail })
})

interface FailOptions {
  readonly attempts?: ReadonlyArray<AttemptEntry>
  /** Whether the provider is still to be told. */
  readonly cancelling?: boolean
}

/**
 * How jobs end: the row, the money and what customers see change in one transaction. Each can be repeated, and does
 * nothing for a job that is not its caller's any more.
 */
export class VideoFinish extends Context.Tag("gateway/VideoFinish")<
  VideoFinish,
  {
    /** Shows the clip that is in the store under this name, and charges for it. False where somebody else ended the job. */
    readonly complete: (job: LeasedJob, media: string, route: VideoRoute) => Effect.Effect<boolean>
    /**
     * Returns whether the customer had been told of the job; false also means that its idempotency key is free again.
     * Undefined where the job has not failed with this error: it is not the caller's any more.
     */
    readonly fail: (job: LeasedJob, error: VideoError, options?: FailOptions) => Effect.Effect<boolean | undefined>
  }
>() {
  static readonly layer = Layer.effect(
    VideoFinish,
    Effect.suspend(() => make)
  )
}
