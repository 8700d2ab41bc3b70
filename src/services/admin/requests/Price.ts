import { Record, Schema } from "effect"
import type { ChatPricing, Model } from "../../../domain/Model.ts"
import { NanoUsd, toUsdPerToken, toUsdText, zero } from "../../../domain/Money.ts"
import { chatCharge, ratesAt } from "../../../domain/Pricing.ts"
import type { HoldHistory } from "../../ledger/LedgerAdmin.ts"
import { countFields } from "../../requests/RequestColumns.ts"
import { requestCounts } from "../../requests/RequestCounts.ts"
import { Usd } from "../../resources/Record.ts"
import type { RequestRow } from "../../telemetry/RequestLog.ts"
import type { VideoRecord } from "../VideoAdmin.ts"
import { costOf } from "./Record.ts"

const PricePart = Schema.Struct({
  unit: Schema.String,
  quantity: Schema.Number,
  rate_usd: Usd,
  per: Schema.String,
  /** USD, exact: it may be finer than a nano-dollar. */
  amount_usd: Schema.Number
})

export const PriceRecord = Schema.Struct({
  parts: Schema.Array(PricePart),
  /** What the parts come to, rounded up once; null where the rates are not known. */
  price_usd: Schema.NullOr(Usd),
  hold_usd: Schema.NullOr(Usd),
  charge_usd: Usd,
  refunded_usd: Usd,
  /** The charge less what was refunded. */
  paid_usd: Usd,
  cost_usd: Schema.NullOr(Usd),
  margin_usd: Schema.NullOr(Usd),
  why: Schema.String
})
export type PriceRecord = typeof PriceRecord.Type

export interface Recorded {
  readonly row: RequestRow
  readonly money: HoldHistory | undefined
  readonly video: VideoRecord | undefined
  /** By which it was charged; undefined where they are not kept. */
  readonly rates?: ChatPricing | undefined
  /** As the catalog has it today. */
  readonly model: Model | undefined
}

type Part = Omit<typeof PricePart.Type, "amount_usd">

const perMillion = "1M tokens"
const perThousand = "1000 searches"

const usageOf = (row: RequestRow) =>
  Record.mapEntries(requestCounts, ({ name, usage }) => [usage, row[countFields[name]] ?? 0])

const chatParts = (pricing: ChatPricing, row: RequestRow): ReadonlyArray<Part> => {
  const { cached, cacheWrite, cacheWriteHour, completion, prompt, webSearches } = usageOf(row)
  const rates = ratesAt(pricing, prompt)
  const tokens = (unit: string, quantity: number, rate: bigint) => ({ unit, quantity, rate_usd: rate, per: perMillion })
  const parts = [
    tokens("prompt tokens", prompt - cached - cacheWrite, rates.prompt),
    tokens("cached prompt tokens", cached, rates.cachedPrompt),
    tokens("cache-write tokens", cacheWrite - cacheWriteHour, rates.cacheWrite),
    tokens("one-hour cache-write tokens", cacheWriteHour, rates.cacheWriteHour),
    tokens("completion tokens", completion, rates.completion),
    { unit: "web searches", quantity: webSearches, rate_usd: pricing.webSearch ?? zero, per: perThousand }
  ]
  return parts.filter(({ quantity }) => quantity > 0)
}

/** The price by which a request was charged; of a chat whose rates are not kept, today's. */
const priceOf = ({ model, money, rates, row, video }: Recorded) => {
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

const explain = ({ model, money, rates, row, video }: Recorded, price: bigint | undefined): string => {
  if (row.notes.includes("replayed")) return "A kept result was repeated: free."
  if (money === undefined) return "Nothing was held, so nothing was charged."
  const { amount, charged, state } = money.hold
  if (state === "open") return "Not settled yet: nothing is charged, the hold is taken off what is available."
  if (charged === null) return "The hold was released: nothing was charged."
  if (video !== undefined || row.surface === "image") return "The price was fixed when the request came."
  if (row.notes.includes("charge_waived") && charged === zero) {
    return "The answer was refused or filtered before any output: free, whatever the provider counted."
  }
  if (price === undefined) {
    return model === undefined && rates === undefined
      ? "The catalog has no such model today; the charge is the recorded one."
      : "The log has no token counts of it; the charge is the recorded one."
  }
  if (price === charged) return `${rates ? "The rates at that time" : "Today's rates"} give exactly the charge.`
  if (row.notes.includes("hold_exceeded") && charged === amount) {
    return "The usage costs more than was held: the charge was cut to the hold, and the rest is yours to bear."
  }
  if (rates) return `The rates at that time give ${toUsdText(price)} USD, and the charge is another.`
  return `Today's rates give ${toUsdText(price)} USD; the charge is the recorded one. Prices have changed since.`
}

const unitsPerRate: Readonly<Record<string, bigint>> = { [perMillion]: 1_000_000n, [perThousand]: 1_000n }

const amountOf = ({ per, quantity, rate_usd: rate }: Part): number =>
  Number(toUsdPerToken((rate * BigInt(quantity) * 1_000_000n) / (unitsPerRate[per] ?? 1n)))

export const explainPrice = (recorded: Recorded): PriceRecord => {
  const { money, row } = recorded
  const priced = priceOf(recorded)
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
    why: explain(recorded, priced?.price)
  }
}
