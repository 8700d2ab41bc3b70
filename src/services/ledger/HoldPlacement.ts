import { type Array as Arr, Cause, Effect, Option } from "effect"
import type { KeyId } from "../../domain/ApiKey.ts"
import {
  ConcurrencyLimited,
  InsufficientCredits,
  type PaymentDisputed,
  RateLimited,
  SpendLimitReached,
  TokensLimited
} from "../../domain/Failure.ts"
import type { Hold } from "../../domain/Hold.ts"
import type { NanoUsd } from "../../domain/Money.ts"
import type { OrgId } from "../../domain/Organization.ts"
import type { HoldPrice } from "../../domain/Pricing.ts"
import { type Allowance, allowanceAt } from "../access/RateLimiter.ts"
import type { TakenTokens, TokenAllowance, TokenRequest } from "../access/TokenLimiter.ts"
import { Instance } from "../instance/Instance.ts"
import { briefRetries } from "../runtime/Schedules.ts"
import { Timings } from "../runtime/Timings.ts"
import { retryRarely, stepTimeout } from "../sql/DatabaseRetry.ts"
import { HeartbeatLost, isLockTimeout, isTimeUp, NoAnswer, NotAsked } from "../sql/Outage.ts"
import { Prepared } from "../sql/Statement.ts"
import * as StatementBatcher from "../sql/StatementBatcher.ts"
import * as HoldSql from "./HoldSql.ts"
import { Refunds } from "./Refunds.ts"
import { type FindSpend, makeSpendLookup } from "./SpentCap.ts"

/** A larger hold before it in its batch, or one that was refused, can keep a hold from fitting. */
const maxRounds = 20

export type HoldRefused =
  | InsufficientCredits
  | SpendLimitReached
  | TokensLimited
  | ConcurrencyLimited
  | PaymentDisputed
  | RateLimited

interface HoldTerms extends HoldSql.HoldLimits {
  /** In requests a minute: a unit of it is taken first. */
  readonly rateLimit?: number | undefined
  /** Beside other open holds, also refused above its share of the balance. */
  readonly hasFittedHold?: boolean | undefined
}

/** What a key has left for the running minute. */
export interface Allowed {
  readonly rate?: Allowance
  readonly tokens?: TokenAllowance
}

/** Lets a hold that the balance does not cover be lowered, or wait for holds of other requests to close. */
export interface HoldFit {
  readonly price: HoldPrice
  /** It waits for so long, and never longer than a minute. */
  readonly waitMillis: number
  /** True once nobody waits for the answer any more, so that the hold is refused. */
  readonly isAbandoned: () => boolean
}

/** What one request reserves of its organization's balance, and takes of its key's limits. */
export interface HoldRequest extends HoldTerms {
  /** A UUID; by default a new one. */
  readonly id?: string
  readonly org: OrgId
  readonly key: KeyId
  /** The maximum cost. */
  readonly upTo: NanoUsd
  /** Refused, since a payment of the organization is disputed. */
  readonly isDisputed?: boolean | undefined
  readonly fit?: HoldFit | undefined
  /** It is a lower one, which another one under the same id may follow where it is refused. */
  readonly isLowered?: boolean | undefined
  /** Called when the hold is placed, refused or closed. */
  readonly onAllowed?: ((allowed: Allowed) => void) | undefined
}

export interface PlacedHold {
  readonly hold: Hold
  readonly taken: TakenTokens | undefined
}

export const refuse = (
  { amount, concurrency = 0, key, org, rateLimit = 0, tokens: request }: HoldSql.RatedHold,
  { cappedBy: of, period, remaining, tokens, verdict }: HoldSql.HoldResult,
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
        findSpend(of === "organization" ? org : key),
        (spend) => new SpendLimitReached({ of, period, spend })
      )
  }
}

const allowedOf = ({ rateLimit, tokens }: HoldRequest, { ordinal, tokens: window }: HoldSql.HoldResult): Allowed => ({
  ...(rateLimit !== undefined && ordinal !== undefined && { rate: allowanceAt(ordinal, rateLimit) }),
  ...(tokens !== undefined && window !== undefined && { tokens: leftOf(tokens, window) })
})

const leftOf = ({ limit }: TokenRequest, { resetSeconds, used }: HoldSql.TokenWindow): TokenAllowance => ({
  limit,
  remaining: Math.max(0, limit - used),
  resetSeconds
})

