import { Schema } from "effect"

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

/** Nothing: null, or a text, a list or an object without content. */
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
