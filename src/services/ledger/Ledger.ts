import { SqlClient, SqlError, SqlSchema } from "@effect/sql"
import { type Cause, Context, Effect, Layer, Metric, type Scope } from "effect"
import type { KeyId } from "../../domain/ApiKey.ts"
import { InsufficientCredits, PaymentDisputed, type RateLimited, SettleFailed } from "../../domain/Failure.ts"
import { Funds, fitsBalance, type Hold, type Settlement } from "../../domain/Hold.ts"
import { maxStored, min, type NanoUsd } from "../../domain/Money.ts"
import { Balance, OrgId } from "../../domain/Organization.ts"
import { capResetsAt, capSpent } from "../access/Cap.ts"
import { TokenLimiter, type TokenRequest } from "../access/TokenLimiter.ts"
import * as Metrics from "../metrics/Metrics.ts"
import { flatMapEager, uninterruptibly } from "../runtime/Fibers.ts"
import { Ids } from "../runtime/Ids.ts"
import { runWith } from "../sql/Statement.ts"
import type { Closed } from "./ClosingSql.ts"
import * as Closing from "./HoldClosing.ts"
import * as Placing from "./HoldPlacement.ts"
import * as HoldSql from "./HoldSql.ts"
import * as HoldSweeper from "./HoldSweeper.ts"
import { Refunds } from "./Refunds.ts"
import { spendOf, spendOfPayers } from "./SpentCap.ts"

export type { HoldRefused } from "./HoldPlacement.ts"

/** Connections that may wait for the locks of organizations. */
const lanesAtOnce = 3

export interface HoldRequest extends Omit<Placing.HoldTerms, "rate"> {
  readonly id?: string
  readonly org: OrgId
  readonly key: KeyId
  readonly upTo: NanoUsd
  /** Refused, since a payment of the organization is disputed. */
  readonly isDisputed?: boolean | undefined
}

/** Each operation is one idempotent, uninterruptible statement, retried except for jobs; an outage is a defect. */
export class Ledger extends Context.Tag("gateway/Ledger")<
  Ledger,
  {
    /** Even a hold of zero needs available credit; released when the scope closes. */
    readonly hold: (request: HoldRequest) => Effect.Effect<Hold, Placing.HoldRefused, Scope.Scope>
    /** As `hold`, but the caller releases; takes a rate unit first. */
    readonly admit: (request: HoldRequest & Placing.HoldTerms) => Effect.Effect<Hold, Placing.HoldRefused | RateLimited>
    /** Charges the cost; after 10 s without success it gives back the hold and its idempotency key. */
    readonly settle: (
      hold: Hold,
      cost: NanoUsd,
      alongside?: Closing.SettleOptions
    ) => Effect.Effect<Settlement, SettleFailed>
    /** Never fails: repeats until the database takes it. */
    readonly release: (hold: Hold) => Effect.Effect<void>
    /** Whether a hold placed by this process is neither settled nor released. */
    readonly isOpen: (hold: Hold) => boolean
    /** Whether the hold would be placed now, but for the limits of rate, tokens and requests at once. */
    readonly affords: (
      request: Pick<HoldRequest, "org" | "key" | "upTo" | "isLimitedToShare" | "isDisputed">
    ) => Effect.Effect<boolean>
    readonly balance: (org: OrgId) => Effect.Effect<Balance>
    readonly funds: (org: OrgId) => Effect.Effect<Funds>
    /** Holds that outlive the process: plain statements for the caller's transaction, which may be repeated. */
    readonly job: {
      /** `concurrency`: as many holds as the key may have at once. */
      readonly hold: (
        hold: Hold,
        concurrency?: number,
        isOrgCapped?: boolean
      ) => Effect.Effect<Hold, Placing.HoldRefused | SqlError.SqlError>
      /** Idempotent; call `Closing.countSettlement` after the commit. */
      readonly settle: (hold: Hold, cost: NanoUsd) => Effect.Effect<Settlement, SqlError.SqlError>
      readonly release: (hold: Hold) => Effect.Effect<void, SqlError.SqlError>
    }
  }