/** Whether what was placed of its batch has left room for it. */
const mayFit = ({ amount, hasFittedHold = false }: HoldSql.RatedHold, result: HoldSql.HoldResult): boolean =>
  result.verdict === "insufficient"
    ? !hasFittedHold && result.remaining > 0n && amount <= result.remaining
    : result.isWithinLimits

const mayHaveRun = (cause: Cause.Cause<unknown>) =>
  !Option.exists(Cause.failureOption(cause), (error) => error instanceof NotAsked || isLockTimeout(error))

export const make = Effect.fnUntraced(function* (lanes: StatementBatcher.Lanes<Hold>) {
  const instance = yield* Instance
  const prepared = yield* Prepared
  const refunds = yield* Refunds
  const placeHolds = HoldSql.makePlace((yield* Timings).deadAfter)
  const findSpend = yield* makeSpendLookup
  /** True: a statement that failed may have placed the hold all the same. */
  const placing = new Map<string, boolean>()

  const noteFailure = (hold: string, cause: Cause.Cause<unknown>): void => {
    if (placing.has(hold) && mayHaveRun(cause)) placing.set(hold, true)
  }

  /** No statement with it can have run. */
  const isNew = ({ id }: Hold): boolean => placing.get(id) === false

  const batcher = (name: string) =>
    StatementBatcher.make({
      name,
      maxSize: 256,
      timeout: stepTimeout,
      lanes,
      run: (batch: Arr.NonEmptyReadonlyArray<HoldSql.RatedHold>) =>
        Effect.flatMap(instance.id, (id) => prepared.run(placeHolds(id, batch, batch.every(isNew)))).pipe(
          Effect.tapErrorCause((cause) => Effect.sync(() => batch.forEach(({ id }) => noteFailure(id, cause))))
        )
    })
  const submitPlain = yield* batcher("hold")
  const submitLimited = yield* batcher("hold_limited")

  const submitOnce = (hold: HoldSql.RatedHold) => (HoldSql.isLimited(hold) ? submitLimited(hold) : submitPlain(hold))

  /** Without its rate unit, which the first round took. */
  const submit = (
    hold: HoldSql.RatedHold,
    rounds = maxRounds
  ): Effect.Effect<HoldSql.HoldResult, Effect.Effect.Error<ReturnType<typeof submitOnce>>> =>
    Effect.flatMap(
      retryRarely(submitOnce(hold), { schedule: briefRetries, while: (error) => !isTimeUp(error) }),
      (result) => {
        if (rounds === 0 || !mayFit(hold, result)) return Effect.succeed(result)
        const { ordinal } = result
        return Effect.map(submit({ ...hold, rateLimit: undefined }, rounds - 1), (again) => ({ ...again, ordinal }))
      }
    )

  const place = (hold: Hold, request: HoldRequest) =>
    Effect.suspend(() => {
      const { concurrency, fit, hasFittedHold = fit !== undefined, isOrgCapped, onAllowed, rateLimit, tokens } = request
      placing.set(hold.id, false)
      const rated = { ...hold, rateLimit, hasFittedHold, concurrency, tokens, isOrgCapped }
      const submitted = Effect.catchAllCause(submit(rated), (cause) => {
        noteFailure(hold.id, cause)
        return Effect.orDie(Effect.failCause(cause))
      })
      return Effect.flatMap(submitted, (placed): Effect.Effect<PlacedHold, HoldRefused> => {
        onAllowed?.(allowedOf(request, placed))
        if (placed.verdict !== "held") return refuse(rated, placed, findSpend)
        placing.delete(hold.id)
        const window = placed.tokens?.window
        return Effect.succeed({ hold, taken: tokens && window !== undefined ? { ...tokens, window } : undefined })
      })
    }).pipe(
      Effect.catchAllCause((cause) => {
        const mayBePlaced = placing.get(hold.id) === true
        placing.delete(hold.id)
        if (!mayBePlaced) return Effect.failCause(cause)
        // Else this release would take the next hold under the same id from its request.
        const mayFollow = (request.fit !== undefined || request.isLowered === true) && !Cause.isDie(cause)
        const failure = mayFollow ? Cause.die(new NoAnswer()) : cause
        return Effect.zipRight(refunds.release(hold), Effect.failCause(failure))
      })
    )

  const restore = (hold: Hold) => {
    const unrated = { ...hold, rateLimit: undefined }
    return Effect.flatMap(
      submitOnce(unrated),
      (placed): Effect.Effect<void, HoldRefused> =>
        placed.verdict === "held" ? Effect.void : refuse(unrated, placed, findSpend)
    )
  }

  return { place, restore }
})
