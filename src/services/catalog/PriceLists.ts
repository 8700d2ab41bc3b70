import { createHash } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Array as Arr, Context, Effect, Layer, Schema } from "effect"
import type { ChatPricing, Model } from "../../domain/Model.ts"
import { NanoUsdFromRow, zero } from "../../domain/Money.ts"
import { ratesAt } from "../../domain/Pricing.ts"

/** In nano-USD per million tokens, of requests whose prompt has more than `above` tokens. */
const Tier = Schema.Struct({
  above: Schema.Number,
  prompt: NanoUsdFromRow,
  cached_prompt: NanoUsdFromRow,
  cache_write: NanoUsdFromRow,
  cache_write_1h: NanoUsdFromRow,
  completion: NanoUsdFromRow
})

/** Every rate by itself: what a missing one stands for may change. `PriceInvariants.ts` reads it in SQL. */
const PriceList = Schema.Struct({
  tiers: Schema.NonEmptyArray(Tier),
  /** In nano-USD per thousand. */
  web_search: NanoUsdFromRow
})

const encode = Schema.encodeSync(Schema.parseJson(PriceList))
const Row = Schema.Struct({ rates: PriceList })
const decodeRows = Schema.decodeUnknown(Schema.Array(Row))

const tierOf = (pricing: ChatPricing, above: number): typeof Tier.Type => {
  const { cachedPrompt, cacheWrite, cacheWriteHour, completion, prompt } = ratesAt(pricing, above + 1)
  return {
    above,
    prompt,
    cached_prompt: cachedPrompt,
    cache_write: cacheWrite,
    cache_write_1h: cacheWriteHour,
    completion
  }
}

const textOf = (pricing: ChatPricing): string => {
  const { longContext, webSearch = zero } = pricing
  const base = tierOf({ ...pricing, longContext: undefined }, 0)
  const tiers = longContext === undefined ? ([base] as const) : ([base, tierOf(pricing, longContext.above)] as const)
  return encode({ tiers, web_search: webSearch })
}

const ids = new WeakMap<ChatPricing, string>()

/** The same for the same rates, on all instances: a PostgreSQL bigint in decimal. */
export const priceIdOf = (pricing: ChatPricing): string => {
  const known = ids.get(pricing)
  if (known !== undefined) return known
  const id = createHash("sha256").update(textOf(pricing)).digest().readBigInt64BE().toString()
  ids.set(pricing, id)
  return id
}

const pricingOf = ({ tiers: [base, long], web_search }: typeof PriceList.Type): ChatPricing => {
  const ratesOf = (tier: typeof Tier.Type) => ({
    prompt: tier.prompt,
    completion: tier.completion,
    cachedPrompt: tier.cached_prompt,
    cacheWrite: tier.cache_write,
    cacheWriteHour: tier.cache_write_1h
  })
  return { ...ratesOf(base), webSearch: web_search, longContext: long && { above: long.above, ...ratesOf(long) } }
}

/** With those that begin later. */
const chatPricingsOf = (model: Model): ReadonlyArray<ChatPricing> => [
  ...(model.surface === "chat" ? [model.pricing] : []),
  ...(model.next === undefined ? [] : chatPricingsOf(model.next.model))
]

/** Writes the rates of all models down. */
export const keepPriceLists = (sql: SqlClient.SqlClient, models: ReadonlyArray<Model>) => {
  const lists = Arr.dedupeWith(
    models.flatMap(chatPricingsOf).map((pricing) => ({ id: priceIdOf(pricing), rates: textOf(pricing) })),
    (one, other) => one.id === other.id
  )
  return sql`
    INSERT INTO price_lists (id, rates)
    SELECT id, rates::jsonb FROM json_to_recordset(${JSON.stringify(lists)}::json) AS list (id bigint, rates text)
    ON CONFLICT (id) DO NOTHING`
}

export class PriceLists extends Context.Tag("gateway/PriceLists")<
  PriceLists,
  {
    /** The rates of a `price_id` of the request log, if they are kept. */
    readonly find: (id: string) => Effect.Effect<ChatPricing | undefined>
  }
>() {
  static readonly layer = Layer.effect(
    PriceLists,
    Effect.map(SqlClient.SqlClient, (sql) =>
      PriceLists.of({
        find: (id) =>
          Effect.flatMap(sql`SELECT rates FROM price_lists WHERE id = ${id}`, decodeRows).pipe(
            Effect.map(([row]) => row && pricingOf(row.rates)),
            Effect.orDie
          )
      })
    )
  )
}
