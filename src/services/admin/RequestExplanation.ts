import { Array as Arr, Effect, Record, Schema } from "effect"
import type { ChatPricing, Model } from "../../domain/Model.ts"
import { NanoUsd, toUsdPerToken, toUsdText, zero } from "../../domain/Money.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { chatCharge, ratesAt, splitUsage } from "../../domain/Pricing.ts"
import { orderedKinds, tokenKinds } from "../../domain/TokenKinds.ts"
import { PriceLists } from "../catalog/PriceLists.ts"
import { Entry } from "../ledger/Entry.ts"
import { type HoldHistory, type HoldRow, LedgerAdmin } from "../ledger/LedgerAdmin.ts"
import { countFields } from "../requests/RequestColumns.ts"
import { requestCounts } from "../requests/RequestCounts.ts"
import { TextOrNull, TimeOrNull, UnixSeconds, Usd } from "../resources/ResourceRecord.ts"
import type { RequestRow } from "../telemetry/RequestLog.ts"
import { attemptRecord, costOf, LogRecord, logRecord } from "./RequestAdmin.ts"
import { VideoAdmin, VideoRecord } from "./VideoAdmin.ts"

const PricePart = Schema.Struct({
  unit: Schema.String,
  quantity: Schema.Number,
  rate_usd: Usd,
  per: Schema.String,
  /** In USD. A number and not nano-USD, because a part's amount may be a fraction of a nano-dollar. */
  amount_usd: Schema.Number
})

export const PriceRecord = Schema.Struct({
  parts: Schema.Array(PricePart),
  /** The sum of the parts, rounded up to nano-USD. Null if the rates are unknown. */
  price_usd: Schema.NullOr(Usd),
  hold_usd: Schema.NullOr(Usd),
  charge_usd: Usd,
  refunded_usd: Usd,
  /** The charge minus refunds. */
  paid_usd: Usd,
  cost_usd: Schema.NullOr(Usd),
  margin_usd: Schema.NullOr(Usd),
  why: Schema.String
})
export type PriceRecord = typeof PriceRecord.Type

interface RequestFacts {
  readonly row: RequestRow
  readonly money: HoldHistory | undefined
  readonly video: VideoRecord | undefined
  /** The rates at which the request was charged. Undefined for older rows, which lack them. */
  readonly rates?: ChatPricing | undefined
  /** The model in today's catalog. */
  readonly model: Model | undefined
}

type Part = Omit<typeof PricePart.Type, "amount_usd">

const perMillion = "1M tokens"
const perThousand = "1000 searches"

const usageOf = (row: RequestRow) =>
  Record.mapEntries(requestCounts, ({ name, usage }) => [usage, row[countFields[name]] ?? 0])

const chatParts = (pricing: ChatPricing, row: RequestRow): ReadonlyArray<Part> => {
  const { ownTokens: apart, usage } = splitUsage(usageOf(row))
  const rates = ratesAt(pricing, usage.prompt)
  const parts = [
    ...orderedKinds.map((kind) => ({
      unit: `${tokenKinds[kind].unit} tokens`,
      quantity: apart[kind],
      rate_usd: rates[kind],
      per: perMillion
    })),
    { unit: "web searches", quantity: usage.webSearches ?? 0, rate_usd: pricing.webSearch ?? zero, per: perThousand }
  ]
  return parts.filter(({ quantity }) => quantity > 0)
}

/** Computes the price. For a chat request without stored rates, uses today's rates. */
const priceOf = ({ model, money, rates, row, video }: RequestFacts) => {
  if (video !== undefined) {
    const part = { unit: `clip of ${video.seconds} s`, quantity: 1, rate_usd: video.price_usd, per: "clip" }
    return { parts: [part], price: video.price_usd }
  }
  if (row.surface === "image" && money !== undefined) {
    return {
      parts: [{ unit: "image", quantity: 1, rate_usd: money.hold.amount, per: "image" }],
      price: money.hold.amount
    }
  }
  const pricing = rates ?? (model?.surface === "chat" ? model.pricing : undefined)
  if (pricing === undefined || row.promptTokens === null) return undefined
  return { parts: chatParts(pricing, row), price: chatCharge(pricing, usageOf(row)) }
}

