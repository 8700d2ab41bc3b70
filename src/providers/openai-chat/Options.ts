import { identity, Predicate, Schema } from "effect"
import type { Feature, RouteOptions } from "../../domain/Model.ts"
import { fitOptions } from "../chat/WireRules.ts"
import { makeOptions, oneOf, optional, searchFee } from "../client/RouteOptions.ts"
import { statedCostOption } from "../client/StatedCost.ts"

export const Options = Schema.Struct({
  max_tokens_field: optional(oneOf("max_tokens", "max_completion_tokens")),
  reasoning_history: optional(Schema.Boolean),
  thought_signatures: optional(Schema.Boolean),
  inline_images: optional(Schema.Boolean),
  stop: optional(oneOf("cut")),
  /** The host counts reasoning in `total_tokens` alone. */
  hidden_reasoning: optional(Schema.Boolean),
  system: optional(oneOf("anywhere", "joined", "first")),
  content: optional(oneOf("parts", "text")),
  blank_user: optional(Schema.Boolean),
  /** The form of cache marks; `none` revokes the provider's option. */
  cache: optional(oneOf("none", "manual", "auto", "breakpoints")),
  cache_key: optional(oneOf("none", "prompt_cache_key", "x-grok-conv-id")),
  /** Anything but a mapping revokes the provider's option. */
  web_search: optional(Schema.Unknown),
  search_fee: searchFee,
  ...fitOptions,
  ...statedCostOption
})
export type Options = typeof Options.Type

export const options = makeOptions(Options, identity)

const everywhere: ReadonlyArray<Feature> = ["tools", "vision", "response_format", "sampling", "reasoning"]

/** Hosts differ in how they search: without the option there is none. */
export const features = ({ web_search }: RouteOptions): ReadonlySet<Feature> =>
  new Set(Predicate.isRecord(web_search) ? [...everywhere, "web_search"] : everywhere)
