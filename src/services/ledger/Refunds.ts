import { SqlClient, type SqlError } from "@effect/sql"
import { Array as Arr, Cause, Context, Data, Effect, Layer, Option, Queue, Schedule, Schema } from "effect"
import { KeyId } from "../../domain/ApiKey.ts"
import type { Hold } from "../../domain/Hold.ts"
import { OrgId } from "../../domain/Organization.ts"
import { pluralize } from "../../domain/Plural.ts"
import { Instance } from "../instance/Instance.ts"
import { isOutage } from "../sql/Outage.ts"
import { HoldContended, type HoldMissing, releaseOne } from "./HoldClosing.ts"
import * as HoldSql from "./HoldSql.ts"
import { refundFailed } from "./RefundSql.ts"

export const PendingRefund = Schema.Struct({
  hold: Schema.UUID,
  org: OrgId,
  key: KeyId,
  video: Schema.optional(Schema.String)
})
export type PendingRefund = typeof PendingRefund.Type

export class JournalFailed extends Data.TaggedError("JournalFailed")<{ readonly message: string }> {}

/** Survives the process while the database is out of reach. */
export class RefundJournal extends Context.Tag("gateway/RefundJournal")<
  RefundJournal,
  {
    /** Durable once this returns. */
    readonly add: (entry: PendingRefund) => Effect.Effect<void, JournalFailed>
    readonly remove: (hold: string) => Effect.Effect<void, JournalFailed>
    readonly entries: Effect.Effect<ReadonlyArray<PendingRefund>, JournalFailed>
  }
>() {}

/** The port by which a refund ends the video that was ordered with the hold. */
export class RefundedVideos extends Context.Tag("gateway/RefundedVideos")<
  RefundedVideos,
  {
    /** Releases its hold too; does nothing to a video that is over, or was never written. */
    readonly cancel: (id: string) => Effect.Effect<void, SqlError.SqlError | HoldContended | HoldMissing>
  }
>() {}

const retryEvery = "1 second"
const recoverEvery = "10 seconds"
const flushWithin = "5 seconds"
const organizationsAtOnce = 2

const isTransient = (error: unknown) => error instanceof HoldContended || isOutage(error)

interface Pending {
  readonly entry: PendingRefund
  mayBeCharged: boolean
  readonly next: Array<Effect.Effect<void>>
  isReported: boolean
}

/** Undoes statements whose outcome is unknown, until the database confirms; the journal carries them over a kill. */
export class Refunds extends Context.Tag("gateway/Refunds")<
  Refunds,
  {
    /** Returns once the refund is durable: only then may the customer learn of the failure. */
    readonly refund: (hold: Omit<Hold, "amount">, video?: string) => Effect.Effect<void>
    /** Not durable: the sweeper releases a dead instance's holds. */
    readonly release: (hold: Omit<Hold, "amount">) => Effect.Effect<void>
    readonly runAfter: (hold: string | undefined, effect: Effect.Effect<void>) => Effect.Effect<void>
    /** Holds whose refund or release the database has not confirmed. */
    readonly pendingHolds: Effect.Effect<ReadonlyArray<string>>
    readonly pendingVideos: Effect.Effect<ReadonlyArray<string>>
  }
