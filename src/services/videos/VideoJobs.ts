import { SqlClient } from "@effect/sql"
import { Cause, Context, Deferred, Duration, Effect, Either, Layer, Option, Schedule } from "effect"
import {
  IdempotencyConflict,
  type InvalidRequest,
  type RoutingFailure,
  VideoNotFinished,
  VideoNotFound
} from "../../domain/Failure.ts"
import type { NanoUsd } from "../../domain/Money.ts"
import type { OrgId } from "../../domain/Organization.ts"
import type { HoldRefused } from "../ledger/Ledger.ts"
import { MediaStore, makeMediaRemovals } from "../media/MediaStore.ts"
import type { RequestRecord } from "../requests/RequestRecord.ts"
import { Failpoint } from "../runtime/Failpoint.ts"
import { makeKeyedSemaphore } from "../runtime/KeyedSemaphore.ts"
import { backoffFor } from "../runtime/Schedules.ts"
import { Timings } from "../runtime/Timings.ts"
import { logFailure } from "../sql/Outage.ts"
import {
  type Created,
  type KeptVideo,
  makeCreate,
  type QuotedVideo,
  type RepeatedCreation,
  type VideoCreation
} from "./Create.ts"
import { holdOf, makeFinish } from "./Finish.ts"
import { makeSubmit } from "./Submit.ts"
import { toVideo, type Video } from "./VideoObject.ts"
import { makeAdvance, makeRunner } from "./VideoRunner.ts"
import { makeVideoSql } from "./VideoSql.ts"
import { errorOf, makePollDelay, Next } from "./VideoState.ts"
import { makeUpstream } from "./VideoUpstream.ts"
import { makeVideoViews, type PageStart } from "./VideoViews.ts"

export type { Video } from "./VideoObject.ts"

/** Transactions that wait for organizations' locks leave the other connections free. */
const transactionsAtOnce = 3

/** A deletion that takes longer is left to the next round. */
const removalTimeout = "5 seconds"
const removalEvery = "1 minute"

interface CreatedVideo {
  readonly video: Video
  readonly replayed: boolean
}

export type VideoFailure = InvalidRequest | IdempotencyConflict | HoldRefused | RoutingFailure

interface Options {
  /** Since its creation; then the video fails. */
  readonly timeout: Duration.DurationInput
}

/** Any instance can continue a job, and each is charged at most once. */
export class VideoJobs extends Context.Tag("gateway/VideoJobs")<
  VideoJobs,
  {
    /** Fails, without a job or a hold, if no provider takes it in time. */
    readonly create: (creation: VideoCreation) => Effect.Effect<CreatedVideo, VideoFailure>
    /** What the key's request got from a model that is no longer sold like that; none for any other request. */
    readonly replay: (request: RepeatedCreation) => Effect.Effect<Option.Option<CreatedVideo>, IdempotencyConflict>
    /** What `create` would hold, and a completed video is charged; nothing is held or asked. */
    readonly quote: (video: QuotedVideo) => Effect.Effect<NanoUsd, InvalidRequest>
    readonly find: (org: OrgId, id: string) => Effect.Effect<Video, VideoNotFound>
    /** Newest first, unless said otherwise; fails where it is to start after no video of the organization. */
    readonly list: (org: OrgId, limit: number, start?: PageStart) => Effect.Effect<ReadonlyArray<Video>, VideoNotFound>
    /** For its customer; charge, hold and log stay. */
    readonly delete: (org: OrgId, id: string) => Effect.Effect<void, VideoNotFound | VideoNotFinished>
    /** Keeps clips; returns how many jobs it removed. */
    readonly prune: (olderThan: Duration.Duration) => Effect.Effect<number>
  }
>() {
  static readonly layer = (options: Options) =>
    Layer.scoped(
      VideoJobs,
      Effect.suspend(() => make(options))
    )
}

const toQueuedVideo = (kept: KeptVideo): Video => ({
  ...kept,
  status: "queued",
  completedAt: undefined,
  progress: 0,
  url: undefined,
  error: undefined,
  charge: undefined,
  sandbox: false
})

