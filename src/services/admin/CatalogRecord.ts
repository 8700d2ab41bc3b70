import { Schema } from "effect"
import type { Offer } from "../catalog/Offer.ts"
import type { Margin } from "../catalog/Surface.ts"
import { onModel } from "../catalog/Surfaces.ts"
import { TextOrNull, Usd } from "../resources/Record.ts"

export const MarginRecord = Schema.Struct({
  unit: Schema.String.annotations({ description: "Such as `prompt per 1M`, `1K image`, `8 s clip`." }),
  price_usd: Usd,
  cost_usd: Schema.NullOr(Usd).annotations({ description: "Null where the catalog has none." }),
  margin_usd: Schema.NullOr(Usd),
  margin_pct: Schema.NullOr(Schema.Number)
}).annotations({ identifier: "Margin" })
type MarginRecord = typeof MarginRecord.Type

export const ModelRecord = Schema.Struct({
  id: Schema.String,
  surface: Schema.Literal("chat", "image", "video"),
  callable: Schema.Boolean,
  sandboxed: Schema.Boolean,
  reason: TextOrNull.annotations({ description: "Why it is off." }),
  routes: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      provider: Schema.String,
      preference: Schema.Number,
      weight: Schema.Number,
      blocked: TextOrNull.annotations({ description: "Why it cannot be called." }),
      margins: Schema.Array(MarginRecord)
    })
  )
}).annotations({ identifier: "CatalogModel" })
export type ModelRecord = typeof ModelRecord.Type

const percent = (price: bigint, cost: bigint) => (price === 0n ? null : Number(((price - cost) * 1000n) / price) / 10)

const marginRecord = ({ cost, price, unit }: Margin): MarginRecord => ({
  unit,
  price_usd: price,
  cost_usd: cost ?? null,
  margin_usd: cost === undefined ? null : price - cost,
  margin_pct: cost === undefined ? null : percent(price, cost)
})

/** With every route, callable or not. */
export const modelRecord = ({ blocked, callable, model, reason, sandboxed }: Offer): ModelRecord => ({
  id: model.id,
  surface: model.surface,
  callable: callable !== undefined,
  sandboxed,
  reason: reason ?? null,
  routes: onModel(model, (surface, own, routes) =>
    routes.map((route) => ({
      id: route.id,
      provider: route.provider.name,
      preference: route.preference,
      weight: route.weight,
      blocked: blocked.get(route.id) ?? null,
      margins: surface.margins(own, route).map(marginRecord)
    }))
  )
})

export const isLoss = ({ margin_usd }: MarginRecord): boolean => margin_usd !== null && margin_usd < 0n

/** One line for every price below its cost. */
export const lossesOf = (models: ReadonlyArray<ModelRecord>): ReadonlyArray<string> =>
  models.flatMap(({ routes }) =>
    routes.flatMap(({ id, margins }) =>
      margins.filter(isLoss).map(({ unit }) => `${id}: the price of ${unit} is below what the provider charges`)
    )
  )

/** As `lossesOf`, of what the models become. */
export const laterLossesOf = (offers: ReadonlyArray<Offer>): ReadonlyArray<string> =>
  offers.flatMap((offer): ReadonlyArray<string> => {
    const { next } = offer.model
    if (next === undefined) return []
    const later = { ...offer, model: next.model }
    const known = new Set(lossesOf([modelRecord(offer)]))
    const fresh = lossesOf([modelRecord(later)]).filter((loss) => !known.has(loss))
    return [...fresh.map((loss) => `from ${new Date(next.at).toISOString()} on, ${loss}`), ...laterLossesOf([later])]
  })