>() {
  /** It does not release the holds of dead instances: the sweeper does. */
  static readonly layerWithoutSweeper = Layer.scoped(
    Ledger,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Ids
      const refunds = yield* Refunds
      const tokenLimiter = yield* TokenLimiter
      const lanes = {
        laneOf: ({ org }: { readonly org: OrgId }) => org,
        permits: yield* Effect.makeSemaphore(lanesAtOnce)
      }
      const { place, restore } = yield* Placing.make(lanes)
      const closing = yield* Closing.make(lanes, restore)
      // A closing scope needs a statement only if its hold is still open. With the tokens that it took.
      const open = new Map<string, TokenRequest | undefined>()

      const admit = (request: HoldRequest & Placing.HoldTerms) =>
        uninterruptibly((): Effect.Effect<Hold, Placing.HoldRefused | RateLimited> => {
          const { id, isDisputed = false, key, org, tokens, upTo } = request
          if (isDisputed) return new PaymentDisputed()
          const wanted = { id: id ?? ids.uuid(), org, key, amount: min(upTo, maxStored) }
          return Effect.map(place(wanted, request), (hold) => {
            open.set(hold.id, tokens)
            return hold
          })
        })

      const takeOpen = ({ id }: Hold): TokenRequest | undefined => {
        const tokens = open.get(id)
        open.delete(id)
        return tokens
      }

      const giveBackTokens = ({ key }: Hold, tokens: TokenRequest | undefined, used = 0): Effect.Effect<void> =>
        tokens === undefined ? Effect.void : tokenLimiter.giveBack(key, tokens.use, tokens.amount - used)

      const release = (hold: Hold) =>
        Effect.suspend(() => {
          if (!open.has(hold.id)) return Effect.void
          const tokens = takeOpen(hold)
          const closed = Effect.catchAllCause(Effect.asVoid(closing.release(hold)), () => refunds.release(hold))
          return Effect.uninterruptible(
            tokens === undefined ? closed : Effect.zipRight(closed, giveBackTokens(hold, tokens))
          )
        })

      const giveBack = (hold: Hold, cause: Cause.Cause<unknown>) =>
        Effect.logError("Closing failed; the hold is given back", cause).pipe(
          Effect.zipRight(Metric.increment(Metrics.settleFailed)),
          Effect.zipRight(refunds.refund(hold)),
          Effect.zipRight(new SettleFailed())
        )

      const settle = (hold: Hold, cost: NanoUsd, alongside: Closing.SettleOptions = {}) =>
        uninterruptibly(() =>
          Effect.matchCauseEffect(closing.settle(hold, cost, alongside), {
            onFailure: (cause) => Effect.zipRight(giveBackTokens(hold, takeOpen(hold)), giveBack(hold, cause)),
            onSuccess: (closed) => {
              const tokens = takeOpen(hold)
              const settlement = Closing.settlementOf(hold, cost, closed)
              Closing.countSettlement(settlement)
              return flatMapEager(giveBackTokens(hold, tokens, alongside.usedTokens), () =>
                Effect.succeed<Settlement>(alongside.row === undefined ? settlement : { ...settlement, logged: true })
              )
            }
          })
        )

      const balanceOf = SqlSchema.single({
        Request: OrgId,
        Result: Balance,
        execute: (org) => sql`SELECT balance, held FROM organizations WHERE id = ${org}`
      })

      const affords = Effect.fn("Ledger.affords")(
        function* ({
          isDisputed = false,
          isLimitedToShare = false,
          key,
          org,
          upTo
        }: Parameters<Ledger["Type"]["affords"]>[0]) {
          if (isDisputed) return false
          if (!fitsBalance(min(upTo, maxStored), yield* balanceOf(org), isLimitedToShare)) return false
          const spend = yield* runWith(sql, spendOfPayers([key, org]))
          return [key, org].every((payer) => spendOf(spend, payer) === undefined)
        },
        Effect.orDie,
        Effect.uninterruptible
      )

      const fundsOf = SqlSchema.single({
        Request: OrgId,
        Result: Funds,
        execute: (org) => sql`
          SELECT balance, held, cap, cap_period, ${sql.literal(capSpent)} AS cap_spent,
            ${sql.literal(capResetsAt)} AS cap_resets_at
          FROM organizations WHERE id = ${org}`
      })

      return Ledger.of({
        hold: (request) => Effect.acquireRelease(Effect.catchTag(admit(request), "RateLimited", Effect.die), release),
        admit,
        settle,
        release,
        isOpen: ({ id }) => open.has(id),
        job: jobs(sql),
        affords,
        balance: Effect.fn("Ledger.balance")((org: OrgId) => Effect.orDie(balanceOf(org)), Effect.uninterruptible),
        funds: Effect.fn("Ledger.funds")((org: OrgId) => Effect.orDie(fundsOf(org)), Effect.uninterruptible)
      })
    })
  ).pipe(Layer.provide(TokenLimiter.layer))

  static readonly layer = Layer.merge(this.layerWithoutSweeper, HoldSweeper.layer)
}

const jobs = (sql: SqlClient.SqlClient): Ledger["Type"]["job"] => {
  const orRepeat = (closing: Effect.Effect<Closed, SqlError.SqlError | Closing.HoldContended | Closing.HoldMissing>) =>
    Effect.catchTags(closing, {
      HoldContended: (cause) => new SqlError.SqlError({ cause, message: "another statement is closing the hold" }),
      HoldMissing: Effect.die
    })
  const findSpend = (payer: KeyId | OrgId) =>
    runWith(sql, spendOfPayers([payer])).pipe(
      Effect.map((rows) => spendOf(rows, payer)),
      Effect.catchAll(() => Effect.succeed(undefined))
    )
  return {
    hold: Effect.fn("Ledger.job.hold")(function* (wanted: Hold, concurrency?: number, isOrgCapped?: boolean) {
      const hold = { ...wanted, amount: min(wanted.amount, maxStored) }
      const rated = { ...hold, rateLimit: undefined, concurrency, isOrgCapped }
      const [placed] = yield* runWith(sql, HoldSql.place(null, [rated]))
      if (placed === undefined) return yield* new InsufficientCredits({ needed: hold.amount, available: 0n })
      if (placed.verdict === "held") return hold
      return yield* Effect.catchTag(Placing.refuse(rated, placed, findSpend), "RateLimited", Effect.die)
    }, Effect.uninterruptible),
    settle: Effect.fn("Ledger.job.settle")(
      (hold: Hold, cost: NanoUsd) =>
        Effect.map(orRepeat(Closing.settleOne(sql, { ...hold, cost: min(cost, hold.amount) }, "job")), (closed) =>
          Closing.settlementOf(hold, cost, closed)
        ),
      Effect.uninterruptible
    ),
    release: Effect.fn("Ledger.job.release")(
      ({ id }: Hold) => Effect.asVoid(orRepeat(Closing.releaseOne(sql, id))),
      Effect.uninterruptible
    )
  }
}
