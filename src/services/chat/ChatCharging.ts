import { Effect } from "effect"
import type { ChatAnswer, ChatRequest, Unread, Usage } from "../../domain/Chat.ts"
import { InsufficientCredits } from "../../domain/Failure.ts"
import { balanceShares, type Hold } from "../../domain/Hold.ts"
import type { ChatModel, ChatPricing } from "../../domain/Model.ts"
import { max, min, NanoUsd, zero } from "../../domain/Money.ts"
import { availableOf } from "../../domain/Organization.ts"
import * as Pricing from "../../domain/Pricing.ts"
import { type HoldRefused, type HoldRequest, Ledger } from "../ledger/Ledger.ts"
import * as Metrics from "../metrics/Metrics.ts"
import { type RequestUsage, tokenCounts } from "../requests/RequestCounts.ts"
import { type RequestEntry, rowOf } from "../requests/RequestEntry.ts"
import type { RequestRecord } from "../requests/RequestRecord.ts"
import { ProviderRouter } from "../routing/ProviderRouter.ts"
import { Failpoint } from "../runtime/Failpoint.ts"
import { ensuringSync, flatMapEager, uninterruptibly } from "../runtime/Fibers.ts"
import { LogLimit } from "../runtime/LogLimit.ts"
import * as Monotonic from "../runtime/Monotonic.ts"
import { withSpan } from "../tracing/Tracing.ts"
import { type Measured, measureUsage, type Received } from "./ChatUsage.ts"
import { TokenCounter } from "./TokenCounter.ts"

interface Report {
  readonly note: RequestEntry["notes"][number]
  readonly what: string
}

const reports: Readonly<Record<Unread["part"], Report>> = {
  stop_reason: { note: "stop_reason_unknown", what: "ended an answer for a reason that the gateway does not know" },
  usage: { note: "usage_unexplained", what: "counted tokens that the parts of its usage do not explain" },
  block: { note: "block_unknown", what: "put a part into an answer that the gateway does not know" }
}

/** Reports the parts of answers that the gateway cannot read: by notes, a metric, and one log line a minute for each route. */
export const makeUnreadReporter = Effect.map(Effect.clock, (clock) => {
  const limits = new Map<string, LogLimit>()

  const limitOf = (key: string): LogLimit => {
    const limit = limits.get(key) ?? new LogLimit()
    limits.set(key, limit)
    return limit
  }

  return (record: RequestRecord, { unread }: { readonly unread: ReadonlyArray<Unread> }): Effect.Effect<void> => {
    const route = record.route?.id ?? "none"
    const now = Monotonic.millisOf(clock)
    return Effect.forEach(
      unread,
      ({ detail, part }) => {
        const { note, what } = reports[part]
        record.notes.add(note)
        Metrics.unsafeCount(Metrics.unread, { part, route })
        if (limitOf(`${part} ${route}`).enter(now) === undefined) return Effect.void
        return Effect.annotateLogs(Effect.logWarning(`Route ${route} ${what}: ${detail}`), {
          request_id: record.requestId
        })
      },
      { discard: true }
    )
  }
})

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
const makeHoldFitting = (requestTimeoutMillis: number) =>
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

/** An admitted chat: what to answer, and the record of it. */
export interface ChatTask {
  readonly model: ChatModel
  /** After the model's rules were applied. */
  readonly request: ChatRequest
  readonly record: RequestRecord
  /** A hold that the balance does not cover is lowered, or waits for others to close. */
  readonly hasFittedHold?: boolean | undefined
  /** On the monotonic clock: when it began to wait for its hold. */
  readonly since?: number | undefined
}

export interface ChargedAnswer {
  readonly answer: ChatAnswer
  readonly usage: Usage
  readonly charge: NanoUsd
}

const tokenKinds = tokenCounts.map(({ name, usage }) => ({
  labels: { kind: name.replace(/_tokens$/, "") },
  source: usage
}))

const countTokens = (usage: RequestUsage): void => {
  for (const { labels, source } of tokenKinds) Metrics.unsafeUpdate(Metrics.tokens, usage[source] ?? 0, labels)
  if (usage.webSearches) Metrics.unsafeUpdate(Metrics.webSearches, usage.webSearches, {})
}

