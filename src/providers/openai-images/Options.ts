import { Either, Schema } from "effect"
import type { ImageRoute } from "../../domain/Model.ts"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })
const Size = Schema.NonEmptyString
const Fields = Schema.Record({ key: Schema.String, value: Schema.Unknown })

/** What a route's `options` may say. Fields of a request that they leave out are not sent. */
export const Options = Schema.Struct({
  quality: optional(Schema.Literal("auto", "low", "medium", "high", "standard")),
  size: optional(Size),
  sizes: optional(Schema.Struct({ "1K": optional(Size), "2K": optional(Size), "4K": optional(Size) })),
  background: optional(Schema.Literal("auto", "opaque", "transparent")),
  output_format: optional(Schema.Literal("png", "jpeg", "webp")),
  moderation: optional(Schema.Literal("auto", "low")),
  response_format: optional(Schema.Literal("b64_json")),
  edits: optional(Schema.Literal("multipart", "json")),
  image_field: optional(Schema.Literal("image[]", "image")),
  extra_body: optional(Fields),
  extra_edit_body: optional(Fields)
})
export type Options = typeof Options.Type

const decode = Schema.decodeUnknownEither(Options, { errors: "all", onExcessProperty: "error" })

/** A route's options, or what is wrong with them: a misspelt `quality` would be paid at the dearest. */
export const optionsOf = (route: ImageRoute): Either.Either<Options, string> =>
  Either.mapLeft(decode(route.options), ({ message }) => `the route's options are wrong: ${message}`)
