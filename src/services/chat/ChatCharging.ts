import { type Context, Effect } from "effect"
import type { ChatAnswer, ChatRequest, UnknownPart, Usage } from "../../domain/Chat.ts"
import type { InvalidRequest } from "../../domain/Failure.ts"
import type { Hold } from "../../domain/Hold.ts"
import type { ChatModel, ChatPricing, Route } from "../../domain/Model.ts"
import { type NanoUsd, zero } from "../../domain/Money.ts"
import * as Pricing from "../../domain/Pricing.ts"
import { termsOf } from "../ledger/HoldPlacement.ts"
import { type HoldRefused, type HoldRequest, Ledger } from "../ledger/Ledger.ts"
import * as Metrics from "../metrics/Metrics.ts"
import { type RequestUsage, tokenCounts } from "../requests/RequestCounts.ts"
import { type RequestEntry, rowOf } from "../requests/RequestEntry.ts"
import { countStatedCost, entryOf, type RequestRecord } from "../requests/RequestRecord.ts"
import type { ProviderRouter } from "../routing/ProviderRouter.ts"
import { LogLimit } from "../runtime/EventLoop.ts"
import { Failpoint } from "../runtime/Failpoint.ts"
import type { ReserveMemory } from "../runtime/InFlight.ts"
import { monotonicMillisOf } from "../runtime/System.ts"
import { withSpan } from "../tracing/Tracing.ts"
import { type MeasuredUsage, measureUsage, type ReceivedOutput } from "./ChatUsage.ts"
import { TokenCounter } from "./TokenCounter.ts"

export interface ChatTask {
  readonly model: ChatModel
  /** The request to which the rules of the model were already applied. */
  readonly request: ChatRequest
  readonly record: RequestRecord
  /** Reserves memory for images, in addition to the body. */
  readonly reserveMemory?: ReserveMemory | undefined
  /** If the balance is too low, the hold is reduced or waits for other holds to close. */
  readonly canReduceHold?: boolean | undefined
  /**
   * The start of the deadlines on the monotonic clock, if the hold or images took time. Default: the first provider
   * call.
   */
  readonly since?: number | undefined
}

export interface ChargedAnswer {
  readonly answer: ChatAnswer
  readonly usage: Usage
  readonly charge: NanoUsd
}

interface Report {
  readonly note: RequestEntry["notes"][number]
  readonly text: string
}

const reports: Readonly<Record<UnknownPart["part"], Report>> = {
  stop_reason: { note: "stop_reason_unknown", text: "returned an unknown stop reason" },
  usage: { note: "usage_unexplained", text: "reported tokens that the parts of its usage do not explain" },
  block: { note: "block_unknown", text: "returned an unknown content block" }
}