export const makeChatCharging = Effect.gen(function* () {
  const ledger = yield* Ledger
  const tokens = yield* TokenCounter
  const failpoint = yield* Failpoint
  const clock = yield* Effect.clock
  const report = yield* makeUnreadReporter
  const fitHold = yield* makeHoldFitting(yield* (yield* ProviderRouter).requestTimeoutMillis)

  /** Places a hold that was refused, if the balance covers a lower cap. */
  const fitToBalance = (task: ChatTask, refused: InsufficientCredits) => {
    const { model, record, request } = task
    const { concurrency, isDisputed, isOrgCapped, key, org } = record.caller
    const since = Monotonic.millisOf(clock)
    const wanted = { id: record.id, org, key, concurrency, isOrgCapped, isDisputed }
    return Effect.map(fitHold(model, request, wanted, record, refused), ({ cap, hold }) => {
      if (cap < request.maxTokens) {
        record.cap = cap
        record.notes.add("cap_lowered")
        Metrics.capsLowered.unsafeUpdate(1, [])
      }
      return { hold, task: { ...task, request: { ...request, maxTokens: cap }, since } }
    })
  }

  /** Releases the hold at the end if nothing has closed it. */
  const withHold = <A, E>(task: ChatTask, use: (held: Hold, task: ChatTask) => Effect.Effect<A, E>) =>
    uninterruptibly(() => {
      const { hasFittedHold: isLimitedToShare = false, model, record, request } = task
      const { caller, rate, tokens: tokenUse } = record
      const { concurrency, isDisputed, isOrgCapped, key, org } = caller
      record.trace?.resolve(model.id, request.stream)
      const { price, upTo } = Pricing.quoteChat(model, request)
      // The same id lets a refund find the log's row by its hold.
      const id = record.id
      const allowance = rate.allowance === undefined ? rate : undefined
      const tokens = tokenUse && { use: tokenUse, amount: price.promptTokens + price.cap }
      const payer = { org, key, concurrency, isOrgCapped, isDisputed }
      const admitted = ledger.admit({ ...payer, id, upTo, rate: allowance, isLimitedToShare, tokens })
      let admittedTask = task
      const placeFitted = (refused: InsufficientCredits) =>
        Effect.map(fitToBalance(task, refused), (lowered) => {
          admittedTask = lowered.task
          return lowered.hold
        })
      return Effect.flatMap(
        isLimitedToShare ? Effect.catchTag(admitted, "InsufficientCredits", placeFitted) : admitted,
        (hold) => {
          record.hold = hold.id
          record.trace?.admit()
          return Effect.matchCauseEffect(
            Effect.suspend(() => flatMapEager(failpoint.reach("after_hold"), () => use(hold, admittedTask))),
            {
              onFailure: (cause) => Effect.zipRight(ledger.release(hold), Effect.failCause(cause)),
              onSuccess: (done) => (ledger.isOpen(hold) ? Effect.as(ledger.release(hold), done) : Effect.succeed(done))
            }
          )
        }
      )
    })

  /** Returns what was charged. */
  const settle = (
    { model, record }: ChatTask,
    held: Hold,
    { billed, isUnbilled, isWaived, usage }: Measured,
    routeCost: ChatPricing | undefined
  ) =>
    flatMapEager(failpoint.reach("before_settle"), () => {
      record.usage = billed
      if (routeCost !== undefined) record.cost = isUnbilled ? zero : Pricing.chatCharge(routeCost, usage)
      const price = Pricing.chatCharge(model.pricing, billed)
      const cost = isWaived ? zero : price
      if (cost < price) record.notes.add("charge_waived")
      if (cost > held.amount) record.notes.add("hold_exceeded")
      const { departed } = record
      const row = rowOf(record.entry({ status: 200, code: null, endedAt: Monotonic.millisOf(clock) }))
      return Effect.flatMap(
        withSpan(
          record.trace?.span,
          "settle",
          ledger.settle(held, cost, { row, usedTokens: billed.prompt + billed.completion })
        ),
        (settlement) => {
          record.addSettlement(settlement)
          // That row does not know of a client that left meanwhile.
          if (record.departed !== departed) record.isLogged = false
          countTokens(billed)
          record.countStatedCost()
          return flatMapEager(failpoint.reach("after_settle"), () => Effect.succeed(settlement.charged))
        }
      )
    })

  const measure = (task: ChatTask, received: Received) =>
    flatMapEager(measureUsage(tokens, task, received), (measured) => {
      const stated = received.reported?.statedCost
      if (stated !== undefined) task.record.addStatedCost(stated)
      if (measured.estimated) {
        task.record.notes.add("usage_estimated")
        Metrics.usageEstimated.unsafeUpdate(1, [])
      }
      if (measured.isBounded) task.record.notes.add("usage_bounded")
      return received.unread.length === 0
        ? Effect.succeed(measured)
        : Effect.as(report(task.record, received), measured)
    })

  /** What the provider charges for a failed stream; the customer pays nothing. */
  const writeOff = Effect.fnUntraced(function* (
    task: ChatTask,
    received: Received,
    routeCost: ChatPricing | undefined
  ) {
    const { attempts, cost: settled, statedCost } = task.record
    if (settled !== undefined || statedCost !== undefined) return
    attempts.state(received.reported?.statedCost ?? undefined)
    if (routeCost === undefined) return
    const { usage } = yield* measureUsage(tokens, task, received)
    attempts.spend(Pricing.chatCharge(routeCost, usage))
  })

  return { withHold, measure, settle, writeOff }
})
