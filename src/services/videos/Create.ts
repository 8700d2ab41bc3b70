import { SqlClient, SqlError } from "@effect/sql"
import { Context, Data, Duration, Effect, Layer, Schema, type Scope } from "effect"
import type {
  IdempotencyConflict,
  InsufficientCredits,
  InvalidRequest,
  SpendLimitReached
} from "../../domain/Failure.ts"
import type { Picture } from "../../domain/Media.ts"
import type { VideoModel } from "../../domain/Model.ts"
import type { OrgId } from "../../domain/Organization.ts"
import type { VideoAsk } from "../../domain/Video.ts"
import { clipPrice } from "../../domain/Video.ts"
import { fingerprint, keyFrom } from "../idempotency/Fingerprint.ts"
import { Idempotency } from "../idempotency/Idempotency.ts"
import type { Hold } from "../ledger/Hold.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { Refunds } from "../ledger/Refunds.ts"
import { MediaStore } from "../media/MediaStore.ts"
import { References } from "../media/References.ts"
import { Ids } from "../runtime/Ids.ts"
import * as Monotonic from "../runtime/Monotonic.ts"
import { settleTimeout, untilSettled } from "../sql/DatabaseRetry.ts"
import { isAnnounced, isLockTimeout, NotAsked } from "../sql/Outage.ts"
import type { RequestRecord } from "../telemetry/RequestRecord.ts"
import { VideoTurns } from "./Finish.ts"
import { type LeasedJob, VideoSql } from "./VideoSql.ts"
import { VideoViews } from "./VideoViews.ts"

export interface VideoCreation {
  readonly model: VideoModel
  /** What the model's rules made of the ask; it is what is held and charged for. */
  readonly seconds: number
  readonly ask: VideoAsk
  readonly idempotencyKey: string | undefined
  readonly record: RequestRecord
}

/** What an idempotency key keeps: the first answer. */
export const Kept = Schema.Struct({
  id: Schema.String,
  model: Schema.String,
  createdAt: Schema.Number,
  seconds: Schema.Number
})
export type Kept = typeof Kept.Type
const decodeKept = Schema.decodeUnknown(Kept)

export const unixSeconds = (date: Date): number => Math.floor(date.getTime() / 1000)

/** PostgreSQL's text has no NUL, and no half of a surrogate pair. */
const keepable = (text: string): string => text.replaceAll("\u0000", " ").replace(/\p{Cs}/gu, "\ufffd")

/** A transaction that is not to be kept. */
class Undone extends Data.TaggedError("Undone")<{}> {}

const tooBusy = new SqlError.SqlError({ cause: new NotAsked(), message: "too many others write jobs" })

