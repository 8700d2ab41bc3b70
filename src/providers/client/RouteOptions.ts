import { Either, identity, type ParseResult, Schema } from "effect"
import type { RouteBase, RouteOptions } from "../../domain/Model.ts"
import { oneOf, optional } from "../../services/catalog/EntryFields.ts"

export { oneOf, optional }

export const withDefault = <A, I>(schema: Schema.Schema<A, I>, value: A) =>
  Schema.optionalWith(schema, { exact: true, default: () => value })

/** What the host has a fee for: each search, or each request that may search. */
export const searchFee = optional(oneOf("search", "request"))

export interface OptionsDecoder<A> {
  readonly decode: (options: RouteOptions) => Either.Either<A, ParseResult.ParseError>
  /** Dies on invalid options, which the catalog rules out. */
  readonly of: (route: RouteBase) => A
}

/** Decodes each options object once: a catalog's never change. */
export const makeOptions = <A, I, B>(schema: Schema.Schema<A, I>, build: (decoded: A) => B): OptionsDecoder<B> => {
  const decodeOnce = Schema.decodeUnknownEither(schema, { errors: "all", onExcessProperty: "error" })
  const known = new WeakMap<RouteOptions, Either.Either<B, ParseResult.ParseError>>()
  const decode = (options: RouteOptions) => {
    const before = known.get(options)
    if (before !== undefined) return before
    const decoded = Either.map(decodeOnce(options), build)
    known.set(options, decoded)
    return decoded
  }
  return { decode, of: ({ options }) => Either.getOrThrow(decode(options)) }
}

/** For a wire without options: an empty struct would take any. */
export const noOptions = makeOptions(
  Schema.Struct({}).pipe(
    Schema.filter((given) =>
      Object.keys(given).map((name) => ({ path: [name], message: "unknown key; none is known" }))
    )
  ),
  identity
)
