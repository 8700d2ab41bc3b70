import { identity, Schema } from "effect"
import type { Feature } from "../../domain/Model.ts"
import { fitOptions } from "../chat/WireRules.ts"
import { makeOptions, oneOf, optional } from "../client/RouteOptions.ts"
import { statedCostOption } from "../client/StatedCost.ts"

export const Options = Schema.Struct({
  reasoning_summary: optional(oneOf("auto", "concise", "detailed", "none")),
  web_search: optional(Schema.Struct({ type: Schema.String }, { key: Schema.String, value: Schema.Unknown })),
  inline_images: optional(Schema.Boolean),
  native: optional(Schema.Boolean),
  cache: optional(oneOf("none", "breakpoints")),
  ...fitOptions,
  ...statedCostOption
})
export type Options = typeof Options.Type

export const features = (): ReadonlySet<Feature> =>
  new Set(["tools", "vision", "response_format", "web_search", "reasoning"])

export const options = makeOptions(Options, identity)
