import { Cause, Effect, Option, type Scope } from "effect"
import type { Caller, CapSpend, KeyId } from "../../domain/ApiKey.ts"
import {
  ConcurrencyLimited,
  InsufficientCredits,
  PaymentDisputed,
  RateLimited,
  SpendLimitReached,
  TokensLimited
} from "../../domain/Failure.ts"
import type { Hold } from "../../domain/Hold.ts"
import type { NanoUsd } from "../../domain/Money.ts"
import type { OrgId } from "../../domain/Organization.ts"
import type { HoldTerms } from "../../domain/Pricing.ts"
import {
  type Allowance,
  allowanceAt,
  type ReservedTokens,
  type TokenAllowance,
  type TokenRequest
} from "../access/RateLimiter.ts"
import { Instance } from "../instance/Instance.ts"
import { quickRetries } from "../runtime/Schedules.ts"
import { Timings } from "../runtime/Timings.ts"
import { HeartbeatLost, isLockTimeout, isTimeout, NoAnswer, NotSent, retryLazily, stepTimeout } from "../sql/Outage.ts"
import { amountIn, Prepared, type Query, type Row, unexpectedRow } from "../sql/SqlStatement.ts"
import * as StatementBatcher from "../sql/StatementBatcher.ts"
import * as HoldSql from "./HoldSql.ts"
import { Refunds } from "./Refunds.ts"

/** The prefix of an id shows whether it is a key's or an organization's. */
type Payer = KeyId | OrgId

interface PayerSpend extends CapSpend {
  readonly id: string
}

const readSpend = (row: Row): PayerSpend => {
  const { cap, held, id, resets_at, spent } = row
  if (typeof id !== "string" || !(resets_at === null || typeof resets_at === "string")) throw unexpectedRow(row)
  const resetsAt = resets_at === null ? undefined : new Date(resets_at)
  return { id, cap: amountIn(cap, row), spent: amountIn(spent, row), held: amountIn(held, row), resetsAt }
}

const toIsoText = (time: string) => `to_char(${time} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`

/** Returns the statement that selects the spend of those keys and organizations that have caps. */
export const selectSpend = (payers: ReadonlyArray<Payer>): Query<PayerSpend> => ({
  text: `
    SELECT id, cap::text, spent_of_key(id, cap_period)::text AS spent, job_holds_of_key(id)::text AS held,
      ${toIsoText("cap_period_end(cap_period)")} AS resets_at
    FROM api_keys WHERE id = ANY ($1::text[]) AND cap IS NOT NULL
    UNION ALL
    SELECT id, cap::text, spent_of_organization(cap, cap_period, cap_since, cap_spent)::text, job_holds_of(id)::text, ${toIsoText("cap_period_end(cap_period)")}
    FROM organizations WHERE id = ANY ($1::text[]) AND cap IS NOT NULL`,
  values: [payers],
  read: readSpend
})

/** Returns the spend of the payer; undefined if it has no cap or no longer reaches it. */
export const spendOf = (rows: ReadonlyArray<PayerSpend>, payer: Payer): CapSpend | undefined => {
  const spend = rows.find(({ id }) => id === payer)
  if (spend === undefined || spend.spent + spend.held < spend.cap) return undefined
  const { cap, held, resetsAt, spent } = spend
  return { cap, held, resetsAt, spent }
}

export type FindSpend = (payer: Payer) => Effect.Effect<CapSpend | undefined>

/**
 * Makes a function that returns the spend of a payer whose cap is reached, or undefined if the lookup fails. Concurrent
 * refusals share one statement.
 */
export const makeSpendLookup: Effect.Effect<FindSpend, never, Prepared | Scope.Scope> = Effect.gen(function* () {
  const prepared = yield* Prepared
  const find = yield* StatementBatcher.make({
    maxSize: 256,
    timeout: stepTimeout,
    run: (payers: ReadonlyArray<Payer>) =>
      Effect.map(prepared.run(selectSpend(payers)), (rows) => payers.map((payer) => spendOf(rows, payer)))
  })
  return (payer) => Effect.catchAllCause(find(payer), () => Effect.succeed(undefined))
})

/**
 * Limits how often a refused hold is submitted again. It may fit without the larger or refused holds of its last batch.
 */
const maxRounds = 20

export type HoldRefused =
  | InsufficientCredits
  | SpendLimitReached
  | TokensLimited
  | ConcurrencyLimited
  | PaymentDisputed
  | RateLimited

