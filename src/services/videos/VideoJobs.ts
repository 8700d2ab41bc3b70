import { Cause, Context, Deferred, Duration, Effect, Either, Layer } from "effect"
import { IdempotencyConflict, type RoutingFailure, VideoNotFound } from "../../domain/Failure.ts"
import type { OrgId } from "../../domain/Organization.ts"
import type { VideoStatus } from "../../domain/Video.ts"
import { MediaStore } from "../media/MediaStore.ts"
import { Failpoint } from "../runtime/Failpoint.ts"
import type { RequestRecord } from "../telemetry/RequestRecord.ts"
import { VideoAdvance } from "./Advance.ts"
import { type Created, type CreateFailure, type Kept, unixSeconds, VideoCreate, type VideoCreation } from "./Create.ts"
import { errorOf } from "./Errors.ts"
import { brief, holdOf, VideoFinish, VideoTurns } from "./Finish.ts"
import { pollDelay } from "./PollDelay.ts"
import { VideoSubmit } from "./Submit.ts"
import { VideoSql } from "./VideoSql.ts"
import { type VideoView, VideoViews } from "./VideoViews.ts"
import { VideoWorker } from "./Worker.ts"

/** A render as its organization sees it. Times are Unix seconds. */
export interface Video {
  readonly id: string
  readonly model: string
  readonly status: VideoStatus
  readonly createdAt: number
  readonly completedAt: number | undefined
  readonly seconds: number
  readonly url: string | undefined
  readonly error: { readonly code: string; readonly message: string } | undefined
  readonly sandbox: boolean
}

export type VideoFailure = CreateFailure | RoutingFailure

export interface Options {
  /** From a job's creation to its failure, where it has not come to a clip. */
  readonly timeout: Duration.DurationInput
  /** How long a customer waits for a provider to take the render; 10 seconds where undefined. */
  readonly answerWithin?: Duration.DurationInput | undefined
  /** The longest that a job which another instance left is not seen; 5 seconds where undefined. */
  readonly lookEvery?: Duration.DurationInput | undefined
}

/**
 * Renders as jobs of the database: any instance can carry on what another began, and each job is charged once or not
 * at all.
 */
export class VideoJobs extends Context.Tag("gateway/VideoJobs")<
  VideoJobs,
  {
    /**
     * Writes the job with its hold and submits it. Fails where that came to nothing within the customer's patience:
     * then there is no job, and nothing is held.
     */
    readonly create: (
      job: VideoCreation
    ) => Effect.Effect<{ readonly video: Video; readonly replayed: boolean }, VideoFailure>
    readonly find: (org: OrgId, id: string) => Effect.Effect<Video, VideoNotFound>
    /** Newest first. */
    readonly list: (org: OrgId, limit: number) => Effect.Effect<ReadonlyArray<Video>>
    /** Removes finished jobs older than the age, and references that no job needs; clips stay. Says how many jobs. */
    readonly prune: (olderThan: Duration.Duration) => Effect.Effect<number>
  }
>() {
  static readonly layer = ({ answerWithin = "10 seconds", lookEvery = "5 seconds", timeout }: Options) =>
    Layer.effect(
      VideoJobs,
      Effect.suspend(() => make(answerWithin))
    ).pipe(
      Layer.provide(Layer.mergeAll(VideoCreate.layer(Duration.toSeconds(timeout)), VideoWorker.layer(lookEvery))),
      Layer.provide(VideoAdvance.layer),
      Layer.provide(Layer.mergeAll(VideoSubmit.layer, VideoFinish.layer)),
      Layer.provide(Layer.mergeAll(VideoSql.layer, VideoViews.layer, VideoTurns.layer))
    )
}

const make = Effect.fnUntraced(function* (answerWithin: Duration.DurationInput) {
  const failpoint = yield* Failpoint
  const store = yield* MediaStore
  const views = yield* VideoViews
  const creation = yield* VideoCreate
  const finish = yield* VideoFinish
  const { submit } = yield* VideoSubmit
  const worker = yield* VideoWorker

  const shown = (clip: VideoView): Video => ({
    id: clip.id,
    model: clip.model,
    status: clip.status,
    createdAt: unixSeconds(clip.createdAt),
    completedAt: clip.completedAt === null ? undefined : unixSeconds(clip.completedAt),
    seconds: clip.seconds,
    url: clip.media === null ? undefined : store.link(clip.media),
    error: clip.errorCode === null ? undefined : { code: clip.errorCode, message: clip.errorMessage ?? "" },
    sandbox: clip.sandbox
  })

  const queued = (kept: Kept): Video => ({
    ...kept,
    status: "queued",
    completedAt: undefined,
    url: undefined,
    error: undefined,
    sandbox: false
  })

  const accept = (id: string) => views.accept(id).pipe(Effect.retry(brief), Effect.orDie, Effect.uninterruptible)

  /** The job in its customer's presence. */
  const begin = Effect.fnUntraced(function* ({ picture, work }: Created, record: RequestRecord) {
    const outcome = yield* Deferred.make<void, VideoFailure>()
    const begun = Effect.gen(function* () {
      const submitted = yield* Effect.either(submit(work, record.attempts, picture))
      if (Either.isRight(submitted)) {
        record.route = submitted.right
        return yield* pollDelay(0)
      }
      const failure = submitted.left
      const told = yield* finish.fail(work, errorOf(failure), { attempts: record.attempts.list })
      if (told === false) yield* Deferred.fail(outcome, failure)
      return "over" as const
    })
    yield* worker.adopt(work, Effect.ensuring(begun, Deferred.succeed(outcome, undefined)))
    yield* Effect.interruptible(Effect.timeoutOption(Deferred.await(outcome), answerWithin))
    if (yield* accept(work.id)) return
    // It failed in this very moment: the reason is on its way.
    yield* Effect.interruptible(Deferred.await(outcome))
    return yield* Effect.dieMessage(`video ${work.id} ended without a reason`)
  })

  const create = Effect.fnUntraced(function* (job: VideoCreation) {
    const { record } = job
    const placed = yield* creation.create(job)
    if ("replay" in placed) {
      record.notes.add("replayed")
      // It may have failed in this very moment, untold: its key is free again.
      if (!(yield* accept(placed.replay.id))) return yield* new IdempotencyConflict()
      return { video: queued(placed.replay), replayed: true }
    }
    yield* failpoint.reach("after_hold")
    yield* Effect.onError(begin(placed, record), (cause) =>
      Cause.isFailure(cause) ? Effect.void : creation.disown(placed.work.id, holdOf(placed.work))
    )
    return { video: queued(placed.kept), replayed: false }
  }, Effect.scoped)

  const prune = Effect.fn("VideoJobs.prune")(function* (olderThan: Duration.Duration) {
    const unneeded = yield* Effect.orDie(views.unneeded(1_000))
    for (const { id, reference } of unneeded) {
      yield* Effect.ignoreLogged(Effect.zipRight(store.remove(reference), views.dropped(id)))
    }
    return yield* Effect.orDie(views.prune(Duration.toSeconds(olderThan)))
  })

  return VideoJobs.of({
    create,
    prune,
    find: Effect.fn("VideoJobs.find")(function* (org: OrgId, id: string) {
      const clip = yield* Effect.orDie(views.find(org, id))
      return clip === undefined ? yield* new VideoNotFound() : shown(clip)
    }, Effect.uninterruptible),
    list: Effect.fn("VideoJobs.list")(
      (org: OrgId, limit: number) => Effect.map(Effect.orDie(views.list(org, limit)), (found) => found.map(shown)),
      Effect.uninterruptible
    )
  })
})
