import { SqlClient } from "@effect/sql"
import { Context, Deferred, Duration, Effect, Either, Layer, Schema } from "effect"
import {
  type IdempotencyConflict,
  type InsufficientCredits,
  InvalidRequest,
  type RoutingFailure,
  type SpendLimitReached,
  VideoNotFound
} from "../domain/Failure.ts"
import type { VideoModel } from "../domain/Model.ts"
import type { OrgId } from "../domain/Organization.ts"
import type { VideoAsk, VideoStatus } from "../domain/Video.ts"
import { clipPrice } from "../domain/VideoRules.ts"
import { Failpoint } from "./Failpoint.ts"
import { Idempotency } from "./Idempotency.ts"
import { Ids } from "./Ids.ts"
import { fingerprint } from "./idempotency/Fingerprint.ts"
import { keyFrom } from "./idempotency/Key.ts"
import { Ledger } from "./Ledger.ts"
import { MediaStore } from "./MediaStore.ts"
import { References } from "./References.ts"
import type { RequestRecord } from "./RequestRecord.ts"
import * as Finish from "./videos/Finish.ts"
import * as Follow from "./videos/Follow.ts"
import * as Rows from "./videos/Rows.ts"
import * as Submit from "./videos/Submit.ts"
import * as Worker from "./videos/Worker.ts"

export interface VideoJob {
  readonly model: VideoModel
  /** What the model's rules made of the ask; it is what is held and charged for. */
  readonly seconds: number
  readonly ask: VideoAsk
  readonly idempotencyKey: string | undefined
  readonly record: RequestRecord
}

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

export type VideoFailure =
  | InvalidRequest
  | IdempotencyConflict
  | InsufficientCredits
  | SpendLimitReached
  | RoutingFailure

/** How long a customer waits for a provider to take the render. */
const answerWithin = "10 seconds"

/** What an idempotency key keeps: the first answer. */
const Kept = Schema.Struct({
  id: Schema.String,
  model: Schema.String,
  createdAt: Schema.Number,
  seconds: Schema.Number
})
type Kept = typeof Kept.Type
const decodeKept = Schema.decodeUnknown(Kept)

const unixSeconds = (date: Date): number => Math.floor(date.getTime() / 1000)

/** PostgreSQL's text has no NUL, and no half of a surrogate pair. */
const keepable = (text: string): string => text.replaceAll("\u0000", " ").replace(/\p{Cs}/gu, "\ufffd")

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
      job: VideoJob
    ) => Effect.Effect<{ readonly video: Video; readonly replayed: boolean }, VideoFailure>
    readonly find: (org: OrgId, id: string) => Effect.Effect<Video, VideoNotFound>
    /** Newest first. */
    readonly list: (org: OrgId, limit: number) => Effect.Effect<ReadonlyArray<Video>>
    /** Removes finished jobs older than the age, and references that no job needs; clips stay. Says how many jobs. */
    readonly prune: (olderThan: Duration.Duration) => Effect.Effect<number>
  }
>() {
  static readonly layer = (options: { readonly timeout: Duration.Duration }) =>
    Layer.scoped(VideoJobs, make(Duration.toSeconds(options.timeout)))
}