/** Limits that a key and its organization set on each hold. */
export type KeyTerms = Pick<Caller, "concurrency" | "isDisputed">

export const termsOf = ({ concurrency, isDisputed, key, org }: Caller) => ({
  key,
  org,
  concurrency,
  isDisputed
})

/** Returns the failure if the terms allow no hold at all. */
export const refusalOf = ({ isDisputed = false }: KeyTerms): PaymentDisputed | undefined =>
  isDisputed ? new PaymentDisputed() : undefined

interface HoldConditions extends HoldSql.HoldLimits, KeyTerms {
  /** In requests a minute. The hold uses one unit. */
  readonly rateLimit?: number | undefined
  /** If the organization has other open holds, a hold above its share of the balance is refused too. */
  readonly canReduceHold?: boolean | undefined
}

/** The remaining allowances of a key in the current minute. */
export interface Allowances {
  readonly rate?: Allowance
  readonly tokens?: TokenAllowance
}

/** Terms for a hold above the balance: it is reduced, or waits for other holds to close. */
export interface ReductionTerms {
  readonly price: HoldTerms
  /** The maximum wait; more than a minute counts as a minute. */
  readonly waitMillis: number
  /** Returns true once the client has left; the hold is then refused. */
  readonly isAbandoned: () => boolean
}

export interface HoldRequest extends HoldConditions {
  /** A UUID. Default: a new one. */
  readonly id?: string
  readonly org: OrgId
  readonly key: KeyId
  /** The maximum cost. */
  readonly upTo: NanoUsd
  readonly reduction?: ReductionTerms | undefined
  /** The output cap was lowered for this hold. If it is refused, another hold with the same id may follow. */
  readonly isReduced?: boolean | undefined
  /** Gets the key's allowances after the hold is placed, refused or closed. */
  readonly onAllowances?: ((allowed: Allowances) => void) | undefined
}

export interface PlacedHold {
  readonly hold: Hold
  readonly tokens: ReservedTokens | undefined
}

export const refuse = (
  { amount, concurrency = 0, key, org, rateLimit = 0, tokens: request }: HoldSql.RatedHold,
  { cappedBy, period, remaining, tokens, verdict }: HoldSql.HoldResult,
  findSpend: FindSpend
): Effect.Effect<never, HoldRefused> => {
  switch (verdict) {
    case "limited":
      return new RateLimited({ limit: rateLimit })
    case "tokens":
      return new TokensLimited({
        limit: request?.limit ?? 0,
        retryAfterSeconds: Math.max(1, tokens?.resetSeconds ?? 0)
      })
    case "concurrency":
      return new ConcurrencyLimited({ limit: concurrency })
    case "instance_dead":
      return Effect.die(new HeartbeatLost())
    default:
      if (verdict !== "capped" || period === null)
        return new InsufficientCredits({ needed: amount, available: remaining })
      return Effect.flatMap(
        findSpend(cappedBy === "organization" ? org : key),
        (spend) => new SpendLimitReached({ owner: cappedBy, period, spend })
      )
  }
}

const toAllowances = (
  { rateLimit, tokens }: HoldRequest,
  { ordinal, tokens: window }: HoldSql.HoldResult
): Allowances => ({
  ...(rateLimit !== undefined && ordinal !== undefined && { rate: allowanceAt(ordinal, rateLimit) }),
  ...(tokens !== undefined && window !== undefined && { tokens: toTokenAllowance(tokens, window) })
})

const toTokenAllowance = ({ limit }: TokenRequest, { resetSeconds, used }: HoldSql.TokenWindow): TokenAllowance => ({
  limit,
  remaining: Math.max(0, limit - used),
  resetSeconds
})

/** Returns whether a refused hold may fit now that the other holds of its batch are placed or refused. */
const shouldSubmitAgain = (
  { amount, canReduceHold = false }: HoldSql.RatedHold,
  result: HoldSql.HoldResult
): boolean =>
  result.verdict === "insufficient"
    ? !canReduceHold && result.remaining > 0n && amount <= result.remaining
    : result.mayFit

const mayHaveRun = (cause: Cause.Cause<unknown>) =>
  !Option.exists(Cause.failureOption(cause), (error) => error instanceof NotSent || isLockTimeout(error))

/** A hold that is being placed. A refused one is submitted again, for at most `maxRounds` rounds. */
interface Placement {
  readonly hold: HoldSql.RatedHold
  /** `mayBePlaced`: a failed statement may have placed the hold. */
  readonly uncertainty: { mayBePlaced: boolean }
}

