import { JSONSchema, ParseResult, Schema } from "effect"
import { reasoningEfforts } from "../../domain/Model.ts"
import { fromUsd, NanoUsd } from "../../domain/Money.ts"
import { Numeral } from "./Source.ts"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

const oneOf = <const Words extends readonly [string, ...ReadonlyArray<string>]>(...words: Words) =>
  Schema.Literal(...words).annotations({
    message: () => ({ message: `must be one of ${words.join(", ")}`, override: true })
  })

const Digits = Schema.instanceOf(Numeral, { title: "a number", jsonSchema: { type: "number" } })

const dearestUsd = NanoUsd(1_000_000_000_000_000n)
const Nano = Schema.declare((amount): amount is NanoUsd => typeof amount === "bigint")

const Usd = Schema.transformOrFail(Digits.annotations({ jsonSchema: { type: "number", minimum: 0 } }), Nano, {
  strict: true,
  decode: (numeral, _, ast) => {
    const amount = fromUsd(numeral.text)
    const refuse = (message: string) => ParseResult.fail(new ParseResult.Type(ast, numeral, message))
    if (amount === undefined) return refuse("must be a plain decimal of USD with at most nine places, such as 0.15")
    if (amount < 0n) return refuse("must not be negative")
    if (amount > dearestUsd) return refuse("must be at most 1000000 USD")
    return ParseResult.succeed(amount)
  },
  encode: (amount, _, ast) => ParseResult.fail(new ParseResult.Forbidden(ast, amount, "decode only"))
})

const integer = (minimum: number, maximum: number) =>
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

const Tokens = integer(1, 1_000_000_000)
const Seconds = integer(1, 3600)

const Day = Schema.transformOrFail(
  Schema.String.annotations({ jsonSchema: { type: "string", format: "date" } }),
  Schema.Number,
  {
    strict: true,
    decode: (text, _, ast) => {
      const at = /^\d{4}-\d\d-\d\d$/.test(text) ? new Date(`${text}T00:00:00Z`) : undefined
      return at !== undefined && !Number.isNaN(at.getTime()) && at.toISOString().startsWith(text)
        ? ParseResult.succeed(at.getTime() / 1000)
        : ParseResult.fail(new ParseResult.Type(ast, text, "must be a date such as 2026-07-21"))
    },
    encode: (seconds) => ParseResult.succeed(new Date(seconds * 1000).toISOString().slice(0, 10))
  }
)

const text = (pattern: RegExp, message: string) =>
  Schema.String.pipe(Schema.pattern(pattern, { description: message, message: () => message }))
const Name = text(/^\S+$/, "must be a name without spaces")
const ModelId = text(/^[A-Za-z0-9][\w.:/-]*$/, "must be letters, digits and . _ - : / only")

/** The mistake to catch is a key pasted in the place of a variable's name: the message must not repeat it. */
const VariableName = text(/^[A-Z][A-Z0-9_]*$/, "must be the name of an environment variable, in capitals")

const isHttpUrl = (value: string): boolean => {
  if (!URL.canParse(value)) return false
  const { protocol, username, password, search, hash } = new URL(value)
  return (protocol === "https:" || protocol === "http:") && `${username}${password}${search}${hash}` === ""
}
const BaseUrl = Schema.String.pipe(
  Schema.filter(isHttpUrl, {
    message: () => "must be an http or https address without user, query or fragment",
    jsonSchema: { format: "uri", pattern: "^https?://" }
  })
)

const Headers = Schema.Record({ key: Schema.String, value: text(/^[\t\x20-\x7e]*$/, "must be one line of ASCII") })
const Options = Schema.Record({ key: Schema.String, value: Schema.Unknown }).annotations({
  jsonSchema: { type: "object" }
})

const Capability = oneOf("tools", "vision", "response_format", "web_search")
const Capabilities = Schema.Array(Capability)
const Resolution = oneOf("1K", "2K", "4K")
const ReferenceImage = oneOf("none", "optional", "required")
const Reasoning = Schema.Union(
  Schema.Literal("binary", "none"),
  Schema.NonEmptyArray(Schema.Literal(...reasoningEfforts))
).annotations({
  message: () => ({ message: "must be none, binary, or a list of low, medium, high, xhigh", override: true })
})
const SecondsAs = Schema.Union(
  Schema.Literal("none"),
  Schema.String.pipe(Schema.pattern(/^\d+s?$/)),
  integer(1, 3600)
).annotations({ message: () => ({ message: 'must be none, or written as 8, "8" or "8s"', override: true }) })

