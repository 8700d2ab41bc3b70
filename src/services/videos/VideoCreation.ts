import { SqlError } from "@effect/sql"
import { Data, Duration, Effect, Option, Schema } from "effect"
import { InvalidRequest } from "../../domain/Failure.ts"
import type { Hold } from "../../domain/Hold.ts"
import type { Picture } from "../../domain/Media.ts"
import type { VideoModel } from "../../domain/Model.ts"
import type { OrgId } from "../../domain/Organization.ts"
import { clipPrice, type VideoParams } from "../../domain/VideoRules.ts"
import { type FirstClaim, fingerprint, keyFrom } from "../idempotency/Idempotency.ts"
import { termsOf } from "../ledger/HoldPlacement.ts"
import type { RequestRecord } from "../requests/RequestRecord.ts"
import { monotonicMillis } from "../runtime/System.ts"
import { isAnnounced, isLockTimeout, NotSent } from "../sql/Outage.ts"
import { webhookSecretOf } from "../webhooks/WebhookEvents.ts"
import type { VideoServices } from "./VideoServices.ts"
import type { NewJob } from "./VideoSql.ts"
import { type LeasedJob, unixSeconds } from "./VideoState.ts"

export interface VideoTask {
  readonly model: VideoModel
  readonly seconds: number
  readonly params: VideoParams
  readonly idempotencyKey: string | undefined
  readonly record: RequestRecord
}

export type RepeatedVideo = Pick<VideoTask, "params" | "idempotencyKey" | "record">

export type QuotedVideo = Pick<VideoTask, "model" | "params" | "seconds">

/** The result stored with an idempotency key. */
const StoredVideo = Schema.Struct({
  id: Schema.String,
  model: Schema.String,
  createdAt: Schema.Number,
  seconds: Schema.Number
})
export type StoredVideo = typeof StoredVideo.Type
const decodeStoredVideo = Schema.decodeUnknown(StoredVideo)

export interface CreatedJob {
  readonly job: LeasedJob
  readonly storedVideo: StoredVideo
  readonly picture: Picture | undefined
}

/** PostgreSQL rejects NUL and lone surrogates. */
const toStoredPrompt = (text: string): string => text.replaceAll("\u0000", " ").replace(/\p{Cs}/gu, "\ufffd")

/**
 * Writes the job, its hold and its idempotency key in one transaction. Requests with the same key conflict until the
 * scope closes.
 */
export const createJob = Effect.fnUntraced(function* (services: VideoServices, task: VideoTask) {
  const { ids, store, timeoutSeconds } = services
  const { params, model, record, seconds } = task
  const { facts } = record
  const { key, org } = facts.caller
  facts.trace?.resolve(model.id)
  const { price, webhookUrl } = yield* quoteVideo(services, task)
  const claim = yield* claimKey(services, task)
  if (claim?._tag === "Replay") return { replay: yield* Effect.orDie(decodeStoredVideo(claim.result)) }
  const [reference] = params.references
  const id = ids.prefixed("vid")
  // The log row gets the same id, so the charge finds the row.
  const hold = { id: facts.id, org, key, amount: price }
  const lease = ids.uuid()
  const storedReference = yield* storeReference(services, task, hold)
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
    reference: storedReference?.name,
    webhookUrl,
    timeoutSeconds,
    lease
  }
  // A failed transaction may have committed without its answer, but not if it timed out waiting for a lock.
  let mayBeWritten = false
  const writeAll = Effect.tapErrorTag(writeJob(services, record, hold, job, claim), "SqlError", (error) =>
    Effect.sync(() => (mayBeWritten ||= !isLockTimeout(error)))
  )
  const createdJob = yield* withDeadline(services, org, writeAll).pipe(
    Effect.tapError(() => {
      if (mayBeWritten) return refundJob(services, id, hold, storedReference?.name)
      return storedReference === undefined ? Effect.void : Effect.ignoreLogged(store.remove(storedReference.name))
    }),
    Effect.catchTag("SqlError", "ParseError", Effect.die),
    Effect.uninterruptible
  )
  return { ...createdJob, picture: storedReference?.picture } satisfies CreatedJob
})

