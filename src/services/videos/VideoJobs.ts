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
import { makeMediaRemovals } from "../media/MediaStore.ts"
import type { RequestRecord } from "../requests/RequestRecord.ts"
import { logFailure } from "../sql/Outage.ts"
import { failJob, holdOf } from "./VideoCompletion.ts"
import {
  type CreatedJob,
  createJob,
  findStoredVideo,
  type QuotedVideo,
  quoteVideo,
  type RepeatedVideo,
  refundJob,
  type StoredVideo,
  type VideoTask
} from "./VideoCreation.ts"
import { run, startRunner, type VideoRunner } from "./VideoRunner.ts"
import { makeVideoServices, type VideoServices } from "./VideoServices.ts"
import { errorOf, Next, toVideo, type Video } from "./VideoState.ts"
import { submit } from "./VideoUpstream.ts"
import type { PageStart } from "./VideoViews.ts"

export type { Video } from "./VideoState.ts"

/** How long a request waits for the removal of its clip. The next round of removals retries it. */
const removalTimeout = "5 seconds"
const removalEvery = "1 minute"

interface CreatedVideo {
  readonly video: Video
  readonly replayed: boolean
}

export type VideoFailure = Effect.Effect.Error<ReturnType<typeof createJob>> | RoutingFailure

interface Options {
  /** Counts from the creation of the video. */
  readonly timeout: Duration.DurationInput
}

/** Video jobs. Any instance can continue a job, and each job is charged at most once. */
export class VideoJobs extends Context.Tag("gateway/VideoJobs")<
  VideoJobs,
  {
    /** Fails without a job or a hold if no provider accepts the video in time. */
    readonly create: (task: VideoTask) => Effect.Effect<CreatedVideo, VideoFailure>
    /**
     * Returns the stored result of a repeated request even if its model is no longer sold; none if there is no result.
     */
    readonly replay: (repeated: RepeatedVideo) => Effect.Effect<Option.Option<CreatedVideo>, IdempotencyConflict>
    /** Returns the price, which `create` holds and a completed video is charged. */
    readonly quote: (video: QuotedVideo) => Effect.Effect<NanoUsd, InvalidRequest>
    readonly find: (org: OrgId, id: string) => Effect.Effect<Video, VideoNotFound>
    /** Default order: newest first. Fails if the start of the page is not a video of the organization. */
    readonly list: (org: OrgId, limit: number, start?: PageStart) => Effect.Effect<ReadonlyArray<Video>, VideoNotFound>
    /** Deletes the video for its customer. Its charge, hold and log row stay. */
    readonly delete: (org: OrgId, id: string) => Effect.Effect<void, VideoNotFound | VideoNotFinished>
    /** Removes old jobs but not their clips. Returns the number of removed jobs. */
    readonly prune: (olderThan: Duration.Duration) => Effect.Effect<number>
  }
>() {
  static readonly layer = (options: Options) =>
    Layer.scoped(
      VideoJobs,
      Effect.suspend(() => make(options))
    )
}

const make = Effect.fnUntraced(function* ({ timeout }: Options) {
  const services = yield* makeVideoServices(timeout)
  const runner = yield* startRunner(services)
  const removals = yield* startRemovals
  return VideoJobs.of({
    create: (task) => create(services, runner, task),
    replay: (repeated) => replay(services, repeated),
    quote: (video) => Effect.map(quoteVideo(services, video), ({ price }) => price),
    find: (org, id) => find(services, org, id),
    list: (org, limit, start) => list(services, org, limit, start),
    delete: (org, id) => deleteVideo(services, removals, org, id),
    prune: (olderThan) => prune(services, olderThan)
  })
})

/** Removes deleted clips, and retries failed removals. */
const startRemovals = Effect.gen(function* () {
  const removals = yield* makeMediaRemovals
  yield* removals.removeAll.pipe(
    Effect.catchAllCause((cause) => logFailure("Failed to remove deleted clips", cause)),
    Effect.repeat(Schedule.spaced(removalEvery)),
    Effect.interruptible,
    Effect.forkScoped
  )
  return removals
})
type Removals = Effect.Effect.Success<typeof startRemovals>

/**
 * Only its wait for the provider can be interrupted, because the job owns the hold and the media once its row is
 * written.
 */
