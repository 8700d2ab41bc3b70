import { Schema } from "effect"
import type { ReportedModel } from "../catalog/CatalogReport.ts"
import type { Margin } from "../catalog/Surface.ts"
import { TextOrNull, Usd } from "../resources/Record.ts"

export const MarginRecord = Schema.Struct({
  unit: Schema.String.annotations({ description: "Such as `prompt per 1M`, `1K image`, `8 s clip`." }),
  price_usd: Usd,
  cost_usd: Schema.NullOr(Usd).annotations({ description: "Null where the catalog has none." }),
  margin_usd: Schema.NullOr(Usd),
  margin_pct: Schema.NullOr(Schema.Number)
}).annotations({ identifier: "Margin" })
export type MarginRecord = typeof MarginRecord.Type

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

export const marginRecord = ({ cost, price, unit }: Margin): MarginRecord => ({
  unit,
  price_usd: price,
  cost_usd: cost ?? null,
  margin_usd: cost === undefined ? null : price - cost,
  margin_pct: cost === undefined ? null : percent(price, cost)
})

export const modelRecord = (model: ReportedModel): ModelRecord => ({
  id: model.id,
  surface: model.surface,
  callable: model.callable,
  sandboxed: model.sandboxed,
  reason: model.reason ?? null,
  routes: model.routes.map((route) => ({
    id: route.id,
    provider: route.provider,
    preference: route.preference,
    weight: route.weight,
    blocked: route.blocked ?? null,
    margins: route.margins.map(marginRecord)
  }))
})