export const quoteVideo = Effect.fnUntraced(function* (
  services: VideoServices,
  { model, params, seconds }: QuotedVideo
) {
  const webhookUrl = yield* checkWebhook(services, params)
  return { price: clipPrice(model.pricing, seconds), webhookUrl }
})

/** Returns the normalized webhook URL. Does not look up its host name. */
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

/** Returns the stored result of a repeated request, or none. */
export const findStoredVideo = Effect.fnUntraced(function* (services: VideoServices, repeated: RepeatedVideo) {
  const claim = yield* Effect.catchTag(claimKey(services, repeated), "InvalidRequest", () => Effect.succeed(undefined))
  return claim?._tag === "Replay" ? Option.some(yield* Effect.orDie(decodeStoredVideo(claim.result))) : Option.none()
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

/** Fails if the hold would be refused. Places no hold. */
const checkFunds = (services: VideoServices, record: RequestRecord, hold: Hold) => {
  const placeAndRollBack = Effect.zipRight(placeHold(services, record, hold), new RolledBack())
  return withDeadline(services, hold.org, services.sql.withTransaction(placeAndRollBack)).pipe(
    Effect.catchTag("RolledBack", () => Effect.void),
    Effect.catchTag("SqlError", Effect.die)
  )
}

const placeHold = ({ ledger }: VideoServices, { facts }: RequestRecord, hold: Hold) =>
  ledger.job.hold(hold, termsOf(facts.caller))

const writeJob = (
  services: VideoServices,
  record: RequestRecord,
  hold: Hold,
  job: NewJob,
  claim: FirstClaim | undefined
) => {
  const { rows, sql, views } = services
  const { id, model, org, seconds, webhookUrl } = job
  const writeAll = Effect.gen(function* () {
    yield* placeHold(services, record, hold)
    yield* rows.insert(job)
    if (webhookUrl !== undefined) yield* webhookSecretOf(sql, org)
    const createdAt = yield* views.createdAt(id)
    const leasedJob = yield* rows.find(job)
    if (leasedJob === undefined || createdAt === undefined) return yield* Effect.dieMessage("the video was not written")
    const storedVideo: StoredVideo = { id, model, createdAt: unixSeconds(createdAt), seconds }
    if (claim !== undefined) yield* claim.bind(storedVideo, hold.id)
    record.facts.trace?.admit()
    return { job: leasedJob, storedVideo }
  })
  return sql.withTransaction(writeAll)
}

const busyError = new SqlError.SqlError({
  cause: new NotSent(),
  message: "too many concurrent transactions write jobs"
})

/** Retries the transaction, but starts none after the deadline. */
const withDeadline = Effect.fnUntraced(function* <A, E>(
  { withOrgPermit, settleRetries, timings }: VideoServices,
  org: OrgId,
  transaction: Effect.Effect<A, E>
) {
  const deadline = (yield* monotonicMillis) + Duration.toMillis(timings.settleWithin)
  const startInTime = Effect.flatMap(
    monotonicMillis,
    (now): Effect.Effect<A, E | SqlError.SqlError> => (now > deadline ? Effect.fail(busyError) : transaction)
  )
  return yield* Effect.retry(withOrgPermit(org)(startInTime), {
    schedule: settleRetries,
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
  const removal = reference === undefined ? Effect.void : removeUnwritten(services, video, reference)
  yield* refunds.runAfter(hold, Effect.ignoreLogged(removal))
})

/** Removes the reference if the job was not written. A written job removes it when it ends. */
const removeUnwritten = Effect.fnUntraced(function* (
  { store, views }: VideoServices,
  video: string,
  reference: string
) {
  if ((yield* views.createdAt(video)) === undefined) yield* store.remove(reference)
})
