import { type Clock, Effect } from "effect"
import { InsufficientCredits } from "../../domain/Failure.ts"
import { balanceShares, type Hold } from "../../domain/Hold.ts"
import { max, min, NanoUsd } from "../../domain/Money.ts"
import { availableOf, type Balance, type OrgId } from "../../domain/Organization.ts"
import * as Pricing from "../../domain/Pricing.ts"
import { monotonicMillisOf } from "../runtime/System.ts"
import type { HoldRefused, HoldRequest, ReductionTerms } from "./HoldPlacement.ts"

/** The lowest output cap of a reduced hold, in tokens. Shorter answers are useless. */
const minOutput = 1_024
const maxWaitMillis = 60_000
const pauseMillis = 250
/** The maximum queue length of an organization. */
const maxWaiting = 64

interface Services {
  readonly clock: Clock.Clock
  readonly balance: (org: OrgId) => Effect.Effect<Balance>
  readonly place: (request: HoldRequest) => Effect.Effect<Hold, HoldRefused>
}

interface Waiter {
  wake: () => void
}

/**
 * Returns the budget for a reduced hold, at least `minPrice`. The only request of an organization gets all available
 * credit if that covers its full price, and half of it otherwise. Each of several requests gets one share of the
 * balance.
 */
const computeBudget = (
  price: Pricing.HoldTerms,
  minPrice: NanoUsd,
  available: NanoUsd,
  balance: NanoUsd,
  isOnlyRequest: boolean
) => {
  if (!isOnlyRequest) return max(minPrice, min(available, NanoUsd(balance / balanceShares)))
  return Pricing.holdAmount(price, price.cap) <= available ? available : max(minPrice, NanoUsd(available / 2n))
}

/** Sleeps for `pauseMillis`, or until the waiter becomes the first in its queue. */
const waitForTurn = (waiter: Waiter): Effect.Effect<void> =>
  Effect.raceFirst(
    Effect.sleep(pauseMillis),
    Effect.async<void>((resume) => {
      waiter.wake = () => resume(Effect.void)
    })
  )

/**
 * Places holds that were refused for a low balance: with a lower output cap, or once other holds close. The requests of
 * an organization wait in a first-in, first-out queue.
 */
export class CapReduction {
  readonly #queues = new Map<string, Array<Waiter>>()
  readonly #services: Services

  constructor(services: Services) {
    this.#services = services
  }

  /**
   * Places the refused hold of a request. Run it uninterruptibly: only its wait can be interrupted. Fails with
   * `InsufficientCredits` after the wait in `terms`, or once the client has left. Fails at once if the queue is full,
   * or if the balance is too low even without other holds.
   */
  place(request: HoldRequest, terms: ReductionTerms, refusal: InsufficientCredits): Effect.Effect<Hold, HoldRefused> {
    return Effect.suspend(() => {
      const { org } = request
      const queue = this.#queues.get(org) ?? []
      const minPrice = Pricing.holdAmount(terms.price, Math.min(terms.price.cap, minOutput))
      if (queue.length >= maxWaiting) {
        return new InsufficientCredits({ needed: minPrice, available: refusal.available, isMinimum: true })
      }
      const waiter: Waiter = { wake: () => {} }
      queue.push(waiter)
      this.#queues.set(org, queue)
      return Effect.ensuring(
        this.#placeWhenFirst(request, terms, { minPrice, available: refusal.available, queue, waiter }),
        Effect.sync(() => this.#leave(org, queue, waiter))
      )
    })
  }

  #placeWhenFirst(
    request: HoldRequest,
    { isAbandoned, price, waitMillis }: ReductionTerms,
    state: {
      readonly minPrice: NanoUsd
      readonly available: bigint
      readonly queue: ReadonlyArray<Waiter>
      readonly waiter: Waiter
    }
  ): Effect.Effect<Hold, HoldRefused> {
    const { balance, clock } = this.#services
    return Effect.gen(this, function* () {
      const { minPrice, queue, waiter } = state
      const deadline = monotonicMillisOf(clock) + Math.min(maxWaitMillis, waitMillis)
      let { available } = state
      const refuse = () => new InsufficientCredits({ needed: minPrice, available, isMinimum: true })
      while (true) {
        if (queue[0] === waiter) {
          const funds = yield* balance(request.org)
          available = availableOf(funds)
          if (minPrice > funds.balance || funds.balance <= 0n) return yield* refuse()
          if (available > 0n && minPrice <= available) {
            const isOnlyRequest = funds.held === 0n && queue.length === 1
            const budget = computeBudget(price, minPrice, NanoUsd(available), funds.balance, isOnlyRequest)
            const hold = yield* this.#placeWithin(request, price, budget)
            if (hold !== undefined) return hold
          }
        }
        if (monotonicMillisOf(clock) >= deadline || isAbandoned()) return yield* refuse()
        yield* Effect.interruptible(waitForTurn(waiter))
      }
    })
  }

  /**
   * Places the hold with the output cap that the budget covers. Returns undefined if another request used the credit
   * first.
   */
  #placeWithin(
    { reduction: _reduction, rateLimit: _rateLimit, tokens, ...request }: HoldRequest,
    price: Pricing.HoldTerms,
    budget: NanoUsd
  ): Effect.Effect<Hold | undefined, HoldRefused> {
    const cap = Pricing.maxOutputWithin(price, budget) ?? 0
    // Omits the rate limit, because the refused placement has already counted the request.
    const reducedRequest: HoldRequest = {
      ...request,
      isReduced: true,
      upTo: Pricing.holdAmount(price, cap),
      tokens: tokens && { ...tokens, amount: price.promptTokens + cap }
    }
    return this.#services.place(reducedRequest).pipe(
      Effect.map((hold): Hold => ({ ...hold, cap })),
      Effect.catchTag("InsufficientCredits", () => Effect.succeed(undefined))
    )
  }

  #leave(org: string, queue: Array<Waiter>, waiter: Waiter): void {
    queue.splice(queue.indexOf(waiter), 1)
    if (queue.length === 0) this.#queues.delete(org)
    else queue[0]?.wake()
  }
}