const tokenPrices = { prompt_per_1m_usd: Usd, completion_per_1m_usd: Usd }
const cachePrices = { cached_prompt_per_1m_usd: optional(Usd), cache_write_per_1m_usd: optional(Usd) }
const chatPrices = {
  ...tokenPrices,
  ...cachePrices,
  long_context: optional(Schema.Struct({ above: Tokens, ...tokenPrices, ...cachePrices }))
}
const ChatCost = Schema.Struct(chatPrices)
const Variants = Schema.NonEmptyArray(
  Schema.Struct({ resolution: Resolution, price_usd: Usd, official_usd: optional(Usd) })
)
const VariantCosts = Schema.NonEmptyArray(Schema.Struct({ resolution: Resolution, price_usd: Usd }))
const clipPrices = { per_second_usd: optional(Usd), per_video_usd: optional(Usd) }
const ClipCost = Schema.Struct(clipPrices)

const route = {
  provider: Name,
  model: Name,
  preference: optional(integer(1, 1000)),
  weight: optional(integer(1, 1_000_000)),
  options: optional(Options)
}
const ChatRoute = Schema.Struct({
  ...route,
  /** Narrows what the model can to what this route can. */
  capabilities: optional(Capabilities),
  reasoning: optional(Schema.Literal("none")),
  cost: optional(ChatCost)
})
const ImageRoute = Schema.Struct({
  ...route,
  edit: optional(Schema.Boolean),
  edit_model: optional(Name),
  resolutions: optional(Schema.NonEmptyArray(Resolution)),
  cost: optional(Schema.Struct({ per_image_usd: optional(Usd), variants: optional(VariantCosts) }))
})
const VideoRoute = Schema.Struct({
  ...route,
  reference_image: optional(ReferenceImage),
  image_model: optional(Name),
  seconds: optional(Schema.NonEmptyArray(Seconds)),
  seconds_as: optional(SecondsAs),
  cost: optional(ClipCost)
})

const model = { id: ModelId, created: optional(Day) }

/** What a family says of its models, which may say otherwise. `max_output` is a ceiling over theirs. */
const rules = {
  max_output: optional(Tokens),
  reasoning: optional(Reasoning),
  capabilities: optional(Capabilities),
  image_tokens: optional(Tokens),
  web_search_tokens: optional(Tokens)
}

export const ChatModelEntry = Schema.Struct({
  ...model,
  surface: Schema.Literal("chat"),
  family: Name,
  context_length: Tokens,
  ...rules,
  pricing: Schema.Struct({ ...chatPrices, official: optional(Schema.Struct(tokenPrices)) }),
  routes: Schema.NonEmptyArray(ChatRoute)
})
export type ChatModelEntry = typeof ChatModelEntry.Type

export const ImageModelEntry = Schema.Struct({
  ...model,
  surface: Schema.Literal("image"),
  variants: optional(Variants),
  pricing: optional(Schema.Struct({ per_image_usd: Usd, official: optional(Schema.Struct({ per_image_usd: Usd })) })),
  edit: optional(Schema.Boolean),
  routes: Schema.NonEmptyArray(ImageRoute)
})
export type ImageModelEntry = typeof ImageModelEntry.Type

export const VideoModelEntry = Schema.Struct({
  ...model,
  surface: Schema.Literal("video"),
  pricing: Schema.Struct({ ...clipPrices, official: optional(Schema.Struct(clipPrices)) }),
  seconds: Schema.Struct({ allowed: Schema.NonEmptyArray(Seconds), default: Seconds }),
  reference_image: optional(ReferenceImage),
  routes: Schema.NonEmptyArray(VideoRoute)
})
export type VideoModelEntry = typeof VideoModelEntry.Type

export const ModelEntry = Schema.Union(ChatModelEntry, ImageModelEntry, VideoModelEntry)
export type ModelEntry = typeof ModelEntry.Type

export const ProviderEntry = Schema.Struct({
  adapter: Name,
  base_url: optional(BaseUrl),
  credential: optional(VariableName),
  headers: optional(Headers),
  options: optional(Options)
})
export type ProviderEntry = typeof ProviderEntry.Type

export const FamilyEntry = Schema.Struct({
  sampling: Schema.Boolean,
  max_output_policy: optional(oneOf("clamp", "reject")),
  ...rules
})
export type FamilyEntry = typeof FamilyEntry.Type

export const CatalogFile = Schema.Struct({
  providers: Schema.Record({ key: Schema.String, value: ProviderEntry }),
  models: Schema.NonEmptyArray(ModelEntry),
  families: optional(Schema.Record({ key: Schema.String, value: FamilyEntry }))
})

/** The JSON Schema of a catalog file, for editors: what the YAML may say, without the rules across entries. */
export const catalogJsonSchema = (): JSONSchema.JsonSchema7Root => ({
  ...JSONSchema.make(CatalogFile),
  title: "Generation gateway catalog"
})