>() {
  static readonly layer = Layer.scoped(
    Refunds,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const instance = yield* Instance
      const journal = yield* RefundJournal
      const videos = yield* RefundedVideos
      const pending = new Map<string, Pending>()
      const arrival = yield* Queue.sliding<void>(1)
      const wake = Effect.asVoid(Queue.offer(arrival, undefined))

      const undo = Effect.fnUntraced(function* (entry: PendingRefund, mayBeCharged: boolean) {
        const hold = { ...entry, id: entry.hold, isOfJob: entry.video !== undefined }
        yield* HoldSql.tombstone(sql, yield* instance.id, hold)
        if (entry.video === undefined) yield* releaseOne(sql, entry.hold)
        else yield* videos.cancel(entry.video)
        if (!mayBeCharged) return
        const [outcome] = yield* refundFailed(sql, entry.hold)
        if (outcome?.contended === true) return yield* new HoldContended()
      })

      const forget = ({ hold }: PendingRefund) =>
        Effect.catchAll(journal.remove(hold), ({ message }) =>
          Effect.logWarning(`The journal of refunds cannot be written: ${message}`)
        )

      const report = (one: Pending, cause: Cause.Cause<unknown>) => {
        const log = one.isReported ? Effect.logDebug : Effect.logError
        one.isReported = true
        return log(`The hold ${one.entry.hold} of a failed request cannot be given back`, cause)
      }

      /** What is asked meanwhile, a refund where a release was tried, is done by the next attempt. */
      const attemptOnce = Effect.fnUntraced(function* (one: Pending) {
        const { entry, mayBeCharged } = one
        yield* undo(entry, mayBeCharged)
        if (mayBeCharged !== one.mayBeCharged) return
        pending.delete(entry.hold)
        if (mayBeCharged) yield* forget(entry)
        yield* Effect.all(one.next, { discard: true })
      }, Effect.uninterruptible)

      /** Returns whether the organization's next refund may succeed. */
      const attempt = (one: Pending) =>
        Effect.catchAllCause(Effect.as(attemptOnce(one), true), (cause) => {
          if (Cause.isInterruptedOnly(cause)) return Effect.succeed(false)
          return Option.exists(Cause.failureOption(cause), isTransient)
            ? Effect.as(Effect.logDebug("A refund is to be repeated", cause), false)
            : Effect.as(report(one, cause), true)
        })
      /** Returns whether nothing is left; waits for each organization's lock once. */
      const attemptAll = Effect.suspend(() =>
        Effect.forEach(
          Object.values(Arr.groupBy([...pending.values()], ({ entry }) => entry.org)),
          (own) => Effect.reduce(own, true, (goesOn, one) => (goesOn ? attempt(one) : Effect.succeed(false))),
          { concurrency: organizationsAtOnce, discard: true }
        )
      ).pipe(Effect.map(() => pending.size === 0))

      const add = (entry: PendingRefund, mayBeCharged: boolean) => {
        const known = pending.get(entry.hold)
        if (known === undefined) pending.set(entry.hold, { entry, mayBeCharged, next: [], isReported: false })
        else known.mayBeCharged ||= mayBeCharged
      }
      const recover = journal.entries.pipe(
        Effect.tap((entries) => Effect.sync(() => entries.forEach((entry) => add(entry, true)))),
        Effect.tap((entries) => (entries.length === 0 ? Effect.void : wake)),
        Effect.catchAll(({ message }) => Effect.logWarning(`The journal of refunds cannot be read: ${message}`))
      )

      yield* Effect.addFinalizer(() =>
        attemptAll.pipe(
          Effect.repeat({ until: (done) => done, schedule: Schedule.spaced("200 millis") }),
          Effect.interruptible,
          Effect.timeout(flushWithin),
          Effect.catchAll(() =>
            Effect.logWarning(
              `${pluralize(pending.size, "failed request is", "failed requests are")} left for the next start to refund`
            )
          )
        )
      )
      yield* Queue.take(arrival).pipe(
        Effect.zipRight(Effect.repeat(attemptAll, { until: (done) => done, schedule: Schedule.spaced(retryEvery) })),
        Effect.forever,
        Effect.forkScoped
      )
      yield* recover.pipe(Effect.repeat(Schedule.spaced(recoverEvery)), Effect.forkScoped)

      return Refunds.of({
        refund: ({ id, key, org }, video) => {
          const entry = { hold: id, org, key, ...(video === undefined ? {} : { video }) }
          return journal.add(entry).pipe(
            Effect.catchAll(({ message }) => Effect.logError(`A refund is kept in memory only: ${message}`)),
            Effect.zipRight(Effect.sync(() => add(entry, true))),
            Effect.zipRight(wake),
            Effect.uninterruptible
          )
        },
        release: ({ id, key, org }) =>
          Effect.zipRight(
            Effect.sync(() => add({ hold: id, org, key }, false)),
            wake
          ),
        runAfter: (hold, effect) =>
          Effect.suspend(() => {
            const before = hold === undefined ? undefined : pending.get(hold)
            if (before === undefined) return effect
            before.next.push(effect)
            return Effect.void
          }),
        pendingHolds: Effect.sync(() => [...pending.keys()]),
        pendingVideos: Effect.sync(() => [...pending.values()].flatMap(({ entry }) => entry.video ?? []))
      })
    })
  )
}
