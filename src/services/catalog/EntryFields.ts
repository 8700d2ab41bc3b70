import { type Either, ParseResult, Predicate, Schema } from "effect"
import { optionalExact as optional } from "../../domain/Constraints.ts"
import { type Feature, type RouteOptions, reasoningEfforts, Surface } from "../../domain/Model.ts"
import { instantOf, moment } from "../../domain/Moment.ts"
import { fromUsd, NanoUsd } from "../../domain/Money.ts"
import { oneOfWords } from "../../domain/Wording.ts"
import { Numeral } from "./CatalogSource.ts"

export { optional }

export const oneOf = <const Words extends readonly [string, ...ReadonlyArray<string>]>(...words: Words) =>
  Schema.Literal(...words).annotations({
    message: () => ({ message: `must be ${oneOfWords(words)}`, override: true })
  })

const Digits = Schema.instanceOf(Numeral, { title: "a number", jsonSchema: { type: "number" } })

const maxUsd = NanoUsd(1_000_000_000_000_000n)
const Nano = Schema.declare((amount): amount is NanoUsd => typeof amount === "bigint")

const usdWith = (description: string, explain: (usd: number) => string) =>
  Schema.transformOrFail(Digits.annotations({ description, jsonSchema: { type: "number", minimum: 0 } }), Nano, {
    strict: true,
    decode: (numeral, _, ast) => {
      const amount = fromUsd(numeral.text)
      const refuse = (message: string) => ParseResult.fail(new ParseResult.Type(ast, numeral, message))
      if (amount === undefined) {
        const form = "must be a decimal number of USD with at most nine decimals, such as 0.15"
        return refuse(form + explain(Number(numeral.text)))
      }
      if (amount < 0n) return refuse("must not be negative")
      if (amount > maxUsd) return refuse("must be at most 1000000 USD")
      return ParseResult.succeed(amount)
    },
    encode: (amount, _, ast) => ParseResult.fail(new ParseResult.Forbidden(ast, amount, "decode only"))
  })

export const Usd = usdWith("USD, with at most nine decimals.", () => "")

/** A very small amount is refused with a hint, because price lists often have prices per token, such as 1.5e-06. */
export const UsdPerMillion = usdWith("USD per million tokens, with at most nine decimals.", (usd) =>
  usd > 0 && usd < 0.001 ? ": it looks like a price per token; give the price per million tokens" : ""
)

export const integer = (minimum: number, maximum: number) =>
  Schema.transformOrFail(
    Digits.annotations({
      description: `An integer from ${minimum} to ${maximum}.`,
      jsonSchema: { type: "integer", minimum, maximum }
    }),
    Schema.Number,
    {
      strict: true,
      decode: (numeral, _, ast) => {
        const value = Number(numeral.text)
        return /^\d+$/.test(numeral.text) && value >= minimum && value <= maximum
          ? ParseResult.succeed(value)
          : ParseResult.fail(new ParseResult.Type(ast, numeral, `must be an integer from ${minimum} to ${maximum}`))
      },
      encode: (value) => ParseResult.succeed(new Numeral(String(value)))
    }
  )

export const Tokens = integer(1, 1_000_000_000)
export const Seconds = integer(1, 3600)

const Day = Schema.transformOrFail(
  Schema.String.annotations({ jsonSchema: { type: "string", format: "date" } }),
  Schema.Number,
  {
    strict: true,
    decode: (text, _, ast) => {
      const at = /^\d{4}-\d\d-\d\d$/.test(text) ? instantOf(text) : undefined
      return at !== undefined
        ? ParseResult.succeed(at / 1000)
        : ParseResult.fail(new ParseResult.Type(ast, text, "must be a date such as 2026-07-21"))
    },
    encode: (seconds) => ParseResult.succeed(new Date(seconds * 1000).toISOString().slice(0, 10))
  }
)

/** In Unix milliseconds. */
export const Instant = Schema.transformOrFail(
  Schema.String.annotations({ jsonSchema: { type: "string", format: "date-time" } }),
  Schema.Number,
  {
    strict: true,
    decode: (text, _, ast) => {
      const parsed = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d)$/.test(text) ? moment(text) : undefined
      return parsed !== undefined && "at" in parsed
        ? ParseResult.succeed(parsed.at)
        : ParseResult.fail(
            new ParseResult.Type(ast, text, "must be a date and time with its zone, such as 2026-12-01T00:00Z")
          )
    },
    encode: (millis) => ParseResult.succeed(new Date(millis).toISOString())
  }
)