const make = Effect.fnUntraced(function* (timeoutSeconds: number) {
  const rows = yield* VideoSql
  const views = yield* VideoViews
  const inTurn = yield* VideoTurns
  const refunds = yield* Refunds
  const sql = yield* SqlClient.SqlClient
  const idempotency = yield* Idempotency
  const ids = yield* Ids
  const ledger = yield* Ledger
  const references = yield* References
  const store = yield* MediaStore

  const claimFor = Effect.fnUntraced(function* ({ ask, idempotencyKey, record }: VideoCreation) {
    if (idempotencyKey === undefined) return undefined
    const { model, prompt, seconds } = ask
    return yield* idempotency.claim({
      org: record.caller.org,
      endpoint: "videos",
      key: yield* keyFrom(idempotencyKey),
      fingerprint: yield* fingerprint({ model, prompt, seconds }, ask.references)
    })
  })

  const put = ({ bytes, type }: Picture) => Effect.orDie(store.put({ type, visibility: "private", body: bytes }))

  /** A transaction that a request waits for: none is begun once its time is over. */
  const inTime = Effect.fnUntraced(function* <A, E>(org: OrgId, transaction: Effect.Effect<A, E>) {
    const late = (yield* Monotonic.millis) + Duration.toMillis(settleTimeout)
    const begun = Effect.flatMap(
      Monotonic.millis,
      (now): Effect.Effect<A, E | SqlError.SqlError> => (now > late ? Effect.fail(tooBusy) : transaction)
    )
    return yield* Effect.retry(inTurn(org)(begun), {
      schedule: untilSettled,
      while: (error) => error instanceof SqlError.SqlError && !isAnnounced(error)
    })
  })

  /** Whether the hold could be made: nothing is looked at or stored for whoever cannot pay. */
  const affords = (hold: Hold) =>
    inTime(hold.org, sql.withTransaction(Effect.zipRight(ledger.job.hold(hold), new Undone()))).pipe(
      Effect.catchTag("Undone", () => Effect.void),
      Effect.catchTag("SqlError", Effect.die)
    )

  /** The reference that came with the request, in memory and in the store. */
  const referenceOf = Effect.fnUntraced(function* (
    {
      ask: {
        references: [given]
      }
    }: VideoCreation,
    hold: Hold
  ) {
    if (given?._tag !== "Bytes") return undefined
    yield* affords(hold)
    const [picture] = yield* references.load([given], "image")
    return picture && { picture, name: yield* put(picture) }
  })

  const disown = (video: string, { id: hold, key, org }: Hold, reference?: string) => {
    const dropped =
      reference === undefined
        ? Effect.void
        : Effect.flatMap(views.createdAt(video), (at) => (at === undefined ? store.remove(reference) : Effect.void))
    return Effect.zipRight(
      refunds.refund({ id: hold, org, key }, video),
      refunds.afterwards(hold, Effect.ignoreLogged(dropped))
    )
  }

  const create = Effect.fnUntraced(function* (job: VideoCreation) {
    const { ask, model, record, seconds } = job
    const { key, org } = record.caller
    const claim = yield* claimFor(job)
    if (claim?._tag === "Replay") return { replay: yield* Effect.orDie(decodeKept(claim.result)) }
    const [given] = ask.references
    const price = clipPrice(model.pricing, seconds)
    const id = ids.prefixed("vid")
    const hold = { id: ids.uuid(), org, key, amount: price }
    const lease = ids.uuid()
    const kept = yield* referenceOf(job, hold)
    record.hold = hold.id
    // Of a transaction whose end was not heard of, the job may have been written.
    let isDoubtful = false
    const written = Effect.gen(function* () {
      yield* ledger.job.hold(hold)
      yield* rows.insert({
        id,
        org,
        key,
        hold: hold.id,
        requestId: record.requestId,
        model: model.id,
        seconds,
        price,
        prompt: keepable(ask.prompt),
        referenceUrl: given?._tag === "Url" ? given.url : undefined,
        reference: kept?.name,
        timeoutSeconds,
        lease
      })
      const createdAt = yield* views.createdAt(id)
      const [work] = yield* rows.held(id, lease)
      if (work === undefined || createdAt === undefined) return yield* Effect.dieMessage("a video was not written")
      const answer: Kept = { id, model: model.id, createdAt: unixSeconds(createdAt), seconds }
      if (claim !== undefined) yield* claim.bind(answer, hold.id)
      return { work, kept: answer, picture: kept?.picture }
    }).pipe(
      sql.withTransaction,
      Effect.tapErrorTag("SqlError", (error) => Effect.sync(() => (isDoubtful ||= !isLockTimeout(error))))
    )
    return yield* inTime(org, written).pipe(
      Effect.tapError(() => {
        if (isDoubtful) return disown(id, hold, kept?.name)
        return kept === undefined ? Effect.void : Effect.ignoreLogged(store.remove(kept.name))
      }),
      Effect.catchTag("SqlError", "ParseError", Effect.die),
      Effect.uninterruptible
    )
  })

  return VideoCreate.of({ create, disown })
})

export type CreateFailure = InvalidRequest | IdempotencyConflict | InsufficientCredits | SpendLimitReached

/** A job that has been written, and the reference that came with it. */
export interface Created {
  readonly work: LeasedJob
  readonly kept: Kept
  readonly picture: Picture | undefined
}

/** Writes jobs: the row, its hold and its idempotency key in one transaction, leased to whoever wrote it. */
export class VideoCreate extends Context.Tag("gateway/VideoCreate")<
  VideoCreate,
  {
    /** A repeated request conflicts until the scope closes. */
    readonly create: (
      job: VideoCreation
    ) => Effect.Effect<Created | { readonly replay: Kept }, CreateFailure, Scope.Scope>
    /** Ends the job of a request that failed. `reference`: what was stored for it, where the job may not be written. */
    readonly disown: (id: string, hold: Hold, reference?: string) => Effect.Effect<void>
  }
>() {
  static readonly layer = (timeoutSeconds: number) =>
    Layer.effect(
      VideoCreate,
      Effect.suspend(() => make(timeoutSeconds))
    )
}
