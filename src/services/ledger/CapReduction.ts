import { type Clock, Effect } from "effect"
import { InsufficientCredits } from "../../domain/Failure.ts"
import { balanceShares, type Hold } from "../../domain/Hold.ts"
import { max, min, NanoUsd } from "../../domain/Money.ts"
import { availableOf, type Balance, type OrgId } from "../../domain/Organization.ts"
import * as Pricing from "../../domain/Pricing.ts"
import * as Monotonic from "../runtime/Monotonic.ts"
import type { HoldFit, HoldRefused, HoldRequest } from "./HoldPlacement.ts"

/** In tokens: a shorter answer is of no use. */
const minOutput = 1_024
const maxWaitMillis = 60_000
const pauseMillis = 250
/** Requests of one organization. */
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
 * The amount that a hold may take. Alone: the whole price if it is free, else half of what is free. Beside others: one
 * share of the balance. Never less than the price of the smallest output.
 */
const budgetOf = (price: Pricing.HoldPrice, least: NanoUsd, free: NanoUsd, balance: NanoUsd, isAlone: boolean) => {
  if (!isAlone) return max(least, min(free, NanoUsd(balance / balanceShares)))
  return Pricing.holdFor(price, price.cap) <= free ? free : max(least, NanoUsd(free / 2n))
}

/** Sleeps until the next look at the balance, or until a place in the line is free. */
const pause = (waiter: Waiter): Effect.Effect<void> =>
  Effect.raceFirst(
    Effect.sleep(pauseMillis),
    Effect.async<void>((resume) => {
      waiter.wake = () => resume(Effect.void)
    })
  )

/**
 * Places holds that were refused: with a lower cap of output, and once holds of other requests are closed. First come,
 * first served within an organization.
 */
export class CapReduction {
  readonly #lines = new Map<string, Array<Waiter>>()
  readonly #services: Services

  constructor(services: Services) {
    this.#services = services
  }

  /**
   * Places the request, which was refused. Run it uninterruptibly: it can be interrupted only while it waits. Fails with
   * `InsufficientCredits` after its time, if it is abandoned, and at once if the line is full or the balance too low
   * even without other holds.
   */
  place(request: HoldRequest, fit: HoldFit, refused: InsufficientCredits): Effect.Effect<Hold, HoldRefused> {
    return Effect.suspend(() => {
      const { org } = request
      const line = this.#lines.get(org) ?? []
      const least = Pricing.holdFor(fit.price, Math.min(fit.price.cap, minOutput))
      if (line.length >= maxWaiting) {
        return new InsufficientCredits({ needed: least, available: refused.available, isLeast: true })
      }
      const waiter: Waiter = { wake: () => {} }
      line.push(waiter)
      this.#lines.set(org, line)
      return Effect.ensuring(
        this.#placeInTurn(request, fit, { least, available: refused.available, line, waiter }),
        Effect.sync(() => this.#leave(org, line, waiter))
      )
    })
  }

  #placeInTurn(
    request: HoldRequest,
    { isAbandoned, price, waitMillis }: HoldFit,
    turn: {
      readonly least: NanoUsd
      readonly available: bigint
      readonly line: ReadonlyArray<Waiter>
      readonly waiter: Waiter
    }
  ): Effect.Effect<Hold, HoldRefused> {
    const { balance, clock } = this.#services
    return Effect.gen(this, function* () {
      const { least, line, waiter } = turn
      const until = Monotonic.millisOf(clock) + Math.min(maxWaitMillis, waitMillis)
      let { available } = turn
      const refuse = () => new InsufficientCredits({ needed: least, available, isLeast: true })
      while (true) {
        if (line[0] === waiter) {
          const funds = yield* balance(request.org)
          available = availableOf(funds)
          if (least > funds.balance || funds.balance <= 0n) return yield* refuse()
          if (available > 0n && least <= available) {
            const isAlone = funds.held === 0n && line.length === 1
            const budget = budgetOf(price, least, NanoUsd(available), funds.balance, isAlone)
            const hold = yield* this.#placeWithin(request, price, budget)
            if (hold !== undefined) return hold
          }
        }
        if (Monotonic.millisOf(clock) >= until || isAbandoned()) return yield* refuse()
        yield* Effect.interruptible(pause(waiter))
      }
    })
  }

  /** Undefined if another request was faster. */
  #placeWithin(
    { concurrency, id, isOrgCapped, key, onAllowed, org, tokens }: HoldRequest,
    price: Pricing.HoldPrice,
    budget: NanoUsd
  ): Effect.Effect<Hold | undefined, HoldRefused> {
    const cap = Pricing.outputWithin(price, budget) ?? 0
    // Without its rate unit, which the refused attempt took.
    const lowered: HoldRequest = {
      ...(id === undefined ? {} : { id }),
      org,
      key,
      concurrency,
      isOrgCapped,
      isLowered: true,
      upTo: Pricing.holdFor(price, cap),
      tokens: tokens && { ...tokens, amount: price.promptTokens + cap },
      onAllowed
    }
    return this.#services.place(lowered).pipe(
      Effect.map((hold): Hold => ({ ...hold, cap })),
      Effect.catchTag("InsufficientCredits", () => Effect.succeed(undefined))
    )
  }

  #leave(org: string, line: Array<Waiter>, waiter: Waiter): void {
    line.splice(line.indexOf(waiter), 1)
    if (line.length === 0) this.#lines.delete(org)
    else line[0]?.wake()
  }
}
