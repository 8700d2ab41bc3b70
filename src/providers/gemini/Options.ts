import { identity, Schema } from "effect"
import type { Feature, RouteOptions } from "../../domain/Model.ts"
import { fitOptions } from "../chat/WireRules.ts"
import { makeOptions, oneOf, optional, searchFee } from "../client/RouteOptions.ts"

export const Options = Schema.Struct({
  thinking: optional(oneOf("level", "budget", "none")),
  call_signatures: optional(Schema.Boolean),
  search_fee: searchFee,
  any_schema: fitOptions.any_schema,
  call_id_length: fitOptions.call_id_length,
  tool_name_length: fitOptions.tool_name_length,
  api: optional(oneOf("generate", "predict")),
  image_size: optional(Schema.Boolean),
  aspect_ratio: optional(Schema.String.pipe(Schema.pattern(/^\d+:\d+$/, { message: () => "must be written as 16:9" })))
})
export type Options = typeof Options.Type

const chat: ReadonlyArray<Feature> = ["tools", "vision", "response_format", "web_search", "sampling"]

export const chatFeatures = ({ thinking }: RouteOptions): ReadonlySet<Feature> =>
  new Set(thinking === "none" ? chat : [...chat, "reasoning"])

export const imageFeatures = ({ api, image_size }: RouteOptions): ReadonlySet<Feature> => {
  const resolutions: ReadonlyArray<Feature> = image_size === false ? [] : ["1K", "2K", "4K"]
  const edit: ReadonlyArray<Feature> = api === "predict" ? [] : ["edit"]
  return new Set([...resolutions, ...edit, "size", "aspect_ratio"])
}

export const options = makeOptions(Options, identity)