const create = Effect.fnUntraced(
  function* (services: VideoServices, runner: VideoRunner, task: VideoTask) {
    const { record } = task
    const creation = yield* createJob(services, task)
    if ("replay" in creation) return yield* acceptAgain(services, creation.replay, record)
    yield* services.failpoint.reach("after_hold")
    yield* Effect.onError(submitAndAwait(services, runner, creation, record), (cause) =>
      Cause.isFailure(cause) ? Effect.void : refundJob(services, creation.job.id, holdOf(creation.job))
    )
    return { video: toQueuedVideo(creation.storedVideo), replayed: false }
  },
  Effect.scoped,
  Effect.uninterruptible
)

const submitAndAwait = Effect.fnUntraced(function* (
  services: VideoServices,
  runner: VideoRunner,
  { job, picture }: CreatedJob,
  record: RequestRecord
) {
  const outcome = yield* Deferred.make<void, VideoFailure>()
  const submitJob = Effect.gen(function* () {
    const submission = yield* Effect.either(submit(services, job, record.attempts, picture))
    if (Either.isRight(submission)) {
      record.add({ type: "answered", route: submission.right })
      return yield* services.pollDelay(0)
    }
    const failure = submission.left
    const wasAccepted = yield* failJob(services, job, errorOf(failure), { attempts: record.attempts.list })
    if (wasAccepted === false) yield* Deferred.fail(outcome, failure)
    return Next.Finish()
  })
  yield* run(runner, job, Effect.ensuring(submitJob, Deferred.succeed(outcome, undefined)))
  const { answerVideoWithin } = services.timings
  yield* Effect.interruptible(Effect.timeoutOption(Deferred.await(outcome), answerVideoWithin))
  if (yield* accept(services, job.id)) return
  // The job was not accepted, so it has just failed. Waits for the reason.
  yield* Effect.interruptible(Deferred.await(outcome))
  return yield* Effect.dieMessage(`video ${job.id} ended without a reason`)
})

const accept = ({ settleRetries, views }: VideoServices, id: string) =>
  views.accept(id).pipe(Effect.retry(settleRetries), Effect.orDie, Effect.uninterruptible)

const replay = Effect.fnUntraced(function* (services: VideoServices, repeated: RepeatedVideo) {
  const storedVideo = yield* findStoredVideo(services, repeated)
  return yield* Effect.transposeMapOption(storedVideo, (video) => acceptAgain(services, video, repeated.record))
})

const acceptAgain = Effect.fnUntraced(function* (
  services: VideoServices,
  storedVideo: StoredVideo,
  record: RequestRecord
) {
  record.note("replayed")
  // A job that failed before it was accepted has released its key, so the client may repeat the request.
  if (!(yield* accept(services, storedVideo.id))) return yield* new IdempotencyConflict()
  return { video: toQueuedVideo(storedVideo), replayed: true }
})

const toQueuedVideo = (storedVideo: StoredVideo): Video => ({
  ...storedVideo,
  status: "queued",
  completedAt: undefined,
  progress: 0,
  url: undefined,
  error: undefined,
  charge: undefined,
  sandbox: false
})

const find = Effect.fn("VideoJobs.find")(function* ({ store, views }: VideoServices, org: OrgId, id: string) {
  const view = yield* views.find(org, id)
  return view === undefined ? yield* new VideoNotFound() : toVideo(view, store.link)
})

const list = Effect.fn("VideoJobs.list")(function* (
  { store, views }: VideoServices,
  org: OrgId,
  limit: number,
  start?: PageStart
) {
  const { after } = start ?? {}
  if (after !== undefined && !(yield* Effect.orDie(views.belongsTo(org, after)))) return yield* new VideoNotFound()
  return (yield* views.list(org, limit, start)).map((view) => toVideo(view, store.link))
}, Effect.uninterruptible)

const deleteVideo = Effect.fn("VideoJobs.delete")(function* (
  services: VideoServices,
  removals: Removals,
  org: OrgId,
  id: string
) {
  const [row] = yield* Effect.uninterruptible(Effect.orDie(services.views.delete(org, id)))
  if (row === undefined) {
    yield* find(services, org, id)
    return yield* new VideoNotFinished()
  }
  yield* services.failpoint.reach("deletion_committed")
  if (row.mediaName !== null) yield* Effect.timeoutOption(removals.remove(row.mediaName), removalTimeout)
})

const prune = Effect.fn("VideoJobs.prune")(function* ({ store, views }: VideoServices, olderThan: Duration.Duration) {
  const references = yield* Effect.orDie(views.unneededReferences(1_000))
  for (const { id, reference } of references) {
    yield* Effect.ignoreLogged(Effect.zipRight(store.remove(reference), views.forgetReference(id)))
  }
  return yield* Effect.orDie(views.prune(Duration.toSeconds(olderThan)))
})
