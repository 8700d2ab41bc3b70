import { Either } from "effect"
import { fedAt } from "./Drift.ts"
import type { FeedModel } from "./FeedModel.ts"

/** Nano-USD; what a catalog takes at most. */
const dearest = 1_000_000_000_000_000n
const mostTokens = 1_000_000_000

type Prices = { readonly [key: string]: bigint | number | Prices | undefined }

/** Of the feed, in the words of a catalog. */
export interface ProposedPrices {
  readonly prices: Prices
  readonly comments: ReadonlyArray<string>
}

export const isPrice = (amount: bigint | undefined): amount is bigint => amount !== undefined && amount > 0n

const tooDear = "a price of it is above 1000000 USD"

const cacheKeys = [
  ["cachedPrompt", "cached_prompt_per_1m_usd"],
  ["cacheWrite", "cache_write_per_1m_usd"],
  ["cacheWriteHour", "cache_write_1h_per_1m_usd"]
] as const

const isAffordable = (amount: bigint | undefined): boolean => amount === undefined || amount <= dearest

const pricesAt = ({ tiers }: FeedModel, tokens: number) => {
  const [prompt, completion] = [fedAt(tiers, tokens, "prompt"), fedAt(tiers, tokens, "completion")]
  if (!isPrice(prompt) || !isPrice(completion)) return undefined
  const caches = cacheKeys.map(([part, key]) => [key, fedAt(tiers, tokens, part)] as const)
  const stated = caches.filter(([, amount]) => isPrice(amount))
  return {
    amounts: [prompt, completion, ...stated.map(([, amount]) => amount)],
    prices: { prompt_per_1m_usd: prompt, completion_per_1m_usd: completion, ...Object.fromEntries(stated) },
    zeros: caches.filter(([, amount]) => amount === 0n).map(([key]) => key)
  }
}

/** Fails with why a catalog cannot have them. */
export const tokenPrices = (fed: FeedModel, hasSearch: boolean): Either.Either<ProposedPrices, string> => {
  const base = pricesAt(fed, 1)
  if (base === undefined) return Either.left("it has no price of prompt and completion, or 0, which may be unknown")
  const marks = [...new Set(fed.tiers.map(({ above }) => above))].filter((above) => above > 0)
  if (marks.length > 1) return Either.left(`its price changes at several lengths: ${marks.slice(0, 5).join(", ")}`)
  const [above] = marks
  const long = above === undefined ? undefined : pricesAt(fed, above + 1)
  if (above !== undefined && (long === undefined || above > mostTokens)) {
    return Either.left("its price of long prompts is none")
  }
  const search = hasSearch ? fed.webSearch : undefined
  const amounts = [...base.amounts, ...(long?.amounts ?? []), search]
  if (!amounts.every(isAffordable)) return Either.left(tooDear)
  const zeros = [...new Set([...base.zeros, ...(long?.zeros ?? [])])]
  return Either.right({
    prices: {
      ...base.prices,
      web_search_per_1k_usd: search,
      long_context: long && above !== undefined ? { above, ...long.prices } : undefined
    },
    comments: zeros.map((key) => `${key}: 0 in the feed, which may be unknown`)
  })
}

export const unitPrice = (amount: bigint | undefined, unit: string): Either.Either<bigint, string> => {
  if (!isPrice(amount)) return Either.left(`it has no price per ${unit}`)
  return isAffordable(amount) ? Either.right(amount) : Either.left(tooDear)
}
