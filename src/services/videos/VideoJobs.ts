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
import { makeMediaRemovals } from "../media/MediaStore.ts"
import type { RequestRecord } from "../requests/RequestRecord.ts"
import { logFailure } from "../sql/Outage.ts"
import {
  type CreatedJob,
  createJob,
  findKept,
  type KeptVideo,
  type QuotedVideo,
  quoteVideo,
  type RepeatedVideo,
  refundJob,
  type VideoTask
} from "./Create.ts"
import { failJob, holdOf } from "./Finish.ts"
import { toVideo, type Video } from "./VideoObject.ts"
import { run, startRunner, type VideoRunner } from "./VideoRunner.ts"
import { makeVideoServices, type VideoServices } from "./VideoServices.ts"
import { errorOf, Next } from "./VideoState.ts"
import { submit } from "./VideoUpstream.ts"
import type { PageStart } from "./VideoViews.ts"

export type { Video } from "./VideoObject.ts"

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
    readonly create: (task: VideoTask) => Effect.Effect<CreatedVideo, VideoFailure>
    /** What the key's request got from a model that is no longer sold like that; none for any other request. */
    readonly replay: (repeated: RepeatedVideo) => Effect.Effect<Option.Option<CreatedVideo>, IdempotencyConflict>
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

/** Removes deleted clips, also those whose removal failed or was interrupted. */
const startRemovals = Effect.gen(function* () {
  const removals = yield* makeMediaRemovals
  yield* removals.removeAll.pipe(
    Effect.catchAllCause((cause) => logFailure("Deleted clips could not be removed", cause)),
    Effect.repeat(Schedule.spaced(removalEvery)),
    Effect.interruptible,
    Effect.forkScoped
  )
  return removals
})
type Removals = Effect.Effect.Success<typeof startRemovals>

const create = Effect.fnUntraced(
  function* (services: VideoServices, runner: VideoRunner, task: VideoTask) {
    const { record } = task
    const created = yield* createJob(services, task)
    if ("replay" in created) return yield* acceptAgain(services, created.replay, record)
    yield* services.failpoint.reach("after_hold")
    yield* Effect.onError(submitAndAwait(services, runner, created, record), (cause) =>
      Cause.isFailure(cause) ? Effect.void : refundJob(services, created.job.id, holdOf(created.job))
    )
    return { video: toQueuedVideo(created.kept), replayed: false }
    // What is stored and held belongs to the job from its row on. Only waiting for its provider may be interrupted.
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
    const submitted = yield* Effect.either(submit(services, job, record.attempts, picture))
    if (Either.isRight(submitted)) {
      record.add({ type: "answered", route: submitted.right })
      return yield* services.pollDelay(0)
    }
    const failure = submitted.left
    const wasAccepted = yield* failJob(services, job, errorOf(failure), { attempts: record.attempts.list })
    if (wasAccepted === false) yield* Deferred.fail(outcome, failure)
    return Next.Finish()
  })
  yield* run(runner, job, Effect.ensuring(submitJob, Deferred.succeed(outcome, undefined)))
  const { answerVideoWithin } = services.timings
  yield* Effect.interruptible(Effect.timeoutOption(Deferred.await(outcome), answerVideoWithin))
  if (yield* accept(services, job.id)) return
  // It failed at this very moment: the reason follows.
  yield* Effect.interruptible(Deferred.await(outcome))
  return yield* Effect.dieMessage(`video ${job.id} ended without a reason`)
})

const accept = ({ retryBriefly, views }: VideoServices, id: string) =>
  views.accept(id).pipe(Effect.retry(retryBriefly), Effect.orDie, Effect.uninterruptible)

const replay = Effect.fnUntraced(function* (services: VideoServices, repeated: RepeatedVideo) {
  const kept = yield* findKept(services, repeated)
  return yield* Effect.transposeMapOption(kept, (video) => acceptAgain(services, video, repeated.record))
})

const acceptAgain = Effect.fnUntraced(function* (services: VideoServices, kept: KeptVideo, record: RequestRecord) {
  record.note("replayed")
  // It may have failed before its customer knew of it, which freed its key.
  if (!(yield* accept(services, kept.id))) return yield* new IdempotencyConflict()
  return { video: toQueuedVideo(kept), replayed: true }
})

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
  if (after !== undefined && !(yield* Effect.orDie(views.isOf(org, after)))) return yield* new VideoNotFound()
  return (yield* views.list(org, limit, start)).map((view) => toVideo(view, store.link))
}, Effect.uninterruptible)

const deleteVideo = Effect.fn("VideoJobs.delete")(function* (
  services: VideoServices,
  removals: Removals,
  org: OrgId,
  id: string
) {
  const [deleted] = yield* Effect.uninterruptible(Effect.orDie(services.views.delete(org, id)))
  if (deleted === undefined) {
    yield* find(services, org, id)
    return yield* new VideoNotFinished()
  }
  yield* services.failpoint.reach("deletion_committed")
  if (deleted.media !== null) yield* Effect.timeoutOption(removals.remove(deleted.media), removalTimeout)
})

const prune = Effect.fn("VideoJobs.prune")(function* ({ store, views }: VideoServices, olderThan: Duration.Duration) {
  const unneeded = yield* Effect.orDie(views.unneededReferences(1_000))
  for (const { id, reference } of unneeded) {
    yield* Effect.ignoreLogged(Effect.zipRight(store.remove(reference), views.forgetReference(id)))
  }
  return yield* Effect.orDie(views.prune(Duration.toSeconds(olderThan)))
})
