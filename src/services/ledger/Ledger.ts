import { SqlClient, type SqlError, SqlSchema } from "@effect/sql"
import { type Array as Arr, Cause, Context, Effect, Layer, Metric, Option, type Scope } from "effect"
import type { KeyId } from "../../domain/ApiKey.ts"
import { InsufficientCredits, RateLimited, SettleFailed, SpendLimitReached } from "../../domain/Failure.ts"
import { min, mostStored, type NanoUsd, zero } from "../../domain/Money.ts"
import { Balance, OrgId } from "../../domain/Organization.ts"
import { allowanceAt, type RateUnit } from "../access/RateLimiter.ts"
import { always } from "../runtime/Always.ts"
import { Ids } from "../runtime/Ids.ts"
import { Instance } from "../runtime/Instance.ts"
import * as NaturalBatch from "../runtime/NaturalBatch.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import { brief, NoAnswer, NotAsked, retryRarely, settleTimeout, stepTimeout } from "./DatabaseRetry.ts"
import type { Hold, Settlement } from "./Hold.ts"
import { jobs } from "./Jobs.ts"
import { HeartbeatLost, isLockTimeout, isOutage, isRefusal } from "./Outage.ts"
import { Prepared } from "./Prepared.ts"
import * as Settling from "./Settling.ts"
import * as Statements from "./Statements.ts"
import { Voids } from "./Voids.ts"

/** Of the pool's connections, those that wait for the locks of some organizations. */
const lanesAtOnce = 3

const late = (mayHaveRun: boolean) => (mayHaveRun ? new NoAnswer() : new NotAsked())
const inTime = ({ _tag }: { readonly _tag: string }) => _tag !== "NoAnswer" && _tag !== "NotAsked"
/** Whether a charge that failed may come through later: not where there is no money for it any more. */
const mayYetSettle = (error: { readonly _tag: string }) =>
  inTime(error) && error._tag !== "InsufficientCredits" && error._tag !== "SpendLimitReached"

/** Whether a reservation failed without any chance that it was placed. */
const isUndone = (cause: Cause.Cause<unknown>) =>
  Option.exists(Cause.failureOption(cause), (error) => error instanceof NotAsked || isLockTimeout(error))

/** What happens with a charge, or not at all. */
export interface Alongside {
  /** It must be safe to repeat. */
  readonly effect?: Effect.Effect<unknown, SqlError.SqlError>
  /** The request's row in the log, as `RequestLog.rowOf` gives it. */
  readonly row?: string
}

export interface HoldRequest {
  /** Of the hold; a new one where left out. */
  readonly id?: string
  readonly org: OrgId
  readonly key: KeyId
  readonly upTo: NanoUsd
}

export type HoldRefused = InsufficientCredits | SpendLimitReached

/**
 * The one place where customers' money moves. Every operation is a single idempotent statement, uninterruptible
 * and, but for jobs, retried. Failures other than the typed ones are defects: the database is out of reach.
 */
export class Ledger extends Context.Tag("gateway/Ledger")<
  Ledger,
  {
    /**
     * Reserves an upper bound, after the key's spending cap. Whatever is still open when the scope closes is
     * released. An organization with nothing available is refused even a hold of zero.
     */
    readonly hold: (request: HoldRequest) => Effect.Effect<Hold, HoldRefused, Scope.Scope>
    /** The same for whoever releases what is still open. Where a rate unit is given, it is taken first, with the hold. */
    readonly admit: (
      request: HoldRequest & { readonly rate?: RateUnit | undefined }
    ) => Effect.Effect<Hold, HoldRefused | RateLimited>
    /**
     * Charges the cost, visible in `balance` once this returns. Retried for 10 s, then the hold is given back, and
     * with it the idempotency key that it paid for.
     */
    readonly settle: (hold: Hold, cost: NanoUsd, alongside?: Alongside) => Effect.Effect<Settlement, SettleFailed>
    /** Gives the hold back. Never fails: what the database cannot take now is repeated until it can. */
    readonly release: (hold: Hold) => Effect.Effect<void>
    readonly balance: (org: OrgId) => Effect.Effect<Balance>
    /**
     * Holds of jobs, which live on when the process dies: plain statements, for transactions of the caller's, who
     * repeats them if need be. An open one counts towards its key's spending cap.
     */
    readonly job: {
      /** The same id again answers the hold that is there. */
      readonly hold: (hold: Hold) => Effect.Effect<Hold, InsufficientCredits | SpendLimitReached | SqlError.SqlError>
      /** The same again answers the same. Count it (`Settling.count`) once it is committed. */
      readonly settle: (hold: Hold, cost: NanoUsd) => Effect.Effect<Settlement, SqlError.SqlError>
      readonly release: (hold: Hold) => Effect.Effect<void, SqlError.SqlError>
    }
  }
