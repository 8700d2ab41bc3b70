import { Schema } from "effect"
import { longestPrompt } from "../../domain/Media.ts"
import { isArray, isFilled } from "../body/Fields.ts"
import { problem } from "./Decoding.ts"

// The platform's own constraints put generated titles and descriptions into the document.

/** Under another id its descriptions would be left out. */
export const Integer = Schema.Number.pipe(
  Schema.filter((value) => Number.isInteger(value), {
    schemaId: Schema.IntSchemaId,
    jsonSchema: { type: "integer" }
  })
)

export const Filled = Schema.String.pipe(Schema.filter((text) => text !== "", { jsonSchema: { minLength: 1 } }))

export const matching = (pattern: RegExp) =>
  Schema.String.pipe(Schema.filter((text) => pattern.test(text), { jsonSchema: { pattern: pattern.source } }))

export const Anything = Schema.declare((value: unknown): value is unknown => value !== undefined, {
  jsonSchema: { type: ["array", "boolean", "null", "number", "object", "string"] },
  arbitrary: () => (fc) => fc.jsonValue()
})

const isEmpty = (value: unknown): boolean =>
  value === null || value === "" || (typeof value === "object" && Object.keys(value).length === 0)

export const Empty = Schema.declare((value: unknown): value is unknown => isEmpty(value), {
  jsonSchema: { type: ["array", "null", "object", "string"], maxItems: 0, maxLength: 0, maxProperties: 0 },
  arbitrary: () => (fc) => fc.constantFrom<unknown>(null, "", [], {})
})

export const between = (minimum: number, maximum: number) => (schema: Schema.Schema<number>) =>
  schema.pipe(Schema.filter((value) => value >= minimum && value <= maximum, { jsonSchema: { minimum, maximum } }))

export const atLeast = (minimum: number) => (schema: Schema.Schema<number>) =>
  schema.pipe(Schema.filter((value) => value >= minimum, { jsonSchema: { minimum } }))

const isSurrogate = (unit: number, first: number): boolean => (unit & 0xfc00) === first

/** As JSON Schema counts: a pair of surrogates is one character. */
const lengthOf = (text: string): number => {
  let length = text.length
  for (let at = 1; at < text.length; at++) {
    if (isSurrogate(text.charCodeAt(at), 0xdc00) && isSurrogate(text.charCodeAt(at - 1), 0xd800)) length -= 1
  }
  return length
}

export const isWithin = (maxLength: number, text: string): boolean =>
  text.length <= maxLength || (text.length <= 2 * maxLength && lengthOf(text) <= maxLength)

export const upTo = (maxLength: number) => (schema: Schema.Schema<string>) =>
  schema.pipe(Schema.filter((text) => isWithin(maxLength, text), { jsonSchema: { maxLength } }))

export const longestUrl = 8192
/** Only URLs are limited: base64 may stand in their place. */
export const urlLimit = { anyOf: [{ not: { pattern: "^[Hh][Tt][Tt][Pp][Ss]?://" } }, { maxLength: longestUrl }] }

export const atMost =
  (maxItems: number) =>
  <A extends ReadonlyArray<unknown>, I>(schema: Schema.Schema<A, I>) =>
    schema.pipe(Schema.filter((items) => items.length <= maxItems, { jsonSchema: { maxItems } }))

export const described = <A, I>(schema: Schema.Schema<A, I>, description: string) =>
  Schema.optional(schema).annotations({ description })

export const optional = <A, I>(schema: Schema.Schema<A, I>, description?: string) =>
  Schema.optional(Schema.NullOr(schema)).annotations(description === undefined ? {} : { description })

const longest = longestPrompt.toLocaleString("en-US")

/** A form may have sent it as a file, or several times. */
const required = (value: unknown): string => {
  if (value instanceof Uint8Array) return "must be text, not a file"
  return isArray(value) && value.length > 1 ? "must be one text, not several" : "is required"
}

export const modelOf = (kind: string) =>
  Filled.annotations({ ...problem(required), description: `The catalog id of ${kind}.` })

export const promptFor = (description: string) =>
  Filled.pipe(upTo(longestPrompt)).annotations({
    ...problem((value) => (isFilled(value) ? `must have at most ${longest} characters` : required(value))),
    description
  })

export const n = optional(Schema.Literal(1).annotations(problem("must be 1")), "Only 1.")
export const formN = described(Schema.Literal("1", ""), "Only 1.")

export const unsupported = (instead: string) =>
  described(Empty.annotations(problem(`is not supported: ${instead}`)), `Not supported: ${instead}.`)
export const formUnsupported = (instead: string) => described(Schema.Literal(""), `Not supported: ${instead}.`)
