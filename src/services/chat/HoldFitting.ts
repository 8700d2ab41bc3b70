import { Effect } from "effect"
import type { ChatRequest } from "../../domain/Chat.ts"
import { InsufficientCredits } from "../../domain/Failure.ts"
import { balanceShares, type Hold } from "../../domain/Hold.ts"
import type { ChatModel } from "../../domain/Model.ts"
import { max, min, NanoUsd } from "../../domain/Money.ts"
import { availableOf } from "../../domain/Organization.ts"
import * as Pricing from "../../domain/Pricing.ts"
import { type HoldRefused, type HoldRequest, Ledger } from "../ledger/Ledger.ts"
import type { RequestRecord } from "../requests/RequestRecord.ts"
import { ensuringSync } from "../runtime/Fibers.ts"
import * as Monotonic from "../runtime/Monotonic.ts"

/** An answer with less is of no use. */
const minOutput = 1_024
const maxWaitMillis = 60_000
const pauseMillis = 250
const maxWaiting = 64

interface FittedHold {
  readonly hold: Hold
  /** The output that the hold covers. */
  readonly cap: number
}

interface Waiter {
  wake: () => void
}

/**
 * The amount that a hold may take. Alone: the whole price if it is free, else half of what is free. Beside others: one
 * share of the balance. Never less than the price of the smallest output.
 */
const budgetOf = (price: Pricing.HoldPrice, least: NanoUsd, free: NanoUsd, balance: NanoUsd, isAlone: boolean) => {
  if (!isAlone) return max(least, min(free, NanoUsd(balance / balanceShares)))
  return Pricing.holdFor(price, price.cap) <= free ? free : max(least, NanoUsd(free / 2n))
}

/** Places holds that were refused: with a lower cap, and once holds of other requests are closed. */
export const makeHoldFitting = (requestTimeoutMillis: number) =>
  Effect.gen(function* () {
    const ledger = yield* Ledger
    const clock = yield* Effect.clock
    const queues = new Map<string, Array<Waiter>>()
    const now = () => Monotonic.millisOf(clock)
    // The rest of the request's time is for the provider.
    const waitMillis = Math.min(maxWaitMillis, requestTimeoutMillis / 4)

    const enter = (org: string, waiter: Waiter): Array<Waiter> => {
      const queue = queues.get(org) ?? []
      queues.set(org, queue)
      queue.push(waiter)
      return queue
    }
    const leave = (org: string, queue: Array<Waiter>, waiter: Waiter): void => {
      queue.splice(queue.indexOf(waiter), 1)
      if (queue.length === 0) queues.delete(org)
      else queue[0]?.wake()
    }
    const pause = (waiter: Waiter): Effect.Effect<void> =>
      Effect.interruptible(
        Effect.raceFirst(
          Effect.sleep(pauseMillis),
          Effect.async<void>((resume) => {
            waiter.wake = () => resume(Effect.void)
          })
        )
      )

    /** First come, first served within an organization. */
    return (
      model: ChatModel,
      request: ChatRequest,
      wanted: Omit<HoldRequest, "upTo" | "tokens">,
      record: RequestRecord,
      refused: InsufficientCredits
    ): Effect.Effect<FittedHold, HoldRefused> =>
      Effect.suspend(() => {
        const { org } = wanted
        const price = Pricing.holdPrice(model, request)
        const least = Pricing.holdFor(price, Math.min(price.cap, minOutput))
        let { available: free } = refused
        const refuse = () => new InsufficientCredits({ needed: least, available: free, isLeast: true })
        if ((queues.get(org)?.length ?? 0) >= maxWaiting) return refuse()
        const until = now() + waitMillis
        const waiter: Waiter = { wake: () => {} }
        const queue = enter(org, waiter)

        const place = Effect.fnUntraced(function* () {
          const funds = yield* ledger.balance(org)
          free = availableOf(funds)
          if (least > funds.balance || funds.balance <= 0n) return yield* refuse()
          if (free <= 0n || least > free) return undefined
          const budget = budgetOf(price, least, NanoUsd(free), funds.balance, funds.held === 0n && queue.length === 1)
          const cap = Pricing.outputWithin(price, budget) ?? 0
          const tokens = record.tokens && { use: record.tokens, amount: price.promptTokens + cap }
          return yield* ledger.admit({ ...wanted, upTo: Pricing.holdFor(price, cap), tokens }).pipe(
            Effect.map((hold) => ({ hold, cap })),
            // Another request was faster; the rate unit was taken before.
            Effect.catchTags({ InsufficientCredits: () => Effect.succeed(undefined), RateLimited: Effect.die })
          )
        })

        const placed = Effect.gen(function* () {
          while (true) {
            const fitted = queue[0] === waiter ? yield* place() : undefined
            if (fitted !== undefined) return fitted
            if (now() >= until || record.departed) return yield* refuse()
            yield* pause(waiter)
          }
        })
        return ensuringSync(placed, () => leave(org, queue, waiter))
      })
  })