/** A list of later prices or costs. Each applies from its `at` until the next one's. */
export const datedList = <A extends { readonly at: number }, I>(one: Schema.Schema<A, I>) =>
  optional(Schema.NonEmptyArray(one))

const text = (pattern: RegExp, form: string) =>
  Schema.String.pipe(
    Schema.pattern(pattern, {
      description: `${form.charAt(0).toUpperCase()}${form.slice(1)}.`,
      message: () => `must be ${form}`
    })
  )
export const Name = text(/^\S+$/, "a name without spaces")
export const ImageSize = text(/^[1-9]\d{1,4}x[1-9]\d{1,4}$/, "a size in pixels such as 1536x1024")
export const AspectRatio = text(/^[1-9]\d{0,2}:[1-9]\d{0,2}$/, "a ratio such as 16:9")
const ModelId = text(/^[A-Za-z0-9][\w.:/-]*$/, "an id of letters, digits and . _ - : /")

/** The message must not repeat the value, which may be a secret that was pasted instead of the variable's name. */
export const VariableName = text(/^[A-Z][A-Z0-9_]*$/, "the name of an environment variable, in capitals")

const isHttpUrl = (value: string): boolean => {
  if (!URL.canParse(value)) return false
  const { protocol, username, password, search, hash } = new URL(value)
  return (protocol === "https:" || protocol === "http:") && `${username}${password}${search}${hash}` === ""
}
export const BaseUrl = Schema.String.pipe(
  Schema.filter(isHttpUrl, {
    message: () => "must be an http or https URL without user, query or fragment",
    jsonSchema: { format: "uri", pattern: "^https?://" }
  })
)

/** `Schema.Record` would accept a `Numeral`, because it is an object. */
const isMapping = (value: unknown): value is RouteOptions =>
  Predicate.isReadonlyRecord(value) && !(value instanceof Numeral)
export const Options = Schema.declare(isMapping, {
  jsonSchema: { type: "object" },
  message: () => "must be a mapping"
})

const oneLine = /^[\t\x20-\x7e]*$/
export const Headers = Options.annotations({
  jsonSchema: { type: "object", additionalProperties: { type: "string", pattern: oneLine.source } }
}).pipe(
  Schema.compose(Schema.Record({ key: Schema.String, value: text(oneLine, "one line of ASCII") }), {
    strict: false
  })
)

/** The fields that routes and models of all surfaces have. */
export const route = {
  provider: Name,
  model: Name,
  preference: optional(integer(1, 1000)),
  weight: optional(integer(1, 1_000_000)),
  options: optional(Options)
}
export const model = { id: ModelId, created: optional(Day) }

const Capability = oneOf("tools", "vision", "response_format", "web_search")
export const Capabilities = Schema.Array(Capability)
const Reasoning = Schema.Union(
  Schema.Literal("binary", "none"),
  Schema.NonEmptyArray(Schema.Literal(...reasoningEfforts))
).annotations({
  message: () => ({ message: "must be none, binary, or a list of low, medium, high, xhigh", override: true })
})

/**
 * A family's values are defaults for its models, except `max_output`: the lower one of the family's and the model's
 * applies.
 */
export const familyRules = {
  max_output: optional(Tokens),
  reasoning: optional(Reasoning),
  capabilities: optional(Capabilities),
  image_tokens: optional(Tokens),
  web_search_tokens: optional(Tokens),
  max_web_searches: optional(integer(1, 100))
}

export const FamilyEntry = Schema.Struct({
  sampling: Schema.Boolean,
  max_output_policy: optional(oneOf("clamp", "reject")),
  ...familyRules
})
export type FamilyEntry = typeof FamilyEntry.Type

export type Features = (options: RouteOptions) => ReadonlySet<Feature>

export type DecodeOptions = (options: RouteOptions) => Either.Either<unknown, ParseResult.ParseError>

export interface Adapter {
  readonly surfaces: ReadonlyMap<Surface, Features>
  readonly options?: DecodeOptions | undefined
}

export type Adapters = ReadonlyMap<string, Adapter>

const chatFeatures = ["tools", "vision", "response_format", "web_search", "reasoning", "sampling"] as const
export const imageFeatures = ["edit", "1K", "2K", "4K", "size", "aspect_ratio"] as const

export const allFeatures: Features = () => new Set<Feature>([...chatFeatures, ...imageFeatures])
