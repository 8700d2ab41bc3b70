import { SqlClient, SqlError, SqlSchema } from "@effect/sql"
import { type Cause, Context, Effect, Layer, Metric } from "effect"
import type { KeyId } from "../../domain/ApiKey.ts"
import { InsufficientCredits, SettleFailed } from "../../domain/Failure.ts"
import { Funds, fitsBalance, type Hold, type Settlement } from "../../domain/Hold.ts"
import { maxStored, min, type NanoUsd } from "../../domain/Money.ts"
import { Balance, OrgId } from "../../domain/Organization.ts"
import { type ReservedTokens, TokenWindows } from "../access/RateLimiter.ts"
import * as Metrics from "../metrics/Metrics.ts"
import { Ids } from "../runtime/Ids.ts"
import { runWith } from "../sql/SqlStatement.ts"
import { CapReduction } from "./CapReduction.ts"
import type { ClosedHold } from "./ClosingSql.ts"
import * as Closing from "./HoldClosing.ts"
import * as Placing from "./HoldPlacement.ts"
import { type HoldRefused, type HoldRequest, selectSpend, spendOf } from "./HoldPlacement.ts"
import * as HoldSql from "./HoldSql.ts"
import * as HoldSweeper from "./HoldSweeper.ts"
import { Refunds } from "./Refunds.ts"

export type { HoldRefused, HoldRequest } from "./HoldPlacement.ts"

/** The maximum number of connections that wait for locks of organizations. */
const maxLockWaiters = 3

/** Statements are idempotent, uninterruptible and, except for jobs, retried. A database outage is a defect. */
export class Ledger extends Context.Tag("gateway/Ledger")<
  Ledger,
  {
    /**
     * Reserves the maximum cost of the request and runs `use`. When `use` ends, it releases the hold unless `settle`
     * has closed it. Even a hold of zero needs available credit. `use` starts before any interruption takes effect.
     */
    readonly withHold: <A, E, R>(
      request: HoldRequest,
      use: (hold: Hold) => Effect.Effect<A, E, R>
    ) => Effect.Effect<A, E | HoldRefused, R>
    /** Charges the cost; call it in `use`. After 10 s without success it releases the hold and the idempotency key. */
    readonly settle: (
      hold: Hold,
      cost: NanoUsd,
      options?: Closing.SettleOptions
    ) => Effect.Effect<Settlement, SettleFailed>
    /** Returns whether the balance and the caps allow the hold. Ignores the limits of rate, tokens and concurrency. */
    readonly canAfford: (
      request: Placing.KeyTerms & Pick<HoldRequest, "org" | "key" | "upTo" | "canReduceHold">
    ) => Effect.Effect<boolean>
    readonly balance: (org: OrgId) => Effect.Effect<Balance>
    readonly funds: (org: OrgId) => Effect.Effect<Funds>
    /**
     * Holds of video jobs, which outlive the process. Statements run in the caller's transaction, which may be retried.
     */
    readonly job: {
      readonly hold: (hold: Hold, terms?: Placing.KeyTerms) => Effect.Effect<Hold, HoldRefused | SqlError.SqlError>
      /** Idempotent; call `Closing.countSettlement` after the commit. */
      readonly settle: (hold: Hold, cost: NanoUsd) => Effect.Effect<Settlement, SqlError.SqlError>
      readonly release: (hold: Hold) => Effect.Effect<void, SqlError.SqlError>
    }
  }
>() {
  /** Does not release holds of dead instances. */
  static readonly layerWithoutSweeper = Layer.scoped(
    Ledger,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const lockGroups = {
        groupOf: ({ org }: { readonly org: OrgId }) => org,
        permits: yield* Effect.makeSemaphore(maxLockWaiters)
      }
      const { place, restore } = yield* Placing.make(lockGroups)
      const reads = makeReads(sql)
      const holds = new RequestHolds({
        ids: yield* Ids,
        refunds: yield* Refunds,
        tokenWindows: yield* TokenWindows,
        clock: yield* Effect.clock,
        closing: yield* Closing.make(lockGroups, restore),
        place,
        balance: reads.balance
      })
      return Ledger.of({
        ...reads,
        withHold: (request, use) => holds.withHold(request, use),
        settle: (hold, cost, options) => holds.settle(hold, cost, options),
        job: makeJobLedger(sql)
      })
    })
  )

  static readonly layer = Layer.merge(this.layerWithoutSweeper, HoldSweeper.layer)
}

