import { identity, Schema } from "effect"
import { makeOptions, oneOf, optional } from "../client/RouteOptions.ts"
import { statedCostOption } from "../client/StatedCost.ts"

const Size = Schema.NonEmptyString
const Fields = Schema.Record({ key: Schema.String, value: Schema.Unknown })

/** Absent options are not sent. */
export const Options = Schema.Struct({
  quality: optional(oneOf("auto", "low", "medium", "high", "standard")),
  size: optional(Size),
  sizes: optional(Schema.Struct({ "1K": optional(Size), "2K": optional(Size), "4K": optional(Size) })),
  background: optional(oneOf("auto", "opaque", "transparent")),
  output_format: optional(oneOf("png", "jpeg", "webp")),
  moderation: optional(oneOf("auto", "low")),
  response_format: optional(oneOf("b64_json")),
  edits: optional(oneOf("multipart", "json")),
  image_field: optional(oneOf("image[]", "image")),
  extra_body: optional(Fields),
  extra_edit_body: optional(Fields),
  ...statedCostOption
})
export type Options = typeof Options.Type

export const options = makeOptions(Options, identity)