const recordFailure = ({ uncertainty }: Placement, cause: Cause.Cause<unknown>): void => {
  if (mayHaveRun(cause)) uncertainty.mayBePlaced = true
}

export const make = Effect.fnUntraced(function* (lockGroups: StatementBatcher.LockGroups<{ readonly org: OrgId }>) {
  const instance = yield* Instance
  const prepared = yield* Prepared
  const refunds = yield* Refunds
  const { deadAfter } = yield* Timings
  const findSpend = yield* makeSpendLookup

  const submitOnce = yield* StatementBatcher.make({
    name: "hold",
    maxSize: 256,
    timeout: stepTimeout,
    lockGroups: { ...lockGroups, groupOf: ({ hold }: Placement) => lockGroups.groupOf(hold) },
    run: (batch) =>
      Effect.flatMap(instance.id, (id) =>
        prepared.run(
          HoldSql.place(
            id,
            batch.map(({ hold }) => hold),
            deadAfter
          )
        )
      ).pipe(Effect.tapErrorCause((cause) => Effect.sync(() => batch.forEach((one) => recordFailure(one, cause)))))
  })

  /** Later rounds omit the rate limit, because the first round has counted the request. */
  const submit = (
    { hold, uncertainty }: Placement,
    rounds = maxRounds
  ): Effect.Effect<HoldSql.HoldResult, Effect.Effect.Error<ReturnType<typeof submitOnce>>> =>
    Effect.flatMap(
      retryLazily(submitOnce({ hold, uncertainty }), {
        schedule: quickRetries,
        while: (error) => !isTimeout(error)
      }),
      (result) => {
        if (rounds === 0 || !shouldSubmitAgain(hold, result)) return Effect.succeed(result)
        const { ordinal } = result
        const nextPlacement = { hold: { ...hold, rateLimit: undefined }, uncertainty }
        return Effect.map(submit(nextPlacement, rounds - 1), (laterResult) => ({ ...laterResult, ordinal }))
      }
    )

  /** Releases the hold if a failed statement may have placed it. Fails with the cause. */
  const abandon = (
    { hold, uncertainty }: Placement,
    { reduction, isReduced = false }: HoldRequest,
    cause: Cause.Cause<HoldRefused>
  ) => {
    if (!uncertainty.mayBePlaced) return Effect.failCause(cause)
    // A defect keeps the caller from placing another hold with this id, which the release below could release.
    const mayFollow = (reduction !== undefined || isReduced) && !Cause.isDie(cause)
    const failure = mayFollow ? Cause.die(new NoAnswer()) : cause
    return Effect.zipRight(refunds.release(hold), Effect.failCause(failure))
  }

  const place = (hold: Hold, request: HoldRequest): Effect.Effect<PlacedHold, HoldRefused> =>
    Effect.suspend(() => {
      const {
        concurrency,
        reduction,
        canReduceHold = reduction !== undefined,
        onAllowances,
        rateLimit,
        tokens
      } = request
      const ratedHold = { ...hold, rateLimit, canReduceHold, concurrency, tokens }
      const placement = { hold: ratedHold, uncertainty: { mayBePlaced: false } }
      const abandonOn = (cause: Cause.Cause<HoldRefused>) => abandon(placement, request, cause)
      return Effect.matchCauseEffect(submit(placement), {
        onFailure: (cause) => {
          recordFailure(placement, cause)
          return Effect.catchAllCause(Effect.orDie(Effect.failCause(cause)), abandonOn)
        },
        onSuccess: (result) => {
          onAllowances?.(toAllowances(request, result))
          if (result.verdict !== "held") return Effect.catchAllCause(refuse(ratedHold, result, findSpend), abandonOn)
          const window = result.tokens?.window
          return Effect.succeed({ hold, tokens: tokens && window !== undefined ? { ...tokens, window } : undefined })
        }
      })
    })

  const restore = (hold: Hold) => {
    const ratedHold = { ...hold, rateLimit: undefined, isRestored: true }
    return Effect.flatMap(
      submit({ hold: ratedHold, uncertainty: { mayBePlaced: false } }),
      (result): Effect.Effect<void, HoldRefused> =>
        result.verdict === "held" ? Effect.void : refuse(ratedHold, result, findSpend)
    )
  }

  return { place, restore }
})