interface HoldServices {
  readonly ids: Context.Tag.Service<Ids>
  readonly refunds: Context.Tag.Service<Refunds>
  readonly tokenWindows: Context.Tag.Service<TokenWindows>
  readonly clock: Effect.Effect.Success<typeof Effect.clock>
  readonly closing: Effect.Effect.Success<ReturnType<typeof Closing.make>>
  readonly place: Effect.Effect.Success<ReturnType<typeof Placing.make>>["place"]
  readonly balance: Ledger["Type"]["balance"]
}

/** What this process remembers of a hold until it closes. */
interface LocalHold extends Pick<HoldRequest, "onAllowances"> {
  /** Tokens that the hold reserved. */
  readonly tokens: ReservedTokens | undefined
}

const withoutTokens: LocalHold = { tokens: undefined }

/** Holds of requests that this process runs. */
class RequestHolds {
  readonly #services: HoldServices
  readonly #capReduction: CapReduction
  /** Open holds, by id. */
  readonly #localHolds = new Map<string, LocalHold>()

  constructor(services: HoldServices) {
    this.#services = services
    const { balance, clock } = services
    this.#capReduction = new CapReduction({ balance, clock, place: (request) => this.#placeOnce(request) })
  }

  withHold<A, E, R>(
    request: HoldRequest,
    use: (hold: Hold) => Effect.Effect<A, E, R>
  ): Effect.Effect<A, E | HoldRefused, R> {
    return Effect.acquireUseRelease(this.#place(request), use, (hold) => this.#release(hold))
  }

  settle(hold: Hold, cost: NanoUsd, options: Closing.SettleOptions = {}): Effect.Effect<Settlement, SettleFailed> {
    const { closing } = this.#services
    return Effect.uninterruptible(
      Effect.matchCauseEffect(closing.settle(hold, cost, options), {
        onFailure: (cause) => Effect.zipRight(this.#returnTokens(hold, this.#forget(hold)), this.#refund(hold, cause)),
        onSuccess: (closedHold) => {
          const settlement = Closing.settlementOf(hold, cost, closedHold)
          Closing.countSettlement(settlement)
          const outcome = options.logRow === undefined ? settlement : { ...settlement, isLogged: true as const }
          return Effect.as(this.#returnTokens(hold, this.#forget(hold), options.usedTokens), outcome)
        }
      })
    )
  }

  /**
   * Places the hold of a request. Must run uninterruptibly, because nothing would release the hold of an interrupted
   * call.
   */
  #place(request: HoldRequest): Effect.Effect<Hold, HoldRefused> {
    const refusal = Placing.refusalOf(request)
    if (refusal !== undefined) return refusal
    const { reduction } = request
    if (reduction === undefined) return this.#placeOnce(request)
    return Effect.catchTag(this.#placeOnce(request), "InsufficientCredits", (refusal) =>
      this.#capReduction.place(request, reduction, refusal)
    )
  }

  #placeOnce(request: HoldRequest): Effect.Effect<Hold, HoldRefused> {
    const { id = this.#services.ids.uuid(), key, onAllowances, org, upTo } = request
    const requestedHold = { id, org, key, amount: min(upTo, maxStored) }
    return Effect.flatMap(this.#services.place(requestedHold, request), ({ hold, tokens }) => {
      this.#localHolds.set(hold.id, { tokens, onAllowances })
      return Effect.succeed(hold)
    })
  }

  /** Ignores a settled hold. Never fails: the release is retried until the database confirms it. */
  #release(hold: Hold): Effect.Effect<void> {
    const localHold = this.#forget(hold)
    if (localHold === undefined) return Effect.void
    const { closing, refunds } = this.#services
    const releaseOnce = Effect.catchAllCause(Effect.asVoid(closing.release(hold)), () => refunds.release(hold))
    return Effect.zipRight(releaseOnce, this.#returnTokens(hold, localHold))
  }

  /** Refunds or releases the hold after a settlement with an unknown outcome. */
  #refund(hold: Hold, cause: Cause.Cause<unknown>): Effect.Effect<never, SettleFailed> {
    return Effect.logError("Failed to settle a hold; the hold will be released or its charge refunded", cause).pipe(
      Effect.zipRight(Metric.increment(Metrics.settleFailed)),
      Effect.zipRight(this.#services.refunds.refund(hold)),
      Effect.zipRight(new SettleFailed())
    )
  }

  #forget({ id }: Hold): LocalHold | undefined {
    const localHold = this.#localHolds.get(id)
    this.#localHolds.delete(id)
    return localHold
  }

