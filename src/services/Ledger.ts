import { SqlClient, type SqlError, SqlSchema } from "@effect/sql"
import { type Array as Arr, Cause, Context, Effect, Layer, Metric, Option, Schema, type Scope } from "effect"
import type { KeyId } from "../domain/ApiKey.ts"
import { InsufficientCredits, SettleFailed, SpendLimitReached } from "../domain/Failure.ts"
import { min, mostStored, type NanoUsd, zero } from "../domain/Money.ts"
import { Balance, OrgId } from "../domain/Organization.ts"
import { brief, NoAnswer, NotAsked, settleTimeout, stepTimeout } from "./DatabaseRetry.ts"
import { Ids } from "./Ids.ts"
import { Instance } from "./Instance.ts"
import { jobs } from "./ledger/Jobs.ts"
import * as Settling from "./ledger/Settling.ts"
import * as Statements from "./ledger/Statements.ts"
import * as Metrics from "./Metrics.ts"
import * as NaturalBatch from "./NaturalBatch.ts"
import { HeartbeatLost, isLockTimeout, isOutage } from "./Outage.ts"
import { Voids } from "./Voids.ts"

/** Of the pool's connections, those that wait for the locks of some organizations. */
const lanesAtOnce = 3

const late = (mayHaveRun: boolean) => (mayHaveRun ? new NoAnswer() : new NotAsked())
const inTime = ({ _tag }: { readonly _tag: string }) => _tag !== "NoAnswer" && _tag !== "NotAsked"

/** Whether a reservation failed without any chance that it was placed. */
const isUndone = (cause: Cause.Cause<unknown>) =>
  Option.exists(Cause.failureOption(cause), (error) => error instanceof NotAsked || isLockTimeout(error))

/** An amount reserved for one request. It is closed once: settled with a charge, or released. */
export interface Hold {
  readonly id: string
  readonly org: OrgId
  readonly key: KeyId
  readonly amount: NanoUsd
}

