import { Either, ParseResult, Schema } from "effect"
import type { Feature, RouteBase, RouteOptions } from "../../domain/Model.ts"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

/** What a route's `options` may say, for chat and for images. */
export const Options = Schema.Struct({
  thinking: optional(Schema.Literal("level", "budget", "none")),
  call_signatures: optional(Schema.Boolean),
  api: optional(Schema.Literal("generate", "predict")),
  image_size: optional(Schema.Boolean),
  aspect_ratio: optional(Schema.String.pipe(Schema.pattern(/^\d+:\d+$/, { message: () => "must be written as 16:9" })))
})
export type Options = typeof Options.Type

const chat: ReadonlyArray<Feature> = ["tools", "vision", "response_format", "web_search", "sampling"]

export const chatFeatures = ({ thinking }: RouteOptions): ReadonlySet<Feature> =>
  new Set(thinking === "none" ? chat : [...chat, "reasoning"])

export const imageFeatures = ({ api, image_size }: RouteOptions): ReadonlySet<Feature> => {
  const sizes: ReadonlyArray<Feature> = image_size === false ? [] : ["1K", "2K", "4K"]
  return new Set(api === "predict" ? sizes : [...sizes, "edit"])
}

const decode = Schema.decodeUnknownEither(Options, { errors: "all", onExcessProperty: "error" })

const read = ({ options }: RouteBase): Either.Either<Options, string> =>
  Either.mapLeft(decode(options), (error) => {
    const issues = ParseResult.ArrayFormatter.formatErrorSync(error)
    const wrong = issues.map(({ message, path }) => `${path.join(".")}: ${message}`).join("; ")
    return `the route's options are wrong: ${wrong}`
  })

const known = new WeakMap<RouteBase["options"], Either.Either<Options, string>>()

/** A route's options, or what is wrong with them. They stay the same for as long as the catalog does. */
export const optionsOf = (route: RouteBase): Either.Either<Options, string> => {
  const before = known.get(route.options)
  if (before !== undefined) return before
  const options = read(route)
  known.set(route.options, options)
  return options
}
