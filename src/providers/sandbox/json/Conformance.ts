import { isDeepStrictEqual } from "node:util"
import { Predicate } from "effect"
import { asFields, asList, type Fields } from "../../client/Json.ts"
import * as JsonSchema from "./JsonSchema.ts"
import { namesIn, own, type Run, spend } from "./JsonSchema.ts"

const maxDepth = 150

type Check = (schema: unknown, part: unknown) => boolean

/** Ignores `format` and patterns, and is true once the run's steps are spent. */
export const conforms = (run: Run, schema: unknown, value: unknown, depth = 0): boolean => {
  if (schema === false) return false
  if (!Predicate.isRecord(schema) || !spend(run, 1) || depth > maxDepth) return true
  const check: Check = (other, part) => conforms(run, other, part, depth + 1)
  return (
    isListed(run, schema, value) &&
    isShaped(run, schema, value, check) &&
    isAllowed(run, schema, (other) => check(other, value))
  )
}

const hasType = (type: unknown, value: unknown): boolean => {
  if (type === "integer") return Number.isInteger(value)
  if (type === "null") return value === null
  if (type === "array") return Array.isArray(value)
  return type === "object" ? Predicate.isRecord(value) : typeof value === type
}

const isListed = (run: Run, schema: Fields, value: unknown): boolean => {
  const types = JsonSchema.typesOf(schema)
  if (types?.some((type) => hasType(type, value)) === false) return schema.nullable === true && value === null
  const choices = JsonSchema.choicesOf(schema)
  if (choices === undefined) return true
  spend(run, choices.length >> 3)
  if (choices.includes(value) || !Predicate.isObject(value)) return choices.includes(value)
  const parts = JSON.stringify(value).length >> 2
  return !spend(run, choices.length * parts) || choices.some((choice) => isDeepStrictEqual(choice, value))
}

const isShaped = (run: Run, schema: Fields, value: unknown, check: Check): boolean => {
  if (typeof value === "number") return isNumber(schema, value)
  if (typeof value === "string") return isText(run, schema, value)
  if (Array.isArray(value)) return areItems(run, schema, value, check)
  return !Predicate.isRecord(value) || areProperties(run, schema, value, check)
}

const limitIn = (limit: unknown, otherwise: number): number => (typeof limit === "number" ? limit : otherwise)

const isWithin = (size: number, least: unknown, most: unknown): boolean =>
  size >= limitIn(least, size) && size <= limitIn(most, size)

const isNumber = (schema: Fields, value: number): boolean => {
  const step = limitIn(schema.multipleOf, 0)
  return (
    isWithin(value, schema.minimum, schema.maximum) &&
    value > limitIn(schema.exclusiveMinimum, -Infinity) &&
    value < limitIn(schema.exclusiveMaximum, Infinity) &&
    (step === 0 || Number.isInteger(value / step))
  )
}

const isText = (run: Run, { maxLength, minLength }: Fields, value: string): boolean => {
  if (minLength === undefined && maxLength === undefined) return true
  spend(run, value.length >> 3)
  return isWithin(Array.from(value).length, minLength, maxLength)
}

const isUnique = (run: Run, items: ReadonlyArray<unknown>): boolean => {
  const texts = new Set(items.map((item) => JSON.stringify(item)))
  for (const text of texts) spend(run, 1 + (text.length >> 4))
  return texts.size === items.length
}

const areItems = (run: Run, schema: Fields, items: ReadonlyArray<unknown>, check: Check): boolean => {
  const { contains, maxContains, maxItems, minContains = 1, minItems, uniqueItems } = schema
  if (!isWithin(items.length, minItems, maxItems) || (uniqueItems === true && !isUnique(run, items))) return false
  const { prefix, rest } = JsonSchema.positions(schema)
  if (!items.every((item, at) => check(at < prefix.length ? prefix[at] : rest, item))) return false
  if (contains === undefined) return true
  return isWithin(items.filter((item) => check(contains, item)).length, minContains, maxContains)
}

const areProperties = (run: Run, schema: Fields, value: Fields, check: Check): boolean => {
  const hasAll = (needed: unknown) => namesIn(run, asList(needed)).every((name) => Object.hasOwn(value, name))
  const names = namesIn(run, value)
  return (
    isWithin(names.length, schema.minProperties, schema.maxProperties) &&
    hasAll(schema.required) &&
    names.every(
      (name) =>
        check(JsonSchema.propertySchema(run, schema, name), value[name]) &&
        check(schema.propertyNames, name) &&
        hasAll(own(asFields(schema.dependentRequired), name)) &&
        check(own(asFields(schema.dependentSchemas), name), value)
    )
  )
}

const isAllowed = (run: Run, schema: Fields, holds: (schema: unknown) => boolean): boolean => {
  const { allOf, anyOf, oneOf } = schema
  if (!JsonSchema.dereference(run, schema).every(holds) || !asList(allOf).every(holds)) return false
  if (anyOf !== undefined && !asList(anyOf).some(holds)) return false
  if (oneOf !== undefined && asList(oneOf).filter(holds).length !== 1) return false
  if (schema.not !== undefined && holds(schema.not) && run.steps > 0) return false
  return schema.if === undefined || holds(holds(schema.if) ? schema.then : schema.else)
}