export interface Settlement {
  /** Never more than the hold. */
  readonly charged: NanoUsd
  /** The cost was above the hold; the excess is the operator's. */
  readonly exceeded: boolean
  /** The hold had been released meanwhile (this process was taken for dead): nothing was charged. */
  readonly lost: boolean
}

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
    readonly hold: (request: {
      readonly org: OrgId
      readonly key: KeyId
      readonly upTo: NanoUsd
    }) => Effect.Effect<Hold, InsufficientCredits | SpendLimitReached, Scope.Scope>
    /**
     * Charges the cost, visible in `balance` once this returns. Retried for 10 s, then the hold is given back, and
     * with it the idempotency key that it paid for. What is to happen `alongside` happens with the charge or not at
     * all; it must be safe to repeat.
     */
    readonly settle: (
      hold: Hold,
      cost: NanoUsd,
      alongside?: Effect.Effect<unknown, SqlError.SqlError>
    ) => Effect.Effect<Settlement, SettleFailed>
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
      /** The same again answers the same. Count it (`Settling.counted`) once it is committed. */
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
      const decodeVerdicts = Schema.decodeUnknown(Schema.Array(Statements.Verdict))
      const decodeClosed = Schema.decodeUnknown(Schema.Array(Statements.Closed))
      // Holds of this process that nobody has closed yet, so that a scope's end costs a statement only when it must.
      const open = new Set<string>()
      // Reservations being made, and whether a statement for them failed: it may have come through all the same.
      const doubtful = new Map<string, boolean>()

      const mayBeHeld = (hold: string) => void (doubtful.has(hold) && doubtful.set(hold, true))
      const doubt = (hold: string, cause: Cause.Cause<unknown>) => isUndone(cause) || mayBeHeld(hold)

      const reserveAll = Effect.fnUntraced(function* (batch: Arr.NonEmptyReadonlyArray<Statements.Reservation>) {
        const id = yield* instance.id
        return yield* Effect.flatMap(Statements.reserve(sql, id, batch), decodeVerdicts).pipe(
          Effect.tapErrorCause((cause) => Effect.sync(() => batch.forEach(({ id: hold }) => doubt(hold, cause))))
        )
      })
      // In a batch a large amount also bars the smaller ones queued behind it; alone, such a one may still fit. Where
      // that fails, nobody of the batch hears that the first statement has placed its hold.
      const reserveFairly = Effect.fnUntraced(function* (batch: Arr.NonEmptyReadonlyArray<Statements.Reservation>) {
        const verdicts = [...(yield* reserveAll(batch))]
        if (batch.length === 1) return verdicts
        const remaining = new Map(batch.map(({ org }, index) => [org, verdicts[index]?.remaining ?? zero]))
        for (const [index, reservation] of batch.entries()) {
          const left = remaining.get(reservation.org) ?? zero
          if (verdicts[index]?.verdict !== "insufficient" || left <= 0n || reservation.amount > left) continue
          const [alone] = yield* Effect.tapErrorCause(reserveAll([reservation]), () =>
            Effect.sync(() => batch.forEach(({ id }) => mayBeHeld(id)))
          )
          if (alone === undefined) continue
          verdicts[index] = alone
          remaining.set(reservation.org, alone.remaining)
        }
        return verdicts
      })

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
      const submitClosing = yield* NaturalBatch.make({
        maxSize: 256,
        patience: { duration: settleTimeout, late },
        isShared: isOutage,
        lanes: byOrganization,
        run: (batch: Arr.NonEmptyReadonlyArray<Settling.Closing>) =>
          Effect.flatMap(Statements.close(sql, batch), decodeClosed)
      })

      const close = (closing: Settling.Closing) =>
        Effect.filterOrFail(
          submitClosing(closing),
          ({ state }) => state !== "open",
          () => new Settling.HoldContended()
        )

      const closeAlongside = yield* Settling.makeAlongside(sql, yield* Effect.scope)
      const pending = ({ id, key, org }: Hold) => ({ hold: id, org, key })

      const reserve = Effect.fnUntraced(
        function* (hold: Hold) {
          doubtful.set(hold.id, false)
          const { period, verdict } = yield* submitReservation(hold).pipe(
            Effect.retry({ schedule: brief, while: inTime }),
            Effect.tapErrorCause((cause) => Effect.sync(() => doubt(hold.id, cause))),
            Effect.orDie
          )
          if (verdict === "capped" && period !== null) return yield* new SpendLimitReached({ period })
          if (verdict === "insufficient") return yield* new InsufficientCredits()
          if (verdict === "fenced") return yield* Effect.die(new HeartbeatLost())
          doubtful.delete(hold.id)
          open.add(hold.id)
          return hold
        },
        (reserving, hold) =>
          Effect.onError(reserving, () =>
            Effect.suspend(() => {
              const isHeldPerhaps = doubtful.get(hold.id) === true
              doubtful.delete(hold.id)
              return isHeldPerhaps ? voids.release(pending(hold)) : Effect.void
            })
          )
      )

      const release = Effect.fn("Ledger.release")(
        (hold: Hold) =>
          Effect.suspend(() =>
            open.delete(hold.id)
              ? Effect.catchAllCause(Effect.asVoid(close(Settling.closingOf(hold, undefined))), () =>
                  voids.release(pending(hold))
                )
              : Effect.void
          ),
        Effect.uninterruptible
      )

      const settle = Effect.fnUntraced(function* (
        hold: Hold,
        cost: NanoUsd,
        alongside?: Effect.Effect<unknown, SqlError.SqlError>
      ) {
        const closing = Settling.closingOf(hold, cost)
        const closed = yield* (
          alongside === undefined
            ? Effect.retry(close(closing), { schedule: Settling.forTenSeconds, while: inTime })
            : closeAlongside(closing, alongside)
        ).pipe(
          Effect.catchAllCause((cause) =>
            Effect.logError("Settling failed; the hold is given back", cause).pipe(
              Effect.zipRight(Metric.increment(Metrics.settleFailed)),
              Effect.zipRight(voids.void(pending(hold))),
              Effect.zipRight(new SettleFailed())
            )
          ),
          Effect.ensuring(Effect.sync(() => open.delete(hold.id)))
        )
        const settlement = Settling.settlementOf(hold, cost, closed)
        yield* Settling.counted(settlement)
        return settlement
      }, Effect.uninterruptible)

      const balanceOf = SqlSchema.single({
        Request: OrgId,
        Result: Balance,
        execute: (org) => sql`SELECT balance, held FROM organizations WHERE id = ${org}`
      })

      return Ledger.of({
        hold: ({ org, key, upTo }) =>
          Effect.acquireRelease(
            Effect.suspend(() => reserve({ id: ids.uuid(), org, key, amount: min(upTo, mostStored) })),
            release
          ),
        settle,
        release,
        job: jobs(sql),
        balance: Effect.fn("Ledger.balance")((org: OrgId) => Effect.orDie(balanceOf(org)), Effect.uninterruptible)
      })
    })
  )
}
