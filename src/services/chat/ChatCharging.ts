import { Effect } from "effect"
import type { ChatAnswer, ChatRequest, Usage } from "../../domain/Chat.ts"
import type { InsufficientCredits } from "../../domain/Failure.ts"
import type { Hold } from "../../domain/Hold.ts"
import type { ChatModel, ChatPricing } from "../../domain/Model.ts"
import { type NanoUsd, zero } from "../../domain/Money.ts"
import * as Pricing from "../../domain/Pricing.ts"
import { Ledger } from "../ledger/Ledger.ts"
import * as Metrics from "../metrics/Metrics.ts"
import { type RequestUsage, tokenCounts } from "../requests/RequestCounts.ts"
import { rowOf } from "../requests/RequestEntry.ts"
import type { RequestRecord } from "../requests/RequestRecord.ts"
import { ProviderRouter } from "../routing/ProviderRouter.ts"
import { Failpoint } from "../runtime/Failpoint.ts"
import { flatMapEager, uninterruptibly } from "../runtime/Fibers.ts"
import * as Monotonic from "../runtime/Monotonic.ts"
import { withSpan } from "../tracing/Tracing.ts"
import { type Measured, measureUsage, type Received } from "./ChatUsage.ts"
import { makeHoldFitting } from "./HoldFitting.ts"
import { TokenCounter } from "./TokenCounter.ts"
import { makeUnreadReporter } from "./UnreadReporter.ts"

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
