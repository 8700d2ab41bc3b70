import { identity, Schema } from "effect"
import type { Feature } from "../../domain/Model.ts"
import { fitOptions } from "../chat/WireRules.ts"
import { makeOptions, oneOf, optional, withDefault } from "../client/RouteOptions.ts"

export const Options = Schema.Struct({
  auth: withDefault(oneOf("x-api-key", "bearer"), "x-api-key"),
  version: withDefault(Schema.String.pipe(Schema.pattern(/^\d{4}-\d{2}-\d{2}$/)), "2023-06-01"),
  thinking: withDefault(oneOf("adaptive", "budget", "always"), "adaptive"),
  thinking_off: optional(oneOf("disabled", "between_tools")),
  forced_tools: withDefault(Schema.Boolean, true),
  inline_images: optional(Schema.Boolean),
  native: optional(Schema.Boolean),
  /** The categories of refusals before any output that the vendor charges for; `none` is that of one without a category. */
  billed_refusals: optional(Schema.Array(Schema.NonEmptyString)),
  cache: withDefault(oneOf("manual", "auto"), "manual"),
  ...fitOptions
})
export type Options = typeof Options.Type

export const features = (): ReadonlySet<Feature> => new Set(["tools", "vision", "web_search", "reasoning"])

export const options = makeOptions(Options, identity)
