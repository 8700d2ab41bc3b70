import { ParseResult, Predicate, Schema } from "effect"
import { type RouteOptions, reasoningEfforts } from "../../domain/Model.ts"
import { instantOf, moment } from "../../domain/Moment.ts"
import { fromUsd, NanoUsd } from "../../domain/Money.ts"
import { Numeral } from "./CatalogSource.ts"

export const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

export const oneOf = <const Words extends readonly [string, ...ReadonlyArray<string>]>(...words: Words) =>
  Schema.Literal(...words).annotations({
    message: () => ({ message: `must be one of ${words.join(", ")}`, override: true })
  })

const Digits = Schema.instanceOf(Numeral, { title: "a number", jsonSchema: { type: "number" } })

const dearestUsd = NanoUsd(1_000_000_000_000_000n)
const Nano = Schema.declare((amount): amount is NanoUsd => typeof amount === "bigint")

const usdWith = (explain: (usd: number) => string) =>
  Schema.transformOrFail(Digits.annotations({ jsonSchema: { type: "number", minimum: 0 } }), Nano, {
    strict: true,
    decode: (numeral, _, ast) => {
      const amount = fromUsd(numeral.text)
      const refuse = (message: string) => ParseResult.fail(new ParseResult.Type(ast, numeral, message))
      if (amount === undefined) {
        const form = "must be a plain decimal of USD with at most nine places, such as 0.15"
        return refuse(form + explain(Number(numeral.text)))
      }
      if (amount < 0n) return refuse("must not be negative")
      if (amount > dearestUsd) return refuse("must be at most 1000000 USD")
      return ParseResult.succeed(amount)
    },
    encode: (amount, _, ast) => ParseResult.fail(new ParseResult.Forbidden(ast, amount, "decode only"))
  })

export const Usd = usdWith(() => "")

/** Price lists often have prices per token, such as 1.5e-06. */
export const UsdPerMillion = usdWith((usd) =>
  usd > 0 && usd < 0.001 ? ": it looks like a price per token; give the price per million tokens" : ""
)

export const integer = (minimum: number, maximum: number) =>
  Schema.transformOrFail(Digits.annotations({ jsonSchema: { type: "integer", minimum, maximum } }), Schema.Number, {
    strict: true,
    decode: (numeral, _, ast) => {
      const value = Number(numeral.text)
      return /^\d+$/.test(numeral.text) && value >= minimum && value <= maximum
        ? ParseResult.succeed(value)
        : ParseResult.fail(new ParseResult.Type(ast, numeral, `must be an integer of ${minimum} to ${maximum}`))
    },
    encode: (value) => ParseResult.succeed(new Numeral(String(value)))
  })

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

/** What replaces prices or costs, each from a moment on. */
export const dated = <A extends { readonly at: number }, I>(one: Schema.Schema<A, I>) =>
  optional(Schema.NonEmptyArray(one))

const text = (pattern: RegExp, message: string) =>
  Schema.String.pipe(Schema.pattern(pattern, { description: message, message: () => message }))
export const Name = text(/^\S+$/, "must be a name without spaces")
export const ImageSize = text(/^[1-9]\d{1,4}x[1-9]\d{1,4}$/, "must be written as 1536x1024")
export const AspectRatio = text(/^[1-9]\d{0,2}:[1-9]\d{0,2}$/, "must be written as 16:9")
const ModelId = text(/^[A-Za-z0-9][\w.:/-]*$/, "must be letters, digits and . _ - : / only")

/** Catches a secret pasted as a variable's name, so the message must not repeat it. */
export const VariableName = text(/^[A-Z][A-Z0-9_]*$/, "must be the name of an environment variable, in capitals")

const isHttpUrl = (value: string): boolean => {
  if (!URL.canParse(value)) return false
  const { protocol, username, password, search, hash } = new URL(value)
  return (protocol === "https:" || protocol === "http:") && `${username}${password}${search}${hash}` === ""
}
export const BaseUrl = Schema.String.pipe(
  Schema.filter(isHttpUrl, {
    message: () => "must be an http or https address without user, query or fragment",
    jsonSchema: { format: "uri", pattern: "^https?://" }
  })
)

/** A record's schema would take a number for one: here it is an object. */
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
  Schema.compose(Schema.Record({ key: Schema.String, value: text(oneLine, "must be one line of ASCII") }), {
    strict: false
  })
)

/** What the routes and the models of all surfaces have. */
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

/** Defaults of the family's models; `max_output` is a ceiling over theirs. */
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
