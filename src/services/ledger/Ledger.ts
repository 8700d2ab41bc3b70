import { SqlClient, type SqlError, SqlSchema } from "@effect/sql"
import { type Array as Arr, type Cause, Context, Effect, Layer, Metric, type Scope } from "effect"
import type { KeyId } from "../../domain/ApiKey.ts"
import {
  type InsufficientCredits,
  type RateLimited,
  SettleFailed,
  type SpendLimitReached
} from "../../domain/Failure.ts"
import { min, mostStored, type NanoUsd } from "../../domain/Money.ts"
import { Balance, OrgId } from "../../domain/Organization.ts"
import type { RateUnit } from "../access/RateLimiter.ts"
import { always } from "../runtime/Always.ts"
import { Ids } from "../runtime/Ids.ts"
import * as NaturalBatch from "../runtime/NaturalBatch.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import * as Batches from "./Batches.ts"
import { retryRarely, settleTimeout } from "./DatabaseRetry.ts"
import type { Hold, Settlement } from "./Hold.ts"
import { type HoldRefused, makePlacement } from "./HoldPlacement.ts"
import { jobs } from "./Jobs.ts"
import { isRefusal } from "./Outage.ts"
import { Prepared } from "./Prepared.ts"
import * as SettleSql from "./SettleSql.ts"
import * as Settling from "./Settling.ts"
import { voidOf } from "./VoidJournal.ts"
import { Voids } from "./Voids.ts"

/** Of the pool's connections, those that wait for the locks of some organizations. */
const lanesAtOnce = 3

/** Whether a charge that failed may come through later: not where there is no money for it any more. */
const mayYetSettle = (error: { readonly _tag: string }) =>
  Batches.inTime(error) && error._tag !== "InsufficientCredits" && error._tag !== "SpendLimitReached"

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
      const voids = yield* Voids
      const prepared = yield* Prepared
      // Holds of this process that nobody has closed yet, so that a scope's end costs a statement only when it must.
      const open = new Set<string>()
      const lanes = Batches.byOrganization(yield* Effect.makeSemaphore(lanesAtOnce))
      const { place, restore } = yield* makePlacement(lanes)

      const closeAll = (batch: Arr.NonEmptyReadonlyArray<Settling.Closing>) => {
        const rows = batch.flatMap(({ row }) => row ?? [])
        const all = prepared.run(SettleSql.close(batch, "many", rows))
        if (batch.length > 1 || rows.length === 0) return all
        // A row that the database cannot take is no reason not to be paid.
        return Effect.catchIf(all, isRefusal, (error) =>
          Effect.logError(`A row of the request log is lost: ${String(error)}`).pipe(
            Effect.zipRight(Metric.increment(Metrics.logDropped)),
            Effect.zipRight(prepared.run(SettleSql.close(batch)))
          )
        )
      }
      const submitClosing = yield* NaturalBatch.make({
        ...Batches.options(settleTimeout, lanes),
        run: closeAll
      })

      const close = (closing: Settling.Closing) => Effect.flatMap(submitClosing(closing), Settling.ended)
      const closeAlongside = yield* Settling.makeAlongside(sql, yield* Effect.scope)

      const admit = ({ id, key, org, rate, upTo }: HoldRequest & { readonly rate?: RateUnit | undefined }) =>
        Effect.suspend(() =>
          Effect.map(place({ id: id ?? ids.uuid(), org, key, amount: min(upTo, mostStored) }, rate), (hold) => {
            open.add(hold.id)
            return hold
          })
        ).pipe(Effect.uninterruptible)

      const release = (hold: Hold) =>
        Effect.suspend(() =>
          open.delete(hold.id)
            ? Effect.catchAllCause(Effect.asVoid(close(Settling.closingOf(hold, undefined))), () =>
                voids.release(voidOf(hold))
              ).pipe(Effect.uninterruptible)
            : Effect.void
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
          Effect.zipRight(voids.void(voidOf(hold))),
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