const make = Effect.fnUntraced(function* ({ timeout }: Options) {
  const { answerVideoWithin, pollVideoAfter, settleWithin, videoLease } = yield* Timings
  const failpoint = yield* Failpoint
  const store = yield* MediaStore
  const sql = yield* SqlClient.SqlClient
  const rows = makeVideoSql(sql, videoLease)
  const views = makeVideoViews(sql)
  const inTurn = yield* makeKeyedSemaphore(transactionsAtOnce)
  const finish = yield* makeFinish(rows, inTurn)
  const upstream = yield* makeUpstream
  const submission = yield* makeSubmit(rows, upstream)
  const advance = yield* makeAdvance(rows, upstream, submission, finish)
  const runner = yield* makeRunner(rows, advance, submission.underway)
  const creation = yield* makeCreate(rows, inTurn, Duration.toSeconds(timeout))

  const pollDelay = makePollDelay(pollVideoAfter)
  const retryBriefly = backoffFor(settleWithin)

  const accept = (id: string) => views.accept(id).pipe(Effect.retry(retryBriefly), Effect.orDie, Effect.uninterruptible)

  const submitAndAwait = Effect.fnUntraced(function* ({ job, picture }: Created, record: RequestRecord) {
    const outcome = yield* Deferred.make<void, VideoFailure>()
    const submitJob = Effect.gen(function* () {
      const submitted = yield* Effect.either(submission.submit(job, record.attempts, picture))
      if (Either.isRight(submitted)) {
        record.add({ type: "answered", route: submitted.right })
        return yield* pollDelay(0)
      }
      const failure = submitted.left
      const wasAccepted = yield* finish.fail(job, errorOf(failure), { attempts: record.attempts.list })
      if (wasAccepted === false) yield* Deferred.fail(outcome, failure)
      return Next.Finish()
    })
    yield* runner.run(job, Effect.ensuring(submitJob, Deferred.succeed(outcome, undefined)))
    yield* Effect.interruptible(Effect.timeoutOption(Deferred.await(outcome), answerVideoWithin))
    if (yield* accept(job.id)) return
    // It failed at this very moment: the reason follows.
    yield* Effect.interruptible(Deferred.await(outcome))
    return yield* Effect.dieMessage(`video ${job.id} ended without a reason`)
  })

  const acceptAgain = Effect.fnUntraced(function* (kept: KeptVideo, record: RequestRecord) {
    record.note("replayed")
    // It may have failed before its customer knew of it, which freed its key.
    if (!(yield* accept(kept.id))) return yield* new IdempotencyConflict()
    return { video: toQueuedVideo(kept), replayed: true }
  })

  const replay = (request: RepeatedCreation) =>
    Effect.flatMap(creation.replay(request), (kept) =>
      Effect.transposeMapOption(kept, (found) => acceptAgain(found, request.record))
    )

  const create = Effect.fnUntraced(
    function* (request: VideoCreation) {
      const { record } = request
      const created = yield* creation.create(request)
      if ("replay" in created) return yield* acceptAgain(created.replay, record)
      yield* failpoint.reach("after_hold")
      yield* Effect.onError(submitAndAwait(created, record), (cause) =>
        Cause.isFailure(cause) ? Effect.void : creation.refundJob(created.job.id, holdOf(created.job))
      )
      return { video: toQueuedVideo(created.kept), replayed: false }
      // What is stored and held belongs to the job from its row on. Only waiting for its provider may be interrupted.
    },
    Effect.scoped,
    Effect.uninterruptible
  )

  const find = Effect.fn("VideoJobs.find")(function* (org: OrgId, id: string) {
    const view = yield* views.find(org, id)
    return view === undefined ? yield* new VideoNotFound() : toVideo(view, store.link)
  })

  const list = Effect.fn("VideoJobs.list")(function* (org: OrgId, limit: number, start?: PageStart) {
    const { after } = start ?? {}
    if (after !== undefined && !(yield* Effect.orDie(views.isOf(org, after)))) return yield* new VideoNotFound()
    return (yield* views.list(org, limit, start)).map((view) => toVideo(view, store.link))
  }, Effect.uninterruptible)

  const removals = yield* makeMediaRemovals
  yield* removals.removeAll.pipe(
    Effect.catchAllCause((cause) => logFailure("Deleted clips could not be removed", cause)),
    Effect.repeat(Schedule.spaced(removalEvery)),
    Effect.interruptible,
    Effect.forkScoped
  )

  const deleteVideo = Effect.fn("VideoJobs.delete")(function* (org: OrgId, id: string) {
    const [deleted] = yield* Effect.uninterruptible(Effect.orDie(views.delete(org, id)))
    if (deleted === undefined) {
      yield* find(org, id)
      return yield* new VideoNotFinished()
    }
    yield* failpoint.reach("deletion_committed")
    if (deleted.media !== null) yield* Effect.timeoutOption(removals.remove(deleted.media), removalTimeout)
  })

  const prune = Effect.fn("VideoJobs.prune")(function* (olderThan: Duration.Duration) {
    const unneeded = yield* Effect.orDie(views.unneededReferences(1_000))
    for (const { id, reference } of unneeded) {
      yield* Effect.ignoreLogged(Effect.zipRight(store.remove(reference), views.forgetReference(id)))
    }
    return yield* Effect.orDie(views.prune(Duration.toSeconds(olderThan)))
  })

  return VideoJobs.of({
    create,
    replay,
    quote: (video) => Effect.map(creation.quote(video), ({ price }) => price),
    prune,
    find,
    list,
    delete: deleteVideo
  })
})
