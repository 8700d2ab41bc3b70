import { SqlClient, type SqlError } from "@effect/sql"
import { Effect, Schedule } from "effect"
import type { InvalidRequest, RoutingFailure } from "../../domain/Failure.ts"
import type { VideoRoute } from "../../domain/Model.ts"
import { clipPrice } from "../../domain/VideoRules.ts"
import { isSandbox } from "../catalog/Rules.ts"
import { type Hold, Ledger } from "../Ledger.ts"
import * as Settling from "../ledger/Settling.ts"
import { MediaStore } from "../MediaStore.ts"
import * as Metrics from "../Metrics.ts"
import type { Attempt } from "../routing/Attempts.ts"
import type { Rows, Work } from "./Rows.ts"

export type VideoErrorCode = "content_policy_violation" | "upstream_error" | "timeout" | "internal_error"

/** Why a render failed, as its customer is told. */
export interface VideoError {
  readonly code: VideoErrorCode
  readonly message: string
}

export const contentRejected: VideoError = {
  code: "content_policy_violation",
  message: "Content was rejected by the moderation system."
}
export const upstreamFailed: VideoError = {
  code: "upstream_error",
  message: "The upstream provider returned an error."
}
export const outOfTime: VideoError = { code: "timeout", message: "The request exceeded the allowed time." }

/** What a submit that no route took means for a job whose customer has been told of it. */
export const errorOf = (failure: RoutingFailure | InvalidRequest): VideoError => {
  if (failure._tag === "ContentRejected") return contentRejected
  if (failure._tag === "TimedOut") return outOfTime
  return failure._tag === "InvalidRequest" ? { code: "upstream_error", message: failure.message } : upstreamFailed
}

export const holdOf = (job: Work): Hold => ({ id: job.holdId, org: job.orgId, key: job.keyId, amount: job.price })

/** For statements that a job hangs on: as long as its lease surely lasts. */
export const brief = Schedule.exponential("50 millis").pipe(
  Schedule.union(Schedule.spaced("1 second")),
  Schedule.upTo("10 seconds")
)

/**
 * How jobs end: the row, the money and what customers see change in one transaction. Each can be repeated, and does
 * nothing for a job that is not its caller's any more.
 */
export const make = Effect.fnUntraced(function* (rows: Rows) {
  const sql = yield* SqlClient.SqlClient
  const ledger = yield* Ledger
  const store = yield* MediaStore

  const inOneStep = <A>(changes: Effect.Effect<A, SqlError.SqlError>) =>
    sql.withTransaction(changes).pipe(Effect.retry(brief), Effect.orDie, Effect.uninterruptible)

  const dropReference = (job: Work) =>
    job.reference === null
      ? Effect.void
      : Effect.zipRight(store.remove(job.reference), rows.dropped([job.id])).pipe(Effect.ignoreLogged)

  /** The clip is in the store under this name: shows it and charges for it. False where somebody else ended the job. */
  const complete = Effect.fnUntraced(function* (job: Work, media: string, route: VideoRoute) {
    const cost = route.cost === undefined ? undefined : clipPrice(route.cost, job.seconds)
    const done = yield* inOneStep(
      Effect.gen(function* () {
        const accepted = yield* rows.finish(job, { status: "completed", media, sandbox: isSandbox(route), cost }, [])
        return accepted === undefined ? undefined : yield* ledger.job.settle(holdOf(job), job.price)
      })
    )
    if (done !== undefined) yield* Settling.counted(done)
    // After a commit whose answer was lost the clip is this job's all the same.
    const own = done !== undefined || (yield* Effect.orDie(rows.mediaOf(job.id))) === media
    if (own) yield* Metrics.count(Metrics.videos, { outcome: "completed" })
    else yield* Effect.ignoreLogged(store.remove(media))
    yield* dropReference(job)
    return own
  })

  /** Says whether the customer had been told of the job. False also means that its idempotency key is free again. */
  const fail = Effect.fnUntraced(function* (
    job: Work,
    { code, message }: VideoError,
    options: { readonly attempts?: ReadonlyArray<Attempt>; readonly cancelling?: boolean } = {}
  ) {
    const { attempts = [], cancelling = false } = options
    const accepted = yield* inOneStep(
      Effect.gen(function* () {
        const told = yield* rows.finish(job, { status: "failed", code, message, cancelling }, attempts)
        if (told === undefined) return undefined
        yield* ledger.job.release(holdOf(job))
        if (!told) yield* rows.unbind(job)
        return told
      })
    )
    if (accepted !== undefined) yield* Metrics.count(Metrics.videos, { outcome: code })
    yield* dropReference(job)
    return accepted
  })

  return { complete, fail }
})

export type Finish = Effect.Effect.Success<ReturnType<typeof make>>