/**
 * Makes a function that reports unreadable parts of an answer: as notes of the request, in a metric, and in one log
 * line per minute for each part and route.
 */
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
    { unread }: { readonly unread: ReadonlyArray<UnknownPart> }
  ): Effect.Effect<void> => {
    const routeId = route?.id ?? "none"
    const now = monotonicMillisOf(clock)
    return Effect.forEach(
      unread,
      ({ detail, part }) => {
        const { note, text } = reports[part]
        record.note(note)
        Metrics.unsafeCount(Metrics.unread, { part, route: routeId })
        if (limitOf(`${part} ${routeId}`).enter(now) === undefined) return Effect.void
        return Effect.annotateLogs(Effect.logWarning(`Route ${routeId} ${text}: ${detail}`), {
          request_id: record.facts.requestId
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

export const chargingServices = Effect.gen(function* () {
  return {
    ledger: yield* Ledger,
    tokens: yield* TokenCounter,
    failpoint: yield* Failpoint,
    clock: yield* Effect.clock,
    reportUnread: yield* makeUnreadReporter
  }
})
type ChargingServices = Effect.Effect.Success<typeof chargingServices>

export interface HoldingServices extends ChargingServices {
  readonly router: Context.Tag.Service<ProviderRouter>
  /** The time limit up to the first output. */
  readonly requestMillis: number
}

/**
 * Holds the maximum cost of the chat request while `use` runs. `use` gets the task with the output cap that the hold
 * covers. Only parts that `use` makes interruptible can be interrupted.
 */
export const withHeldTask = <A, E, R>(
  { clock, ledger, requestMillis, router }: HoldingServices,
  task: ChatTask,
  use: (task: ChatTask, hold: Hold) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | HoldRefused | InvalidRequest, R> => {
  const { model, record, request } = task
  return Effect.flatMap(router.admit(model, request), () => {
    record.facts.trace?.resolve(model.id, request.stream)
    const quotedAt = monotonicMillisOf(clock)
    return ledger.withHold(quote(task, requestMillis), (hold) => use(applyHold(task, hold, quotedAt), hold))
  }).pipe(Effect.uninterruptible)
}

/**
 * Returns the hold for the maximum charge of a chat request. `requestMillis` is the time limit up to the first output.
 */
const quote = ({ canReduceHold = false, model, record, request }: ChatTask, requestMillis: number): HoldRequest => {
  const { price, upTo } = Pricing.quoteChat(model, request)
  const { caller, id, rateLimit } = record.facts
  const { tpm } = caller
  return {
    // The log row gets the same id, so a refund finds the row.
    id,
    ...termsOf(caller),
    upTo,
    rateLimit: record.summary.rate === undefined ? rateLimit : undefined,
    tokens: tpm === undefined ? undefined : { limit: tpm, amount: price.promptTokens + price.cap },
    onAllowances: (allowed) => record.add({ type: "allowed", ...allowed }),
    // The hold may wait for a quarter of the time limit, because the provider needs the rest.
    reduction: canReduceHold
      ? { price, waitMillis: requestMillis / 4, isAbandoned: () => record.summary.hasLeft }
      : undefined
  }
}

/** Records the hold, and returns the task with its output cap. Deadlines of the task start at `quotedAt`. */
const applyHold = (task: ChatTask, { cap, id }: Hold, quotedAt: number): ChatTask => {
  const { record, request } = task
  const isLowered = cap !== undefined && cap < request.maxTokens
  record.add({ type: "held", hold: id, cap: isLowered ? cap : undefined })
  record.facts.trace?.admit()
  if (cap === undefined) return task
  if (isLowered) {
    record.note("cap_lowered")
    Metrics.capsLowered.unsafeUpdate(1, [])
  }
  return { ...task, request: { ...request, maxTokens: cap }, since: quotedAt }
}

/** Returns the usage of the route's answer. */
export const measure = (
  { reportUnread, tokens }: ChargingServices,
  task: ChatTask,
  received: ReceivedOutput,
  route: Route | undefined
): Effect.Effect<MeasuredUsage> =>
  Effect.flatMap(measureUsage(tokens, task, received), (measurement) => {
    const { record } = task
    const statedCost = received.reported?.statedCost
    if (statedCost !== undefined) record.add({ type: "stated", cost: statedCost })
    if (measurement.isEstimated) {
      record.note("usage_estimated")
      Metrics.usageEstimated.unsafeUpdate(1, [])
    }
    if (measurement.isBounded) record.note("usage_bounded")
    return received.unread.length === 0
      ? Effect.succeed(measurement)
      : Effect.as(reportUnread(record, route, received), measurement)
  })

/** Settles the hold with the price of the usage. Returns the charge. */
export const settle = Effect.fnUntraced(function* (
  { clock, failpoint, ledger }: ChargingServices,
  { model, record }: ChatTask,
  hold: Hold,
  { billed, isFree, isWaived, usage }: MeasuredUsage,
  routeCost: ChatPricing | undefined
) {
  yield* failpoint.reach("before_settle")
  const providerCost = routeCost && (isFree ? zero : Pricing.chatCharge(routeCost, usage))
  record.add({ type: "measured", usage: billed, cost: providerCost })
  const price = Pricing.chatCharge(model.pricing, billed)
  const cost = isWaived ? zero : price
  if (cost < price) record.note("charge_waived")
  if (cost > hold.amount) record.note("hold_exceeded")
  const { summary } = record
  const { hasLeft: hadLeft } = summary
  const logRow = rowOf(entryOf(summary, { status: 200, code: null }, monotonicMillisOf(clock)))
  const settleHold = ledger.settle(hold, cost, { logRow, usedTokens: billed.prompt + billed.completion })
  const settlement = yield* withSpan(record.facts.trace, "settle", settleHold)
  // If the client disconnected during the settlement, the logged row lacks that, so the request is logged again.
  record.settled(settlement, summary.hasLeft === hadLeft)
  countTokens(billed)
  countStatedCost(summary)
  yield* failpoint.reach("after_settle")
  return settlement.charged
})

/** Records the provider's cost of a failed stream, for which the customer pays nothing. */
export const writeOff = Effect.fnUntraced(function* (
  { tokens }: ChargingServices,
  task: ChatTask,
  received: ReceivedOutput,
  routeCost: ChatPricing | undefined
) {
  const { attempts, cost: settled, statedCost } = task.record.summary
  if (settled !== undefined || statedCost !== undefined) return
  attempts.addStatedCost(received.reported?.statedCost ?? undefined)
  if (routeCost === undefined) return
  const { usage } = yield* measureUsage(tokens, task, received)
  attempts.addCost(Pricing.chatCharge(routeCost, usage))
})
