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
import { countStatedCost, entryOf, type RequestRecord } from "../requests/RequestRecord.ts"
import type { ProviderRouter } from "../routing/ProviderRouter.ts"
import { Failpoint } from "../runtime/Failpoint.ts"
import { LogLimit } from "../runtime/LogLimit.ts"
import * as Monotonic from "../runtime/Monotonic.ts"
import type { ReserveMemory } from "../runtime/RequestMemory.ts"
import { withSpan } from "../tracing/Tracing.ts"
import { type Measured, measureUsage, type Received } from "./ChatUsage.ts"
import { TokenCounter } from "./TokenCounter.ts"

/** A chat to answer, and its record. */
export interface ChatTask {
  readonly model: ChatModel
  /** After the model's rules were applied. */
  readonly request: ChatRequest
  readonly record: RequestRecord
  /** For what is kept beside the body. */
  readonly reserveMemory?: ReserveMemory | undefined
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
        record.note(note)
        Metrics.unsafeCount(Metrics.unread, { part, route: routeId })
        if (limitOf(`${part} ${routeId}`).enter(now) === undefined) return Effect.void
        return Effect.annotateLogs(Effect.logWarning(`Route ${routeId} ${what}: ${detail}`), {
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

export interface HoldingServices extends ChargingServices {
  readonly router: Context.Tag.Service<ProviderRouter>
  /** What a request may take up to its first output. */
  readonly requestMillis: number
}

/**
 * Holds the most that the chat can cost while `use` runs, with the part of the task that the hold covers. Only what `use`
 * says can be interrupted.
 */
export const withHeldTask = Effect.fnUntraced(function* <A, E, R>(
  { clock, ledger, requestMillis, router }: HoldingServices,
  task: ChatTask,
  use: (task: ChatTask, hold: Hold) => Effect.Effect<A, E, R>
) {
  const { model, record, request } = task
  yield* router.admit(model, request)
  record.facts.trace?.resolve(model.id, request.stream)
  const quotedAt = Monotonic.millisOf(clock)
  return yield* ledger.withHold(quote(task, requestMillis), (hold) => use(fitTask(task, hold, quotedAt), hold))
}, Effect.uninterruptible)

/** The hold of a chat: the most that it is charged. The request may take `requestMillis` up to its first output. */
const quote = ({ hasFittedHold = false, model, record, request }: ChatTask, requestMillis: number): HoldRequest => {
  const { price, upTo } = Pricing.quoteChat(model, request)
  const { caller, id, rateLimit } = record.facts
  const { concurrency, isDisputed, isOrgCapped, key, org, tpm } = caller
  return {
    // The same id lets a refund find the log's row by its hold.
    id,
    org,
    key,
    upTo,
    concurrency,
    isOrgCapped,
    isDisputed,
    rateLimit: record.summary.rate === undefined ? rateLimit : undefined,
    tokens: tpm === undefined ? undefined : { limit: tpm, amount: price.promptTokens + price.cap },
    onAllowed: (allowed) => record.add({ type: "allowed", ...allowed }),
    // The rest of the request's time is for the provider.
    fit: hasFittedHold ? { price, waitMillis: requestMillis / 4, isAbandoned: () => record.summary.hasLeft } : undefined
  }
}

/** Records the hold, and returns what it covers of the task, which was quoted at `quotedAt`. */
const fitTask = (task: ChatTask, { cap, id }: Hold, quotedAt: number): ChatTask => {
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

/** Counts what the route's answer used. */
export const measure = (
  { reportUnread, tokens }: ChargingServices,
  task: ChatTask,
  received: Received,
  route: Route | undefined
): Effect.Effect<Measured> =>
  Effect.flatMap(measureUsage(tokens, task, received), (measured) => {
    const { record } = task
    const stated = received.reported?.statedCost
    if (stated !== undefined) record.add({ type: "stated", cost: stated })
    if (measured.estimated) {
      record.note("usage_estimated")
      Metrics.usageEstimated.unsafeUpdate(1, [])
    }
    if (measured.isBounded) record.note("usage_bounded")
    return received.unread.length === 0
      ? Effect.succeed(measured)
      : Effect.as(reportUnread(record, route, received), measured)
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
  const spent = routeCost && (isUnbilled ? zero : Pricing.chatCharge(routeCost, usage))
  record.add({ type: "measured", usage: billed, cost: spent })
  const price = Pricing.chatCharge(model.pricing, billed)
  const cost = isWaived ? zero : price
  if (cost < price) record.note("charge_waived")
  if (cost > hold.amount) record.note("hold_exceeded")
  const { summary } = record
  const { hasLeft } = summary
  const row = rowOf(entryOf(summary, { status: 200, code: null }, Monotonic.millisOf(clock)))
  const settling = ledger.settle(hold, cost, { row, usedTokens: billed.prompt + billed.completion })
  const settlement = yield* withSpan(record.facts.trace, "settle", settling)
  // The row does not know of a client that left meanwhile.
  record.settled(settlement, summary.hasLeft === hasLeft)
  countTokens(billed)
  countStatedCost(summary)
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
  const { attempts, cost: settled, statedCost } = task.record.summary
  if (settled !== undefined || statedCost !== undefined) return
  attempts.state(received.reported?.statedCost ?? undefined)
  if (routeCost === undefined) return
  const { usage } = yield* measureUsage(tokens, task, received)
  attempts.spend(Pricing.chatCharge(routeCost, usage))
})
