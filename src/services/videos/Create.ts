import { SqlClient, SqlError } from "@effect/sql"
import { Data, Duration, Effect, Schema } from "effect"
import { InvalidRequest, PaymentDisputed } from "../../domain/Failure.ts"
import type { Hold } from "../../domain/Hold.ts"
import type { Picture } from "../../domain/Media.ts"
import type { VideoModel } from "../../domain/Model.ts"
import type { OrgId } from "../../domain/Organization.ts"
import type { VideoParams } from "../../domain/VideoRules.ts"
import { clipPrice } from "../../domain/VideoRules.ts"
import { fingerprint, keyFrom } from "../idempotency/Fingerprint.ts"
import { Idempotency } from "../idempotency/Idempotency.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { Refunds } from "../ledger/Refunds.ts"
import { Fetcher } from "../media/Fetcher.ts"
import { MediaStore } from "../media/MediaStore.ts"
import { ReferenceImages } from "../media/ReferenceImages.ts"
import type { RequestRecord } from "../requests/RequestRecord.ts"
import { Ids } from "../runtime/Ids.ts"
import type { KeyedSemaphore } from "../runtime/KeyedSemaphore.ts"
import * as Monotonic from "../runtime/Monotonic.ts"
import { backoffFor } from "../runtime/Schedules.ts"
import { Timings } from "../runtime/Timings.ts"
import { isAnnounced, isLockTimeout, NotAsked } from "../sql/Outage.ts"
import * as Outbox from "../webhooks/Outbox.ts"
import { unixSeconds } from "./VideoObject.ts"
import type { VideoSql } from "./VideoSql.ts"
import type { LeasedJob } from "./VideoState.ts"
import { makeVideoViews } from "./VideoViews.ts"

export type RepeatedCreation = Pick<VideoCreation, "params" | "idempotencyKey" | "record">

export interface VideoCreation {
  readonly model: VideoModel
  readonly seconds: number
  readonly params: VideoParams
  readonly idempotencyKey: string | undefined
  readonly record: RequestRecord
}

export type QuotedVideo = Pick<VideoCreation, "model" | "params" | "seconds">

/** What a replay answers; kept with the idempotency key. */
const KeptVideo = Schema.Struct({
  id: Schema.String,
  model: Schema.String,
  createdAt: Schema.Number,
  seconds: Schema.Number
})
export type KeptVideo = typeof KeptVideo.Type
const decodeKept = Schema.decodeUnknown(KeptVideo)

/** PostgreSQL's text has neither NUL nor lone surrogates. */
const toStoredPrompt = (text: string): string => text.replaceAll("\u0000", " ").replace(/\p{Cs}/gu, "\ufffd")

class RolledBack extends Data.TaggedError("RolledBack")<{}> {}

const tooBusy = new SqlError.SqlError({ cause: new NotAsked(), message: "too many others write jobs" })

