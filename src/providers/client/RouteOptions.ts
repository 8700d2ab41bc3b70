import { Either, identity, type ParseResult, Schema } from "effect"
import type { Usage } from "../../domain/Chat.ts"
import type { RouteBase, RouteOptions } from "../../domain/Model.ts"
import { NanoUsd } from "../../domain/Money.ts"
import { oneOf, optional } from "../../services/catalog/EntryFields.ts"
import { asFields, type Fields } from "./JsonFields.ts"

export { oneOf, optional }

export const withDefault = <A, I>(schema: Schema.Schema<A, I>, value: A) =>
  Schema.optionalWith(schema, { exact: true, default: () => value })

/** Whether the provider's search fee is due per search or per request that may search. */
export const searchFee = optional(oneOf("search", "request"))

export interface OptionsDecoder<A> {
  readonly decode: (options: RouteOptions) => Either.Either<A, ParseResult.ParseError>
  /** Returns a route's options. Dies if they are invalid, which the catalog excludes. */
  readonly of: (route: RouteBase) => A
}

/** Makes a decoder that decodes each options object once. The options of a catalog never change. */
export const makeOptions = <A, I, B>(schema: Schema.Schema<A, I>, build: (decoded: A) => B): OptionsDecoder<B> => {
  const decodeOnce = Schema.decodeUnknownEither(schema, { errors: "all", onExcessProperty: "error" })
  const decodedByOptions = new WeakMap<RouteOptions, Either.Either<B, ParseResult.ParseError>>()
  const decode = (options: RouteOptions) => {
    const cachedResult = decodedByOptions.get(options)
    if (cachedResult !== undefined) return cachedResult
    const decoded = Either.map(decodeOnce(options), build)
    decodedByOptions.set(options, decoded)
    return decoded
  }
  return { decode, of: ({ options }) => Either.getOrThrow(decode(options)) }
}

/** The decoder of a wire format without options. An empty struct would accept any value. */
export const noOptions = makeOptions(
  Schema.Struct({}).pipe(
    Schema.filter((options) =>
      Object.keys(options).map((name) => ({ path: [name], message: "unknown key; this adapter has no options" }))
    )
  ),
  identity
)

/** The path of the cost in a body, such as `usage.cost`. The unit is USD, or ticks if the name ends with `_in_usd_ticks`. */
export const statedCostOption = {
  stated_cost: optional(
    Schema.String.pipe(Schema.filter((path) => /^\w+(\.\w+){0,7}$/.test(path) || "must be a path such as usage.cost"))
  )
}

type StatedCostOption = Schema.Struct.Type<typeof statedCostOption>

/** The maximum plausible cost of a request, in USD. */
const maxUsd = 1_000_000
const nanoDigits = 9
/** xAI states costs in ticks: 1e10 ticks are a dollar. */
const tickDigits = 10
const decimal = /^(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/

/** Converts a number by its decimal text, which is exact up to 15 digits, and rounds to a nano-dollar. */
const toNano = (value: unknown, digits: number): NanoUsd | undefined => {
  if (typeof value !== "number" || !(value >= 0) || value > maxUsd * 10 ** digits) return undefined
  const [, integer = "", fraction = "", exponent = "0"] = decimal.exec(String(value)) ?? []
  const scale = Number(exponent) - fraction.length + nanoDigits - digits
  const amount = BigInt(integer + fraction)
  if (scale >= 0) return NanoUsd(amount * 10n ** BigInt(scale))
  const unit = 10n ** BigInt(-scale)
  return NanoUsd((amount + unit / 2n) / unit)
}

/** Returns the cost that a body states at `path`, null if the value is no amount, and undefined if there is no value. */
export const statedCostIn = (body: Fields, path: string | undefined): NanoUsd | null | undefined => {
  if (path === undefined) return undefined
  const names = path.split(".")
  const last = names.pop() ?? ""
  const parent = names.reduce((fields, name) => asFields(fields[name]), body)
  const value = parent[last]
  if (value === undefined || value === null) return undefined
  const statedAmount = toNano(value, last.endsWith("_in_usd_ticks") ? tickDigits : 0)
  // For calls with the operator's own key, OpenRouter states only its fee. The vendor's bill comes on top.
  const upstream = parent.is_byok === true ? (asFields(parent.cost_details).upstream_inference_cost ?? 0) : 0
  const upstreamCost = toNano(upstream, 0)
  return statedAmount === undefined || upstreamCost === undefined ? null : NanoUsd(statedAmount + upstreamCost)
}

/** Adds the cost that the body states if the route has the option `stated_cost`. */
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
