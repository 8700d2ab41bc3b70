import { Either, Schema } from "effect"
import type { Feature, RouteBase } from "../../domain/Model.ts"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

/** What a route's `options` may say. */
export const Options = Schema.Struct({
  reasoning_summary: optional(Schema.Literal("auto", "concise", "detailed", "none")),
  web_search: optional(Schema.Struct({ type: Schema.String }, { key: Schema.String, value: Schema.Unknown })),
  inline_images: optional(Schema.Boolean)
})
export type Options = typeof Options.Type

/** This wire has no sampling. */
export const features = (): ReadonlySet<Feature> =>
  new Set(["tools", "vision", "response_format", "web_search", "reasoning"])

const decode = Schema.decodeUnknownEither(Options, { errors: "all", onExcessProperty: "error" })

/** A route's options, or what is wrong with them. */
export const optionsOf = (route: RouteBase): Either.Either<Options, string> =>
  Either.mapLeft(decode(route.options), ({ message }) => `the route's options are wrong: ${message}`)