>() {
  static readonly layer = Layer.scoped(
    Ledger,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Ids
      const instance = yield* Instance
      const voids = yield* Voids
      const prepared = yield* Prepared
      // Holds of this process that nobody has closed yet, so that a scope's end costs a statement only when it must.
      const open = new Set<string>()
      // Reservations being made, and whether a statement for them failed: it may have come through all the same.
      const doubtful = new Map<string, boolean>()

      const mayBeHeld = (hold: string) => void (doubtful.has(hold) && doubtful.set(hold, true))
      const doubt = (hold: string, cause: Cause.Cause<unknown>) => isUndone(cause) || mayBeHeld(hold)

      const reserveAll = (batch: Arr.NonEmptyReadonlyArray<Statements.RatedHold>) =>
        Effect.flatMap(instance.id, (id) => prepared.run(Statements.reserve(id, batch))).pipe(
          Effect.tapErrorCause((cause) => Effect.sync(() => batch.forEach(({ id: hold }) => doubt(hold, cause))))
        )
      // In a batch a large amount also bars the smaller ones queued behind it; alone, such a one may still fit. Where
      // that fails, nobody of the batch hears that the first statement has placed its hold.
      const reserveAgain = Effect.fnUntraced(function* (
        batch: Arr.NonEmptyReadonlyArray<Statements.RatedHold>,
        first: ReadonlyArray<Statements.HoldResult>
      ) {
        const verdicts = [...first]
        const remaining = new Map(batch.map(({ org }, index) => [org, verdicts[index]?.remaining ?? zero]))
        for (const [index, reservation] of batch.entries()) {
          const left = remaining.get(reservation.org) ?? zero
          if (verdicts[index]?.verdict !== "insufficient" || left <= 0n || reservation.amount > left) continue
          const [alone] = yield* Effect.tapErrorCause(reserveAll([{ ...reservation, rateLimit: undefined }]), () =>
            Effect.sync(() => batch.forEach(({ id }) => mayBeHeld(id)))
          )
          if (alone === undefined) continue
          verdicts[index] = { ...alone, place: verdicts[index].place }
          remaining.set(reservation.org, alone.remaining)
        }
        return verdicts
      })
      const reserveFairly = (batch: Arr.NonEmptyReadonlyArray<Statements.RatedHold>) =>
        Effect.flatMap(reserveAll(batch), (verdicts) =>
          batch.length > 1 && verdicts.some(({ verdict }) => verdict === "insufficient")
            ? reserveAgain(batch, verdicts)
            : Effect.succeed(verdicts)
        )

      const byOrganization = {
        laneOf: ({ org }: { readonly org: OrgId }) => org,
        isBlocked: isLockTimeout,
        permits: yield* Effect.makeSemaphore(lanesAtOnce)
      }
      const submitReservation = yield* NaturalBatch.make({
        maxSize: 256,
        patience: { duration: stepTimeout, late },
        isShared: isOutage,
        lanes: byOrganization,
        run: reserveFairly
      })
      const closeAll = (batch: Arr.NonEmptyReadonlyArray<Settling.Closing>) => {
        const rows = batch.flatMap(({ row }) => row ?? [])
        const all = prepared.run(Statements.close(batch, "many", rows))
        if (batch.length > 1 || rows.length === 0) return all
        // A row that the database cannot take is no reason not to be paid.
        return Effect.catchIf(all, isRefusal, (error) =>
          Effect.logError(`A row of the request log is lost: ${String(error)}`).pipe(
            Effect.zipRight(Metric.increment(Metrics.logDropped)),
            Effect.zipRight(prepared.run(Statements.close(batch)))
          )
        )
      }
      const submitClosing = yield* NaturalBatch.make({
        maxSize: 256,
        patience: { duration: settleTimeout, late },
        isShared: isOutage,
        lanes: byOrganization,
        run: closeAll
      })

      const close = (closing: Settling.Closing) => Effect.flatMap(submitClosing(closing), Settling.ended)
      const closeAlongside = yield* Settling.makeAlongside(sql, yield* Effect.scope)
      const pending = ({ id, key, org }: Hold) => ({ hold: id, org, key })

      const refused = ({ period, verdict }: Statements.HoldResult): Effect.Effect<never, HoldRefused | RateLimited> => {
        if (verdict === "limited") return new RateLimited()
        if (verdict === "fenced") return Effect.die(new HeartbeatLost())
        return verdict === "capped" && period !== null ? new SpendLimitReached({ period }) : new InsufficientCredits()
      }

      const submitted = (reservation: Statements.RatedHold) =>
        Effect.catchAllCause(
          retryRarely(submitReservation(reservation), { schedule: brief, while: inTime }),
          (cause) => {
            doubt(reservation.id, cause)
            return Effect.orDie(Effect.failCause(cause))
          }
        )

      const reserve = (hold: Hold, rate: RateUnit | undefined) =>
        Effect.suspend(() => {
          doubtful.set(hold.id, false)
          return Effect.flatMap(
            submitted({ ...hold, rateLimit: rate?.limit }),
            (placed): Effect.Effect<Hold, HoldRefused | RateLimited> => {
              if (rate !== undefined && placed.place !== undefined)
                rate.allowance = allowanceAt(placed.place, rate.limit)
              if (placed.verdict !== "held") return refused(placed)
              doubtful.delete(hold.id)
              open.add(hold.id)
              return Effect.succeed(hold)
            }
          )
        }).pipe(
          Effect.catchAllCause((cause) => {
            const isHeldPerhaps = doubtful.get(hold.id) === true
            doubtful.delete(hold.id)
            return Effect.zipRight(isHeldPerhaps ? voids.release(pending(hold)) : Effect.void, Effect.failCause(cause))
          }),
          Effect.uninterruptible
        )
      const admit = ({ id, key, org, rate, upTo }: HoldRequest & { readonly rate?: RateUnit | undefined }) =>
        Effect.suspend(() => reserve({ id: id ?? ids.uuid(), org, key, amount: min(upTo, mostStored) }, rate))

      const release = (hold: Hold) =>
        Effect.suspend(() =>
          open.delete(hold.id)
            ? Effect.catchAllCause(Effect.asVoid(close(Settling.closingOf(hold, undefined))), () =>
                voids.release(pending(hold))
              ).pipe(Effect.uninterruptible)
            : Effect.void
        )

      /** Places a hold again that the database has lost. */
      const restore = (hold: Hold) =>
        Effect.flatMap(
          submitReservation({ ...hold, rateLimit: undefined }),
          (placed): Effect.Effect<void, HoldRefused | RateLimited> =>
            placed.verdict === "held" ? Effect.void : refused(placed)
        )

      const closeSurely = (hold: Hold, closing: Settling.Closing) => {
        const attempt = Effect.catchTag(close(closing), "HoldMissing", () =>
          Effect.zipRight(restore(hold), close(closing))
        )
        return retryRarely(attempt, { schedule: Settling.forTenSeconds, while: mayYetSettle })
      }

      const giveUp = (hold: Hold, cause: Cause.Cause<unknown>) =>
        Effect.logError("Settling failed; the hold is given back", cause).pipe(
          Effect.zipRight(Metric.increment(Metrics.settleFailed)),
          Effect.zipRight(voids.void(pending(hold))),
          Effect.zipRight(new SettleFailed())
        )

      const settle = (hold: Hold, cost: NanoUsd, { effect, row }: Alongside = {}) => {
        const closing = { ...Settling.closingOf(hold, cost), row }
        const closed =
          effect === undefined ? closeSurely(hold, closing) : closeAlongside(closing, effect, restore(hold))
        return always(closed, () => open.delete(hold.id)).pipe(
          Effect.matchCauseEffect({
            onFailure: (cause) => giveUp(hold, cause),
            onSuccess: (ended) => {
              const settlement = Settling.settlementOf(hold, cost, ended)
              Settling.count(settlement)
              return Effect.succeed<Settlement>(row === undefined ? settlement : { ...settlement, logged: true })
            }
          }),
          Effect.uninterruptible
        )
      }

      const balanceOf = SqlSchema.single({
        Request: OrgId,
        Result: Balance,
        execute: (org) => sql`SELECT balance, held FROM organizations WHERE id = ${org}`
      })

      return Ledger.of({
        hold: (request) => Effect.acquireRelease(Effect.catchTag(admit(request), "RateLimited", Effect.die), release),
        admit,
        settle,
        release,
        job: jobs(sql),
        balance: Effect.fn("Ledger.balance")((org: OrgId) => Effect.orDie(balanceOf(org)), Effect.uninterruptible)
      })
    })
  )
}