/** The row, its hold and its idempotency key in one transaction. */
export const makeCreate = Effect.fnUntraced(function* (rows: VideoSql, inTurn: KeyedSemaphore, timeoutSeconds: number) {
  const fetcher = yield* Fetcher
  const refunds = yield* Refunds
  const sql = yield* SqlClient.SqlClient
  const idempotency = yield* Idempotency
  const ids = yield* Ids
  const ledger = yield* Ledger
  const references = yield* ReferenceImages
  const store = yield* MediaStore
  const { settleWithin } = yield* Timings
  const views = makeVideoViews(sql)

  /** As far as can be known without looking the name up. */
  const checkWebhook = ({ webhookUrl: url }: VideoParams) =>
    url === undefined
      ? Effect.succeed(undefined)
      : fetcher.check({ url, from: "customer" }).pipe(
          Effect.map(() => new URL(url).href),
          Effect.mapError(
            () =>
              new InvalidRequest({
                message: "`webhook_url` must be an http or https URL on a public host, on the scheme's default port.",
                param: "webhook_url"
              })
          )
        )

  const quote = ({ model, params, seconds }: QuotedVideo) =>
    Effect.map(checkWebhook(params), (webhookUrl) => ({ price: clipPrice(model.pricing, seconds), webhookUrl }))

  const claimKey = Effect.fnUntraced(function* ({ params, idempotencyKey, record }: RepeatedCreation) {
    if (idempotencyKey === undefined) return undefined
    const { model, prompt, seconds, webhookUrl: webhook_url } = params
    return yield* idempotency.claim({
      org: record.facts.caller.org,
      endpoint: "videos",
      key: yield* keyFrom(idempotencyKey),
      fingerprint: yield* fingerprint({ model, prompt, seconds, webhook_url }, params.references)
    })
  })

  /** Begins no transaction once the request's time is over. */
  const inTime = Effect.fnUntraced(function* <A, E>(org: OrgId, transaction: Effect.Effect<A, E>) {
    const latest = (yield* Monotonic.millis) + Duration.toMillis(settleWithin)
    const startInTime = Effect.flatMap(
      Monotonic.millis,
      (now): Effect.Effect<A, E | SqlError.SqlError> => (now > latest ? Effect.fail(tooBusy) : transaction)
    )
    return yield* Effect.retry(inTurn(org)(startInTime), {
      schedule: backoffFor(settleWithin),
      while: (error) => error instanceof SqlError.SqlError && !isAnnounced(error)
    })
  })

  const placeHold = (hold: Hold, { facts }: RequestRecord) => {
    const { concurrency, isDisputed = false, isOrgCapped } = facts.caller
    return isDisputed ? new PaymentDisputed() : ledger.job.hold(hold, concurrency, isOrgCapped)
  }

  const checkFunds = (hold: Hold, record: RequestRecord) =>
    inTime(hold.org, sql.withTransaction(Effect.zipRight(placeHold(hold, record), new RolledBack()))).pipe(
      Effect.catchTag("RolledBack", () => Effect.void),
      Effect.catchTag("SqlError", Effect.die)
    )

  const storeReference = Effect.fnUntraced(function* ({ params, record }: VideoCreation, hold: Hold) {
    const [reference] = params.references
    if (reference?._tag !== "Bytes") return undefined
    yield* checkFunds(hold, record)
    const [picture] = yield* references.load([reference], "image")
    if (picture === undefined) return undefined
    const { bytes: body, type } = picture
    return { picture, name: yield* Effect.orDie(store.put({ type, visibility: "private", body })) }
  })

  const refundJob = (video: string, { id: hold, key, org }: Hold, reference?: string) => {
    const removed =
      reference === undefined
        ? Effect.void
        : Effect.flatMap(views.createdAt(video), (at) => (at === undefined ? store.remove(reference) : Effect.void))
    return Effect.zipRight(
      refunds.refund({ id: hold, org, key }, video),
      refunds.runAfter(hold, Effect.ignoreLogged(removed))
    )
  }

  /** A repeated request conflicts until the scope closes. */
  const create = Effect.fnUntraced(function* (creation: VideoCreation) {
    const { params, model, record, seconds } = creation
    const { key, org } = record.facts.caller
    record.facts.trace?.resolve(model.id)
    const { price, webhookUrl } = yield* quote(creation)
    const claim = yield* claimKey(creation)
    if (claim?._tag === "Replay") return { replay: yield* Effect.orDie(decodeKept(claim.result)) }
    const [reference] = params.references
    const id = ids.prefixed("vid")
    // The same id lets the charge find the log's row.
    const hold = { id: record.facts.id, org, key, amount: price }
    const lease = ids.uuid()
    const stored = yield* storeReference(creation, hold)
    record.add({ type: "held", hold: hold.id })
    // The job may have been written by a transaction without an answer.
    let mayBeWritten = false
    const writeJob = Effect.gen(function* () {
      yield* placeHold(hold, record)
      yield* rows.insert({
        id,
        org,
        key,
        hold: hold.id,
        requestId: record.facts.requestId,
        endUser: record.summary.endUser,
        tag: record.facts.tag,
        trace: record.facts.trace?.traceparent,
        model: model.id,
        seconds,
        price,
        prompt: toStoredPrompt(params.prompt),
        referenceUrl: reference?._tag === "Url" ? reference.url : undefined,
        reference: stored?.name,
        webhookUrl,
        timeoutSeconds,
        lease
      })
      if (webhookUrl !== undefined) yield* Outbox.secretOf(sql, org)
      const createdAt = yield* views.createdAt(id)
      const job = yield* rows.find({ id, lease })
      if (job === undefined || createdAt === undefined) return yield* Effect.dieMessage("a video was not written")
      const kept: KeptVideo = { id, model: model.id, createdAt: unixSeconds(createdAt), seconds }
      if (claim !== undefined) yield* claim.bind(kept, hold.id)
      record.facts.trace?.admit()
      return { job, kept, picture: stored?.picture }
    }).pipe(
      sql.withTransaction,
      Effect.tapErrorTag("SqlError", (error) => Effect.sync(() => (mayBeWritten ||= !isLockTimeout(error))))
    )
    return yield* inTime(org, writeJob).pipe(
      Effect.tapError(() => {
        if (mayBeWritten) return refundJob(id, hold, stored?.name)
        return stored === undefined ? Effect.void : Effect.ignoreLogged(store.remove(stored.name))
      }),
      Effect.catchTag("SqlError", "ParseError", Effect.die),
      Effect.uninterruptible
    )
  })

  const replay = (request: RepeatedCreation) =>
    claimKey(request).pipe(
      Effect.catchTag("InvalidRequest", () => Effect.succeed(undefined)),
      Effect.flatMap((claim) =>
        claim?._tag === "Replay" ? Effect.asSome(Effect.orDie(decodeKept(claim.result))) : Effect.succeedNone
      ),
      Effect.scoped
    )

  return { create, quote, refundJob, replay }
})

export interface Created {
  readonly job: LeasedJob
  readonly kept: KeptVideo
  readonly picture: Picture | undefined
}