const explainCharge = ({ model, money, rates, row, video }: RequestFacts, price: bigint | undefined): string => {
  if (row.notes.includes("replayed")) return "A stored result was replayed, which is free."
  if (money === undefined) return "Nothing was held, so nothing was charged."
  const { amount, charged, state } = money.hold
  if (state === "open") return "Not settled yet. The hold reduces the available balance."
  if (charged === null) return "The hold was released, so nothing was charged."
  if (video !== undefined || row.surface === "image") return "The price was fixed when the request was received."
  if (row.notes.includes("charge_waived") && charged === zero) {
    return "The answer was refused or filtered before any output, which is free."
  }
  if (price === undefined) {
    return model === undefined && rates === undefined
      ? "The model is no longer in the catalog. The charge is the recorded one."
      : "The log has no token counts for it. The charge is the recorded one."
  }
  if (price === charged) return `Quantity times ${rates ? "rate" : "today's rate"} is the charge.`
  if (row.notes.includes("hold_exceeded") && charged === amount) {
    return "The usage costs more than the hold. The charge was reduced to the hold, and you bear the rest."
  }
  if (rates) return `Quantity times rate is ${toUsdText(price)} USD, which differs from the charge.`
  return `Quantity times today's rate is ${toUsdText(price)} USD. The charge is the recorded one. Prices have changed since.`
}

const unitsPerRate: Readonly<Record<string, bigint>> = { [perMillion]: 1_000_000n, [perThousand]: 1_000n }

const amountOf = ({ per, quantity, rate_usd: rate }: Part): number =>
  Number(toUsdPerToken((rate * BigInt(quantity) * 1_000_000n) / (unitsPerRate[per] ?? 1n)))

export const explainPrice = (facts: RequestFacts): PriceRecord => {
  const { money, row } = facts
  const priced = priceOf(facts)
  const cost = costOf(row)
  const refunds = money?.entries.filter(({ kind }) => kind === "refund") ?? []
  const refunded = NanoUsd(refunds.reduce((sum, { amount_usd }) => sum + amount_usd, 0n))
  const charged = money?.hold.charged ?? 0n
  return {
    parts: (priced?.parts ?? []).map((part) => ({ ...part, amount_usd: amountOf(part) })),
    price_usd: priced?.price ?? null,
    hold_usd: money?.hold.amount ?? null,
    charge_usd: charged,
    refunded_usd: refunded,
    paid_usd: charged - refunded,
    cost_usd: cost,
    margin_usd: cost === null ? null : charged - refunded - cost,
    why: explainCharge(facts, priced?.price)
  }
}

const TimelineEvent = Schema.Struct({
  event: Schema.String,
  /**
   * Milliseconds since the request was received. Undefined for an attempt, because the log has only its duration. Times of
   * holds, refunds and ends of videos are the database's and others the gateway's, so they are adjusted to be in order.
   */
  at_ms: Schema.optional(Schema.Number),
  took_ms: Schema.optional(Schema.Number),
  detail: Schema.optional(TextOrNull)
})
type TimelineEvent = typeof TimelineEvent.Type

const joinParts = (...parts: ReadonlyArray<string | number | null | undefined>) =>
  parts.filter((part) => part !== null && part !== undefined && part !== "").join(" ")

const settlementOf = ({ charged, closedAt, state }: HoldRow, since: (at: Date) => number) => {
  if (closedAt === null) return []
  const detail = charged === null ? "nothing charged" : `${toUsdText(charged)} USD charged`
  return [{ event: state, at_ms: since(closedAt), detail }]
}

/** Clocks of the gateway and the database may differ by this much. */
const skewMillis = 1_000

