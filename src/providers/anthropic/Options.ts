import { Either, Schema } from "effect"
import type { Feature, Route } from "../../domain/Model.ts"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })
const withDefault = <A, I>(schema: Schema.Schema<A, I>, value: A) =>
  Schema.optionalWith(schema, { exact: true, default: () => value })

/** What a route's `options` may say. */
export const Options = Schema.Struct({
  auth: withDefault(Schema.Literal("x-api-key", "bearer"), "x-api-key"),
  version: withDefault(Schema.String.pipe(Schema.pattern(/^\d{4}-\d{2}-\d{2}$/)), "2023-06-01"),
  thinking: withDefault(Schema.Literal("adaptive", "budget", "always"), "adaptive"),
  thinking_off: optional(Schema.Literal("disabled", "between_tools")),
  forced_tools: withDefault(Schema.Boolean, true),
  inline_images: optional(Schema.Boolean)
})
export type Options = typeof Options.Type

/** This wire has no sampling, no format of an answer and no search that the gateway asks for. */
export const features = (): ReadonlySet<Feature> => new Set(["tools", "vision", "reasoning"])

const decode = Schema.decodeUnknownEither(Options, { errors: "all", onExcessProperty: "error" })

/** A route's options, or what is wrong with them. */
export const optionsOf = (route: Route): Either.Either<Options, string> =>
  Either.mapLeft(decode(route.options), ({ message }) => `the route's options are wrong: ${message}`)