  #returnTokens(
    { key }: Hold,
    { onAllowances, tokens }: LocalHold = withoutTokens,
    usedTokens = 0
  ): Effect.Effect<void> {
    if (tokens === undefined) return Effect.void
    return Effect.map(this.#services.tokenWindows.returnTokens(key, tokens, tokens.amount - usedTokens), (tokens) => {
      if (tokens !== undefined) onAllowances?.({ tokens })
    })
  }
}

const makeReads = (sql: SqlClient.SqlClient): Pick<Ledger["Type"], "balance" | "canAfford" | "funds"> => {
  const balanceOf = SqlSchema.single({
    Request: OrgId,
    Result: Balance,
    execute: (org) => sql`SELECT balance, held FROM organizations WHERE id = ${org}`
  })
  const fundsOf = SqlSchema.single({
    Request: OrgId,
    Result: Funds,
    execute: (org) => sql`
      SELECT balance, held, cap, cap_period, spent_of_organization(cap, cap_period, cap_since, cap_spent) AS cap_spent,
        cap_period_end(cap_period) AS cap_resets_at
      FROM organizations WHERE id = ${org}`
  })
  const canAfford = Effect.fn("Ledger.canAfford")(
    function* ({ canReduceHold = false, key, org, upTo, ...terms }: Parameters<Ledger["Type"]["canAfford"]>[0]) {
      if (Placing.refusalOf(terms) !== undefined) return false
      if (!fitsBalance(min(upTo, maxStored), yield* balanceOf(org), canReduceHold)) return false
      const spend = yield* runWith(sql, selectSpend([key, org]))
      return [key, org].every((payer) => spendOf(spend, payer) === undefined)
    },
    Effect.orDie,
    Effect.uninterruptible
  )
  return {
    canAfford,
    balance: Effect.fn("Ledger.balance")((org: OrgId) => Effect.orDie(balanceOf(org)), Effect.uninterruptible),
    funds: Effect.fn("Ledger.funds")((org: OrgId) => Effect.orDie(fundsOf(org)), Effect.uninterruptible)
  }
}

const makeJobLedger = (sql: SqlClient.SqlClient): Ledger["Type"]["job"] => {
  const failIfContended = (
    closing: Effect.Effect<ClosedHold, SqlError.SqlError | Closing.HoldContended | Closing.HoldMissing>
  ) =>
    Effect.catchTags(closing, {
      HoldContended: (cause) => new SqlError.SqlError({ cause, message: "another statement is closing the hold" }),
      HoldMissing: Effect.die
    })
  const findSpend = (payer: KeyId | OrgId) =>
    runWith(sql, selectSpend([payer])).pipe(
      Effect.map((rows) => spendOf(rows, payer)),
      Effect.catchAll(() => Effect.succeed(undefined))
    )
  return {
    hold: Effect.fn("Ledger.job.hold")(function* (requestedHold: Hold, terms: Placing.KeyTerms = {}) {
      const refusal = Placing.refusalOf(terms)
      if (refusal !== undefined) return yield* refusal
      const hold = { ...requestedHold, amount: min(requestedHold.amount, maxStored) }
      const ratedHold = { ...hold, rateLimit: undefined, concurrency: terms.concurrency }
      const [result] = yield* runWith(sql, HoldSql.place(null, [ratedHold]))
      if (result === undefined) return yield* new InsufficientCredits({ needed: hold.amount, available: 0n })
      if (result.verdict === "held") return hold
      return yield* Placing.refuse(ratedHold, result, findSpend)
    }, Effect.uninterruptible),
    settle: Effect.fn("Ledger.job.settle")(
      (hold: Hold, cost: NanoUsd) =>
        Effect.map(failIfContended(Closing.settleOne(sql, { ...hold, cost: min(cost, hold.amount) })), (closedHold) =>
          Closing.settlementOf(hold, cost, closedHold)
        ),
      Effect.uninterruptible
    ),
    release: Effect.fn("Ledger.job.release")(
      ({ id }: Hold) => Effect.asVoid(failIfContended(Closing.releaseOne(sql, id))),
      Effect.uninterruptible
    )
  }
}