const make = Effect.fnUntraced(function* (timeoutSeconds: number) {
  const sql = yield* SqlClient.SqlClient
  const failpoint = yield* Failpoint
  const idempotency = yield* Idempotency
  const ids = yield* Ids
  const ledger = yield* Ledger
  const references = yield* References
  const store = yield* MediaStore
  const rows = Rows.make(sql)
  const underway = new Set<string>()
  const finish = yield* Finish.make(rows)
  const submit = yield* Submit.make(rows, underway)
  const worker = yield* Worker.make(rows, yield* Follow.make(rows, submit, finish), underway)

  const shown = (clip: Rows.Clip): Video => ({
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

  const claimFor = Effect.fnUntraced(function* ({ ask, idempotencyKey, record }: VideoJob) {
    if (idempotencyKey === undefined) return undefined
    const { model, prompt, seconds } = ask
    return yield* idempotency.claim({
      org: record.caller.org,
      endpoint: "videos",
      key: yield* keyFrom(idempotencyKey),
      fingerprint: fingerprint({ model, prompt, seconds }, ask.references)
    })
  })

  /** The name of a reference that came with the request. */
  const keptReference = Effect.fnUntraced(function* (given: VideoAsk["references"][number] | undefined) {
    if (given?._tag !== "Bytes") return undefined
    const [picture] = yield* references.load([given], "image")
    if (picture === undefined) return undefined
    return yield* Effect.orDie(store.put({ type: picture.type, visibility: "private", body: picture.bytes }))
  })

  const write = Effect.fnUntraced(function* (job: VideoJob) {
    const { ask, model, record, seconds } = job
    const { key, org } = record.caller
    const claim = yield* claimFor(job)
    if (claim?._tag === "Replay") return { replay: yield* Effect.orDie(decodeKept(claim.result)) }
    const [given] = ask.references
    const reference = yield* keptReference(given)
    const price = clipPrice(model.pricing, seconds)
    const id = ids.prefixed("vid")
    const hold = ids.uuid()
    const lease = ids.uuid()
    record.hold = hold
    const inserted = sql.withTransaction(
      Effect.gen(function* () {
        yield* ledger.job.hold({ id: hold, org, key, amount: price })
        yield* rows.insert({
          id,
          org,
          key,
          hold,
          requestId: record.requestId,
          model: model.id,
          seconds,
          price,
          prompt: keepable(ask.prompt),
          referenceUrl: given?._tag === "Url" ? given.url : undefined,
          reference,
          timeoutSeconds,
          lease
        })
        const [clip] = yield* rows.clip(id)
        const [work] = yield* rows.held(id, lease)
        if (work === undefined || clip === undefined) return yield* Effect.dieMessage("a video was not written")
        const kept: Kept = { id, model: model.id, createdAt: unixSeconds(clip.createdAt), seconds }
        if (claim !== undefined) yield* claim.bind(kept, hold)
        return { work, kept }
      })
    )
    const written = yield* inserted.pipe(
      Effect.retry({ schedule: Finish.brief, while: ({ _tag }) => _tag === "SqlError" }),
      // After anything else the job may have been written all the same.
      Effect.tapError(({ _tag }) =>
        reference === undefined || _tag === "SqlError" || _tag === "ParseError"
          ? Effect.void
          : Effect.ignoreLogged(store.remove(reference))
      ),
      Effect.catchTag("SqlError", "ParseError", Effect.die),
      Effect.uninterruptible
    )
    yield* failpoint.reach("after_hold")
    return written
  })

  const create = Effect.fnUntraced(function* (job: VideoJob) {
    const { record } = job
    const written = yield* write(job)
    if ("replay" in written) {
      record.notes.add("replayed")
      return { video: queued(written.replay), replayed: true }
    }
    const { kept, work } = written
    const outcome = yield* Deferred.make<void, VideoFailure>()
    const begun = Effect.gen(function* () {
      const submitted = yield* Effect.either(submit(work, record.attempts))
      if (Either.isRight(submitted)) {
        record.route = submitted.right
        return { restMs: 2_000 }
      }
      const failure = submitted.left
      yield* finish.fail(work, Finish.errorOf(failure), { attempts: record.attempts.list })
      yield* Deferred.fail(outcome, failure)
      return "over" as const
    })
    yield* worker.adopt(work, Effect.ensuring(begun, Deferred.succeed(outcome, undefined)))
    yield* Effect.interruptible(Effect.timeoutOption(Deferred.await(outcome), answerWithin))
    const told = yield* rows.accept(kept.id).pipe(Effect.retry(Finish.brief), Effect.orDie, Effect.uninterruptible)
    // It failed in this very moment: the reason is on its way.
    if (!told) {
      yield* Effect.interruptible(Deferred.await(outcome))
      return yield* Effect.dieMessage(`video ${kept.id} ended without a reason`)
    }
    return { video: queued(kept), replayed: false }
  }, Effect.scoped)

  const prune = Effect.fn("VideoJobs.prune")(function* (olderThan: Duration.Duration) {
    const unneeded = yield* Effect.orDie(rows.unneeded(1_000))
    for (const { id, reference } of unneeded) {
      yield* Effect.ignoreLogged(Effect.zipRight(store.remove(reference), rows.dropped([id])))
    }
    return yield* Effect.orDie(rows.prune(Duration.toSeconds(olderThan)))
  })

  return VideoJobs.of({
    create,
    prune,
    find: Effect.fn("VideoJobs.find")(function* (org: OrgId, id: string) {
      const clip = yield* Effect.orDie(rows.find(org, id))
      return clip === undefined ? yield* new VideoNotFound() : shown(clip)
    }, Effect.uninterruptible),
    list: Effect.fn("VideoJobs.list")(
      (org: OrgId, limit: number) => Effect.map(Effect.orDie(rows.list(org, limit)), (clips) => clips.map(shown)),
      Effect.uninterruptible
    )
  })
})
