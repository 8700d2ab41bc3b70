import { SqlClient, SqlError, SqlSchema } from "@effect/sql"
import { type Cause, Context, Effect, Exit, Layer, Metric } from "effect"
import type { KeyId } from "../../domain/ApiKey.ts"
import { InsufficientCredits, PaymentDisputed, SettleFailed } from "../../domain/Failure.ts"
import { Funds, fitsBalance, type Hold, type Settlement } from "../../domain/Hold.ts"
import { maxStored, min, type NanoUsd } from "../../domain/Money.ts"
import { Balance, OrgId } from "../../domain/Organization.ts"
import { capResetsAt, capSpent } from "../access/Cap.ts"
import { type TakenTokens, TokenLimiter } from "../access/TokenLimiter.ts"
import * as Metrics from "../metrics/Metrics.ts"
import { Ids } from "../runtime/Ids.ts"
import { runWith } from "../sql/Statement.ts"
import { CapReduction } from "./CapReduction.ts"
import type { Closed } from "./ClosingSql.ts"
import * as Closing from "./HoldClosing.ts"
import type { HoldRefused, HoldRequest } from "./HoldPlacement.ts"
import * as Placing from "./HoldPlacement.ts"
import * as HoldSql from "./HoldSql.ts"
import * as HoldSweeper from "./HoldSweeper.ts"
import { Refunds } from "./Refunds.ts"
import { spendOf, spendOfPayers } from "./SpentCap.ts"

export type { HoldRefused, HoldRequest } from "./HoldPlacement.ts"

/** Connections that may wait for the locks of organizations. */
const lanesAtOnce = 3

/** Each statement is idempotent, uninterruptible, and retried except for jobs; an outage is a defect. */
export class Ledger extends Context.Tag("gateway/Ledger")<
  Ledger,
  {
    /**
     * Reserves the request's maximum cost, runs `use`, and releases the hold however `use` ends, unless `settle` has
     * closed it. Even a hold of zero needs available credit. `use` is called before any interruption takes effect.
     */
    readonly withHold: <A, E, R>(
      request: HoldRequest,
      use: (hold: Hold) => Effect.Effect<A, E, R>
    ) => Effect.Effect<A, E | HoldRefused, R>
    /** Charges the cost, for `use`; after 10 s without success it gives back the hold and its idempotency key. */
    readonly settle: (
      hold: Hold,
      cost: NanoUsd,
      alongside?: Closing.SettleOptions
    ) => Effect.Effect<Settlement, SettleFailed>
    /** Whether the hold would be placed now, but for the limits of rate, tokens and requests at once. */
    readonly affords: (
      request: Pick<HoldRequest, "org" | "key" | "upTo" | "hasFittedHold" | "isDisputed">
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
      ) => Effect.Effect<Hold, HoldRefused | SqlError.SqlError>
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
      const lanes = {
        laneOf: ({ org }: { readonly org: OrgId }) => org,
        permits: yield* Effect.makeSemaphore(lanesAtOnce)
      }
      const { place, restore } = yield* Placing.make(lanes)
      const reads = readsOf(sql)
      const holds = new RequestHolds({
        ids: yield* Ids,
        refunds: yield* Refunds,
        tokenLimiter: yield* TokenLimiter,
        clock: yield* Effect.clock,
        closing: yield* Closing.make(lanes, restore),
        place,
        balance: reads.balance
      })
      return Ledger.of({
        ...reads,
        withHold: (request, use) => holds.withHold(request, use),
        settle: (hold, cost, alongside) => holds.settle(hold, cost, alongside),
        job: jobs(sql)
      })
    })
  )

  static readonly layer = Layer.merge(this.layerWithoutSweeper, HoldSweeper.layer)
}

interface HoldServices {
  readonly ids: Context.Tag.Service<Ids>
  readonly refunds: Context.Tag.Service<Refunds>
  readonly tokenLimiter: Context.Tag.Service<TokenLimiter>
  readonly clock: Effect.Effect.Success<typeof Effect.clock>
  readonly closing: Effect.Effect.Success<ReturnType<typeof Closing.make>>
  readonly place: Effect.Effect.Success<ReturnType<typeof Placing.make>>["place"]
  readonly balance: Ledger["Type"]["balance"]
}

interface OpenHold extends Pick<HoldRequest, "onAllowed"> {
  /** The tokens that it took. */
  readonly taken: TakenTokens | undefined
}

const noTokens: OpenHold = { taken: undefined }

/** The holds of this process's requests. */
class RequestHolds {
  readonly #services: HoldServices
  readonly #capReduction: CapReduction
  /** Open holds, by id. */
  readonly #open = new Map<string, OpenHold>()

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

