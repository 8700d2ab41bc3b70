import { Either, identity, type ParseResult, Schema } from "effect"
import type { Usage } from "../../domain/Chat.ts"
import type { RouteBase, RouteOptions } from "../../domain/Model.ts"
import { NanoUsd } from "../../domain/Money.ts"
import { oneOf, optional } from "../../services/catalog/EntryFields.ts"
import { asFields, type Fields } from "./Json.ts"

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

/** Where a body states its cost in USD, such as `usage.cost`; a name in `_in_usd_ticks` is in ticks. */
export const statedCostOption = {
  stated_cost: optional(
    Schema.String.pipe(
      Schema.filter((path) => /^\w+(\.\w+){0,7}$/.test(path) || "must be a path of names, such as usage.cost")
    )
  )
}

type StatedCostOption = Schema.Struct.Type<typeof statedCostOption>

/** More than any request costs, in USD. */
const mostUsd = 1_000_000
const nanoDigits = 9
/** xAI's: 1e10 ticks are a dollar. */
const tickDigits = 10
const decimal = /^(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/

/** A JSON number's shortest text is what the host wrote, up to 15 digits: exact, then rounded to a nano-dollar. */
const toNano = (value: unknown, digits: number): NanoUsd | undefined => {
  if (typeof value !== "number" || !(value >= 0) || value > mostUsd * 10 ** digits) return undefined
  const [, whole = "", fraction = "", exponent = "0"] = decimal.exec(String(value)) ?? []
  const scale = Number(exponent) - fraction.length + nanoDigits - digits
  const amount = BigInt(whole + fraction)
  if (scale >= 0) return NanoUsd(amount * 10n ** BigInt(scale))
  const unit = 10n ** BigInt(-scale)
  return NanoUsd((amount + unit / 2n) / unit)
}

/** What a body states as its cost at a path such as `usage.cost`; null: no amount, undefined: nothing. */
export const statedCostIn = (body: Fields, path: string | undefined): NanoUsd | null | undefined => {
  if (path === undefined) return undefined
  const names = path.split(".")
  const last = names.pop() ?? ""
  const parent = names.reduce((fields, name) => asFields(fields[name]), body)
  const value = parent[last]
  if (value === undefined || value === null) return undefined
  const stated = toNano(value, last.endsWith("_in_usd_ticks") ? tickDigits : 0)
  // OpenRouter charges its fee alone for calls with one's own key: the vendor's bill comes on top.
  const upstream = parent.is_byok === true ? (asFields(parent.cost_details).upstream_inference_cost ?? 0) : 0
  const added = toNano(upstream, 0)
  return stated === undefined || added === undefined ? null : NanoUsd(stated + added)
}

/** With the cost that the body states, where the route says that it does. */
export const withStatedCost = (
  usage: Usage | undefined,
  body: Fields,
  { stated_cost }: StatedCostOption
): Usage | undefined => {
  if (stated_cost === undefined || usage === undefined) return usage
  const statedCost = statedCostIn(body, stated_cost)
  return statedCost === undefined ? usage : { ...usage, statedCost }
}

export const answerWithStatedCost = <Answer extends { readonly usage: Usage | undefined }>(
  answer: Answer,
  body: unknown,
  options: StatedCostOption
): Answer =>
  options.stated_cost === undefined
    ? answer
    : { ...answer, usage: withStatedCost(answer.usage, asFields(body), options) }