export const timelineOf = ({ money, row, video }: RequestFacts): ReadonlyArray<TimelineEvent> => {
  const since = (at: Date, max = Infinity) => Math.min(max, at.getTime() - row.at.getTime())
  const hold = money?.hold
  const attempts = video?.attempts ?? row.attempts.map(attemptRecord)
  const isLate = video !== undefined || (hold?.closedAt && since(hold.closedAt) > row.totalMs + skewMillis)
  const settled = hold === undefined ? [] : settlementOf(hold, (at) => since(at, isLate ? Infinity : row.totalMs))
  const events: ReadonlyArray<TimelineEvent> = [
    { event: "received", at_ms: 0, detail: joinParts(row.surface, row.model, row.stream ? "stream" : "") },
    ...(hold === undefined
      ? []
      : [
          {
            event: "admitted",
            at_ms: since(hold.createdAt, row.firstByteMs ?? row.totalMs),
            detail: `${toUsdText(hold.amount)} USD reserved`
          }
        ]),
    ...attempts.map(({ cost_usd, detail, ms, outcome, provider, provider_request_id, route, status }, index) => ({
      event: `attempt ${index + 1}`,
      took_ms: ms,
      detail: joinParts(
        route,
        provider,
        outcome,
        status,
        provider_request_id,
        cost_usd === undefined ? "" : `cost ${toUsdText(cost_usd)} USD`,
        detail
      )
    })),
    ...(row.firstByteMs === null ? [] : [{ event: "first byte", at_ms: row.firstByteMs }]),
    ...(isLate ? [] : settled),
    { event: "answered", at_ms: row.totalMs, detail: joinParts(row.status, row.code, row.error?.message) },
    ...(video?.completed_at
      ? [
          {
            event: video.status,
            at_ms: since(video.completed_at),
            detail: joinParts(video.error?.code, video.error?.message) || null
          }
        ]
      : []),
    ...(isLate ? settled : []),
    ...(money?.entries ?? []).flatMap(({ amount_usd: amount, at, kind, note }) =>
      kind === "refund"
        ? [{ event: "refunded", at_ms: since(at), detail: joinParts(toUsdText(amount), "USD", note) }]
        : []
    )
  ]
  const [, ordered] = Arr.mapAccum(events, 0, (previous, event) => {
    const at = Math.max(previous, event.at_ms ?? 0)
    return [at, event.at_ms === undefined ? event : { ...event, at_ms: at }]
  })
  return ordered
}

const HoldRecord = Schema.Struct({
  id: Schema.String,
  amount_usd: Usd,
  state: Schema.Literal("open", "settled", "released"),
  charged_usd: Schema.NullOr(Usd),
  created_at: UnixSeconds,
  closed_at: TimeOrNull
})

export const ExplainedRequest = Schema.Struct({
  ...LogRecord.fields,
  hold: Schema.NullOr(HoldRecord),
  timeline: Schema.Array(TimelineEvent),
  price: PriceRecord,
  entries: Schema.Array(Entry),
  video: Schema.NullOr(VideoRecord)
})
export type ExplainedRequest = typeof ExplainedRequest.Type

const holdRecord = (hold: HoldRow): typeof HoldRecord.Type => ({
  id: hold.id,
  amount_usd: hold.amount,
  state: hold.state,
  charged_usd: hold.charged,
  created_at: hold.createdAt,
  closed_at: hold.closedAt
})

const readMoney = Effect.fnUntraced(function* (scope: OrganizationScope, hold: string | null) {
  if (hold === null) return { money: undefined, video: undefined }
  const ledger = yield* LedgerAdmin
  const videos = yield* VideoAdmin
  // Reads the video before the ledger. In the other order, a video that finishes meanwhile would appear without its charge.
  return yield* Effect.all({ video: videos.findByHold(scope, hold), money: ledger.hold(scope, hold) })
})

/**
 * Returns what happened to a request and how its price was computed. Chat requests without stored rates use those of
 * `models`.
 */
export const explainRequest = Effect.fnUntraced(function* (
  scope: OrganizationScope,
  row: RequestRow,
  models: ReadonlyArray<Model>
) {
  const { money, video } = yield* readMoney(scope, row.holdId)
  const { find } = yield* PriceLists
  const rates = row.priceId === null ? undefined : yield* find(row.priceId)
  const facts = { row, money, video, rates, model: models.find(({ id }) => id === row.model) }
  const price = explainPrice(facts)
  const explained: ExplainedRequest = {
    ...logRecord(row, price.refunded_usd, video?.status ?? null),
    // A video may have been charged after the row was read, so the charge is the ledger's.
    ...(money !== undefined && { charge_usd: price.paid_usd }),
    hold: money === undefined ? null : holdRecord(money.hold),
    timeline: timelineOf(facts),
    price,
    entries: money?.entries ?? [],
    video: video ?? null
  }
  return explained
})

/** Returns why a conversation kept or left its route. Null if no route was preferred for it. */
export const explainPreference = ({ attempts, preferredRoute, route }: RequestRow): string | null => {
  if (preferredRoute === null) return null
  const subject = `${preferredRoute} had the prompt cache of the conversation`
  if (preferredRoute === route) return `${subject} and answered.`
  const attempt = attempts.findLast((candidate) => candidate.route === preferredRoute)
  if (attempt === undefined) return `${subject}, but was not called.`
  const reason = attempt.outcome === "skipped" ? "its circuit was open" : `its attempt ended with ${attempt.outcome}`
  return `${subject}, but ${reason}.`
}