  settle(hold: Hold, cost: NanoUsd, alongside: Closing.SettleOptions = {}): Effect.Effect<Settlement, SettleFailed> {
    return Effect.uninterruptible(
      Effect.gen(this, function* () {
        const closed = yield* Effect.exit(this.#services.closing.settle(hold, cost, alongside))
        const open = this.#takeOpen(hold)
        if (Exit.isFailure(closed)) {
          yield* this.#returnTokens(hold, open)
          return yield* this.#giveBack(hold, closed.cause)
        }
        const settlement = Closing.settlementOf(hold, cost, closed.value)
        Closing.countSettlement(settlement)
        yield* this.#returnTokens(hold, open, alongside.usedTokens)
        return alongside.row === undefined ? settlement : { ...settlement, logged: true as const }
      })
    )
  }

  /** Run it uninterruptibly. */
  #place(request: HoldRequest): Effect.Effect<Hold, HoldRefused> {
    if (request.isDisputed === true) return new PaymentDisputed()
    const { fit } = request
    if (fit === undefined) return this.#placeOnce(request)
    return Effect.catchTag(this.#placeOnce(request), "InsufficientCredits", (refused) =>
      this.#capReduction.place(request, fit, refused)
    )
  }

  #placeOnce(request: HoldRequest): Effect.Effect<Hold, HoldRefused> {
    const { id = this.#services.ids.uuid(), key, onAllowed, org, upTo } = request
    return Effect.map(
      this.#services.place({ id, org, key, amount: min(upTo, maxStored) }, request),
      ({ hold, taken }) => {
        this.#open.set(hold.id, { taken, onAllowed })
        return hold
      }
    )
  }

  /** Does nothing to a settled hold. Never fails: the release is repeated until the database takes it. */
  #release(hold: Hold): Effect.Effect<void> {
    const open = this.#takeOpen(hold)
    if (open === undefined) return Effect.void
    const { closing, refunds } = this.#services
    const released = Effect.catchAllCause(Effect.asVoid(closing.release(hold)), () => refunds.release(hold))
    return Effect.zipRight(released, this.#returnTokens(hold, open))
  }

  /** Undoes a settlement whose outcome is unknown. */
  #giveBack(hold: Hold, cause: Cause.Cause<unknown>): Effect.Effect<never, SettleFailed> {
    return Effect.logError("Closing failed; the hold is given back", cause).pipe(
      Effect.zipRight(Metric.increment(Metrics.settleFailed)),
      Effect.zipRight(this.#services.refunds.refund(hold)),
      Effect.zipRight(new SettleFailed())
    )
  }

  #takeOpen({ id }: Hold): OpenHold | undefined {
    const open = this.#open.get(id)
    this.#open.delete(id)
    return open
  }

  #returnTokens({ key }: Hold, { onAllowed, taken }: OpenHold = noTokens, used = 0): Effect.Effect<void> {
    if (taken === undefined) return Effect.void
    return Effect.map(this.#services.tokenLimiter.giveBack(key, taken, taken.amount - used), (tokens) => {
      if (tokens !== undefined) onAllowed?.({ tokens })
    })
  }
}

const readsOf = (sql: SqlClient.SqlClient): Pick<Ledger["Type"], "affords" | "balance" | "funds"> => {
  const balanceOf = SqlSchema.single({
    Request: OrgId,
    Result: Balance,
    execute: (org) => sql`SELECT balance, held FROM organizations WHERE id = ${org}`
  })
  const fundsOf = SqlSchema.single({
    Request: OrgId,
    Result: Funds,
    execute: (org) => sql`
      SELECT balance, held, cap, cap_period, ${sql.literal(capSpent)} AS cap_spent,
        ${sql.literal(capResetsAt)} AS cap_resets_at
      FROM organizations WHERE id = ${org}`
  })
  const affords = Effect.fn("Ledger.affords")(
    function* ({
      hasFittedHold = false,
      isDisputed = false,
      key,
      org,
      upTo
    }: Parameters<Ledger["Type"]["affords"]>[0]) {
      if (isDisputed) return false
      if (!fitsBalance(min(upTo, maxStored), yield* balanceOf(org), hasFittedHold)) return false
      const spend = yield* runWith(sql, spendOfPayers([key, org]))
      return [key, org].every((payer) => spendOf(spend, payer) === undefined)
    },
    Effect.orDie,
    Effect.uninterruptible
  )
  return {
    affords,
    balance: Effect.fn("Ledger.balance")((org: OrgId) => Effect.orDie(balanceOf(org)), Effect.uninterruptible),
    funds: Effect.fn("Ledger.funds")((org: OrgId) => Effect.orDie(fundsOf(org)), Effect.uninterruptible)
  }
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
      return yield* Placing.refuse(rated, placed, findSpend)
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
