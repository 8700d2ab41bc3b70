import { Schema } from "effect"
import { longestPrompt } from "../../domain/Media.ts"
import { isFilled } from "../body/Fields.ts"
import { problem } from "./Decoding.ts"

// The platform's own constraints put generated titles and descriptions into the document.

export const Integer = Schema.Number.pipe(
  Schema.filter((value) => Number.isInteger(value), { jsonSchema: { type: "integer" } })
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

export const upTo = (maxLength: number) => (schema: Schema.Schema<string>) =>
  schema.pipe(Schema.filter((text) => text.length <= maxLength, { jsonSchema: { maxLength } }))

export const atMost =
  (maxItems: number) =>
  <A extends ReadonlyArray<unknown>, I>(schema: Schema.Schema<A, I>) =>
    schema.pipe(Schema.filter((items) => items.length <= maxItems, { jsonSchema: { maxItems } }))

export const described = <A, I>(schema: Schema.Schema<A, I>, description: string) =>
  Schema.optional(schema).annotations({ description })

export const optional = <A, I>(schema: Schema.Schema<A, I>, description?: string) =>
  Schema.optional(Schema.NullOr(schema)).annotations(description === undefined ? {} : { description })

const longest = longestPrompt.toLocaleString("en-US")

/** A form may have sent it as a file. */
const required = (value: unknown) => (value instanceof Uint8Array ? "must be text, not a file" : "is required")

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
