import { SqlError } from "@effect/sql"
import { Data, Duration, Effect, Option, Schema } from "effect"
import { InvalidRequest, PaymentDisputed } from "../../domain/Failure.ts"
import type { Hold } from "../../domain/Hold.ts"
import type { Picture } from "../../domain/Media.ts"
import type { VideoModel } from "../../domain/Model.ts"
import type { OrgId } from "../../domain/Organization.ts"
import type { VideoParams } from "../../domain/VideoRules.ts"
import { clipPrice } from "../../domain/VideoRules.ts"
import { fingerprint, keyFrom } from "../idempotency/Fingerprint.ts"
import type { FirstClaim } from "../idempotency/Idempotency.ts"
import type { RequestRecord } from "../requests/RequestRecord.ts"
import * as Monotonic from "../runtime/Monotonic.ts"
import { isAnnounced, isLockTimeout, NotAsked } from "../sql/Outage.ts"
import * as Outbox from "../webhooks/Outbox.ts"
import { unixSeconds } from "./VideoObject.ts"
import type { VideoServices } from "./VideoServices.ts"
import type { NewJob } from "./VideoSql.ts"
import type { LeasedJob } from "./VideoState.ts"

export interface VideoTask {
  readonly model: VideoModel
  readonly seconds: number
  readonly params: VideoParams
  readonly idempotencyKey: string | undefined
  readonly record: RequestRecord
}

export type RepeatedVideo = Pick<VideoTask, "params" | "idempotencyKey" | "record">

export type QuotedVideo = Pick<VideoTask, "model" | "params" | "seconds">

/** What a replay answers; kept with the idempotency key. */
const KeptVideo = Schema.Struct({
  id: Schema.String,
  model: Schema.String,
  createdAt: Schema.Number,
  seconds: Schema.Number
})
export type KeptVideo = typeof KeptVideo.Type
const decodeKept = Schema.decodeUnknown(KeptVideo)

export interface CreatedJob {
  readonly job: LeasedJob
  readonly kept: KeptVideo
  readonly picture: Picture | undefined
}

/** PostgreSQL's text has neither NUL nor lone surrogates. */
const toStoredPrompt = (text: string): string => text.replaceAll("\u0000", " ").replace(/\p{Cs}/gu, "\ufffd")

/** The row, its hold and its idempotency key in one transaction. A repeated request conflicts until the scope closes. */
export const createJob = Effect.fnUntraced(function* (services: VideoServices, task: VideoTask) {
  const { ids, store, timeoutSeconds } = services
  const { params, model, record, seconds } = task
  const { facts } = record
  const { key, org } = facts.caller
  facts.trace?.resolve(model.id)
  const { price, webhookUrl } = yield* quoteVideo(services, task)
  const claim = yield* claimKey(services, task)
  if (claim?._tag === "Replay") return { replay: yield* Effect.orDie(decodeKept(claim.result)) }
  const [reference] = params.references
  const id = ids.prefixed("vid")
  // The same id lets the charge find the log's row.
  const hold = { id: facts.id, org, key, amount: price }
  const lease = ids.uuid()
  const stored = yield* storeReference(services, task, hold)
  record.add({ type: "held", hold: hold.id })
  const job: NewJob = {
    id,
    org,
    key,
    hold: hold.id,
    requestId: facts.requestId,
    endUser: record.summary.endUser,
    tag: facts.tag,
    trace: facts.trace?.traceparent,
    model: model.id,
    seconds,
    price,
    prompt: toStoredPrompt(params.prompt),
    referenceUrl: reference?._tag === "Url" ? reference.url : undefined,
    reference: stored?.name,
    webhookUrl,
    timeoutSeconds,
    lease
  }
  // The job may have been written by a transaction without an answer.
  let mayBeWritten = false
  const writing = Effect.tapErrorTag(writeJob(services, record, hold, job, claim), "SqlError", (error) =>
    Effect.sync(() => (mayBeWritten ||= !isLockTimeout(error)))
  )
  const written = yield* inTime(services, org, writing).pipe(
    Effect.tapError(() => {
      if (mayBeWritten) return refundJob(services, id, hold, stored?.name)
      return stored === undefined ? Effect.void : Effect.ignoreLogged(store.remove(stored.name))
    }),
    Effect.catchTag("SqlError", "ParseError", Effect.die),
    Effect.uninterruptible
  )
  return { ...written, picture: stored?.picture } satisfies CreatedJob
})

export const quoteVideo = Effect.fnUntraced(function* (
  services: VideoServices,
  { model, params, seconds }: QuotedVideo
) {
  const webhookUrl = yield* checkWebhook(services, params)
  return { price: clipPrice(model.pricing, seconds), webhookUrl }
})

/** As far as can be known without looking the name up. */
const checkWebhook = Effect.fnUntraced(function* ({ fetcher }: VideoServices, { webhookUrl: url }: VideoParams) {
  if (url === undefined) return undefined
  yield* Effect.mapError(
    fetcher.check({ url, from: "customer" }),
    () =>
      new InvalidRequest({
        message: "`webhook_url` must be an http or https URL on a public host, on the scheme's default port.",
        param: "webhook_url"
      })
  )
  return new URL(url).href
})

