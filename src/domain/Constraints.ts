import { Schema } from "effect"

// These replace Effect's own constraints, which would add generated titles and descriptions to the API document.

/** Has the schema id of `Schema.Int`, because otherwise the API document would omit the descriptions of such fields. */
export const Integer = Schema.Number.pipe(
  Schema.filter((value) => Number.isInteger(value), {
    schemaId: Schema.IntSchemaId,
    jsonSchema: { type: "integer" }
  })
)

export const NonEmptyString = Schema.String.pipe(Schema.filter((text) => text !== "", { jsonSchema: { minLength: 1 } }))

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

/** Counts characters as JSON Schema does: a surrogate pair is one. */
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

export const atMost =
  (maxItems: number) =>
  <A extends ReadonlyArray<unknown>, I>(schema: Schema.Schema<A, I>) =>
    schema.pipe(Schema.filter((items) => items.length <= maxItems, { jsonSchema: { maxItems } }))

export const describedField = <A, I>(schema: Schema.Schema<A, I>, description: string) =>
  Schema.optional(schema).annotations({ description })

/** May be absent but not null. */
export const optionalExact = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

/** May be absent or null. */
export const optional = <A, I>(schema: Schema.Schema<A, I>, description?: string) =>
  Schema.optional(Schema.NullOr(schema)).annotations(description === undefined ? {} : { description })

export const maxNoteLength = 1000
/** A longer reference could exceed PostgreSQL's limit for a row of its unique index. */
export const maxRefLength = 800
