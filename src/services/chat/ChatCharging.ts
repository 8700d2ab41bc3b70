import { type Clock, type Context, Effect } from "effect"
import type { ChatAnswer, ChatRequest, Unread, Usage } from "../../domain/Chat.ts"
import type { Hold } from "../../domain/Hold.ts"
import type { ChatModel, ChatPricing, Route } from "../../domain/Model.ts"
import { type NanoUsd, zero } from "../../domain/Money.ts"
import * as Pricing from "../../domain/Pricing.ts"
import { type HoldRequest, Ledger } from "../ledger/Ledger.ts"
import * as Metrics from "../metrics/Metrics.ts"
import { type RequestUsage, tokenCounts } from "../requests/RequestCounts.ts"
import { type RequestEntry, rowOf } from "../requests/RequestEntry.ts"
import type { RequestRecord } from "../requests/RequestRecord.ts"
import { LogLimit } from "../routing/LogLimit.ts"
import { Failpoint } from "../runtime/Failpoint.ts"
import * as Monotonic from "../runtime/Monotonic.ts"
import { withSpan } from "../tracing/Tracing.ts"
import { type Measured, measureUsage, type Received } from "./ChatUsage.ts"
import { TokenCounter } from "./TokenCounter.ts"

/** A chat to answer, and its record. */
export interface ChatTask {
  readonly model: ChatModel
  /** After the model's rules were applied. */
  readonly request: ChatRequest
  readonly record: RequestRecord
  /** A hold that the balance does not cover is lowered, or waits for others to close. */
  readonly hasFittedHold?: boolean | undefined
  /** When its deadlines begin, on the monotonic clock, if its hold or its pictures took time; else with its first call. */
  readonly since?: number | undefined
}

export interface ChargedAnswer {
  readonly answer: ChatAnswer
  readonly usage: Usage
  readonly charge: NanoUsd
}

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

  return (
    record: RequestRecord,
    route: Route | undefined,
    { unread }: { readonly unread: ReadonlyArray<Unread> }
  ): Effect.Effect<void> => {
    const routeId = route?.id ?? "none"
    const now = Monotonic.millisOf(clock)
    return Effect.forEach(
      unread,
      ({ detail, part }) => {
        const { note, what } = reports[part]
        record.notes.add(note)
        Metrics.unsafeCount(Metrics.unread, { part, route: routeId })
        if (limitOf(`${part} ${routeId}`).enter(now) === undefined) return Effect.void
        return Effect.annotateLogs(Effect.logWarning(`Route ${routeId} ${what}: ${detail}`), {
          request_id: record.requestId
        })
      },
      { discard: true }
    )
  }
})

const tokenKinds = tokenCounts.map(({ name, usage }) => ({
  labels: { kind: name.replace(/_tokens$/, "") },
  source: usage
}))

const countTokens = (usage: RequestUsage): void => {
  for (const { labels, source } of tokenKinds) Metrics.unsafeUpdate(Metrics.tokens, usage[source] ?? 0, labels)
  if (usage.webSearches) Metrics.unsafeUpdate(Metrics.webSearches, usage.webSearches, {})
}

export interface ChargingServices {
  readonly ledger: Context.Tag.Service<Ledger>
  readonly tokens: Context.Tag.Service<TokenCounter>
  readonly failpoint: Context.Tag.Service<Failpoint>
  readonly clock: Clock.Clock
  readonly reportUnread: Effect.Effect.Success<typeof makeUnreadReporter>
}

export const chargingServices: Effect.Effect<ChargingServices, never, Ledger | TokenCounter> = Effect.gen(function* () {
  return {
    ledger: yield* Ledger,
    tokens: yield* TokenCounter,
    failpoint: yield* Failpoint,
    clock: yield* Effect.clock,
    reportUnread: yield* makeUnreadReporter
  }
})

/** The hold of a chat: the most that it is charged. The request may take `requestMillis` up to its first output. */
export const quote = (
  { hasFittedHold = false, model, record, request }: ChatTask,
  requestMillis: number
): HoldRequest => {
  const { price, upTo } = Pricing.quoteChat(model, request)
  const { concurrency, isDisputed, isOrgCapped, key, org } = record.caller
  return {
    // The same id lets a refund find the log's row by its hold.
    id: record.id,
    org,
    key,
    upTo,
    concurrency,
    isOrgCapped,
    isDisputed,
    rate: record.rate.allowance === undefined ? record.rate : undefined,
    tokens: record.tokens && { use: record.tokens, amount: price.promptTokens + price.cap },
    // The rest of the request's time is for the provider.
    fit: hasFittedHold ? { price, waitMillis: requestMillis / 4, isAbandoned: () => record.departed } : undefined
  }
}

/** Records the hold, and returns what it covers of the task, which was quoted at `quotedAt`. */
export const fitTask = (task: ChatTask, { cap, id }: Hold, quotedAt: number): ChatTask => {
  const { record, request } = task
  record.hold = id
  record.trace?.admit()
  if (cap === undefined) return task
  if (cap < request.maxTokens) {
    record.cap = cap
    record.notes.add("cap_lowered")
    Metrics.capsLowered.unsafeUpdate(1, [])
  }
  return { ...task, request: { ...request, maxTokens: cap }, since: quotedAt }
}

/** Counts what the route's answer used. */
export const measure = Effect.fnUntraced(function* (
  { reportUnread, tokens }: ChargingServices,
  task: ChatTask,
  received: Received,
  route: Route | undefined
) {
  const { record } = task
  const measured = yield* measureUsage(tokens, task, received)
  const stated = received.reported?.statedCost
  if (stated !== undefined) record.addStatedCost(stated)
  if (measured.estimated) {
    record.notes.add("usage_estimated")
    Metrics.usageEstimated.unsafeUpdate(1, [])
  }
  if (measured.isBounded) record.notes.add("usage_bounded")
  if (received.unread.length > 0) yield* reportUnread(record, route, received)
  return measured
})

/** Settles the hold with the price of what was measured. Returns what was charged. */
export const settle = Effect.fnUntraced(function* (
  { clock, failpoint, ledger }: ChargingServices,
  { model, record }: ChatTask,
  hold: Hold,
  { billed, isUnbilled, isWaived, usage }: Measured,
  routeCost: ChatPricing | undefined
) {
  yield* failpoint.reach("before_settle")
  record.usage = billed
  if (routeCost !== undefined) record.cost = isUnbilled ? zero : Pricing.chatCharge(routeCost, usage)
  const price = Pricing.chatCharge(model.pricing, billed)
  const cost = isWaived ? zero : price
  if (cost < price) record.notes.add("charge_waived")
  if (cost > hold.amount) record.notes.add("hold_exceeded")
  const { departed } = record
  const row = rowOf(record.entry({ status: 200, code: null, endedAt: Monotonic.millisOf(clock) }))
  const settling = ledger.settle(hold, cost, { row, usedTokens: billed.prompt + billed.completion })
  const settlement = yield* withSpan(record.trace?.span, "settle", settling)
  record.addSettlement(settlement)
  // That row does not know of a client that left meanwhile.
  if (record.departed !== departed) record.isLogged = false
  countTokens(billed)
  record.countStatedCost()
  yield* failpoint.reach("after_settle")
  return settlement.charged
})

/** Adds what the provider charges for a failed stream; the customer pays nothing. */
export const writeOff = Effect.fnUntraced(function* (
  { tokens }: ChargingServices,
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