const claimKey = Effect.fnUntraced(function* (
  { idempotency }: VideoServices,
  { params, idempotencyKey, record }: RepeatedVideo
) {
  if (idempotencyKey === undefined) return undefined
  const { model, prompt, seconds, webhookUrl: webhook_url } = params
  return yield* idempotency.claim({
    org: record.facts.caller.org,
    endpoint: "videos",
    key: yield* keyFrom(idempotencyKey),
    fingerprint: yield* fingerprint({ model, prompt, seconds, webhook_url }, params.references)
  })
})

/** What the key's request got; none for any other request. */
export const findKept = Effect.fnUntraced(function* (services: VideoServices, repeated: RepeatedVideo) {
  const claim = yield* Effect.catchTag(claimKey(services, repeated), "InvalidRequest", () => Effect.succeed(undefined))
  return claim?._tag === "Replay" ? Option.some(yield* Effect.orDie(decodeKept(claim.result))) : Option.none()
}, Effect.scoped)

const storeReference = Effect.fnUntraced(function* (
  services: VideoServices,
  { params, record }: VideoTask,
  hold: Hold
) {
  const { references, store } = services
  const [reference] = params.references
  if (reference?._tag !== "Bytes") return undefined
  yield* checkFunds(services, record, hold)
  const [picture] = yield* references.load([reference], "image")
  if (picture === undefined) return undefined
  const { bytes: body, type } = picture
  return { picture, name: yield* Effect.orDie(store.put({ type, visibility: "private", body })) }
})

class RolledBack extends Data.TaggedError("RolledBack")<{}> {}

/** Fails as the hold would; holds nothing. */
const checkFunds = (services: VideoServices, record: RequestRecord, hold: Hold) => {
  const placing = Effect.zipRight(placeHold(services, record, hold), new RolledBack())
  return inTime(services, hold.org, services.sql.withTransaction(placing)).pipe(
    Effect.catchTag("RolledBack", () => Effect.void),
    Effect.catchTag("SqlError", Effect.die)
  )
}

const placeHold = ({ ledger }: VideoServices, { facts }: RequestRecord, hold: Hold) => {
  const { concurrency, isDisputed = false, isOrgCapped } = facts.caller
  return isDisputed ? new PaymentDisputed() : ledger.job.hold(hold, concurrency, isOrgCapped)
}

const writeJob = (
  services: VideoServices,
  record: RequestRecord,
  hold: Hold,
  job: NewJob,
  claim: FirstClaim | undefined
) => {
  const { rows, sql, views } = services
  const { id, model, org, seconds, webhookUrl } = job
  const writing = Effect.gen(function* () {
    yield* placeHold(services, record, hold)
    yield* rows.insert(job)
    if (webhookUrl !== undefined) yield* Outbox.secretOf(sql, org)
    const createdAt = yield* views.createdAt(id)
    const leased = yield* rows.find(job)
    if (leased === undefined || createdAt === undefined) return yield* Effect.dieMessage("a video was not written")
    const kept: KeptVideo = { id, model, createdAt: unixSeconds(createdAt), seconds }
    if (claim !== undefined) yield* claim.bind(kept, hold.id)
    record.facts.trace?.admit()
    return { job: leased, kept }
  })
  return sql.withTransaction(writing)
}

const tooBusy = new SqlError.SqlError({ cause: new NotAsked(), message: "too many others write jobs" })

/** Begins no transaction once the request's time is over. */
const inTime = Effect.fnUntraced(function* <A, E>(
  { inTurn, retryBriefly, timings }: VideoServices,
  org: OrgId,
  transaction: Effect.Effect<A, E>
) {
  const latest = (yield* Monotonic.millis) + Duration.toMillis(timings.settleWithin)
  const startInTime = Effect.flatMap(
    Monotonic.millis,
    (now): Effect.Effect<A, E | SqlError.SqlError> => (now > latest ? Effect.fail(tooBusy) : transaction)
  )
  return yield* Effect.retry(inTurn(org)(startInTime), {
    schedule: retryBriefly,
    while: (error) => error instanceof SqlError.SqlError && !isAnnounced(error)
  })
})

export const refundJob = Effect.fnUntraced(function* (
  services: VideoServices,
  video: string,
  { id: hold, key, org }: Hold,
  reference?: string
) {
  const { refunds } = services
  yield* refunds.refund({ id: hold, org, key }, video)
  const removed = reference === undefined ? Effect.void : removeUnwritten(services, video, reference)
  yield* refunds.runAfter(hold, Effect.ignoreLogged(removed))
})

/** A job that was written removes its reference itself. */
const removeUnwritten = Effect.fnUntraced(function* (
  { store, views }: VideoServices,
  video: string,
  reference: string
) {
  if ((yield* views.createdAt(video)) === undefined) yield* store.remove(reference)
})
