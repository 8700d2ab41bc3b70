import { isDeepStrictEqual } from "node:util"
import { Predicate } from "effect"
import { resolveLocal } from "../../domain/JsonSchema.ts"
import { asFields, asList, type Fields } from "../client/Json.ts"

/** Steps are counted, not timed, for the same value each time; one takes about a microsecond. */
export interface Run {
  readonly root: unknown
  steps: number
}

const maxEntries = 1_000
const maxParts = 50_000
const maxText = 10_000
const maxLevels = 100
const maxTypes = 7
const maxFacets = 200

/** A copy of a schema's first parts: what is beyond them allows everything. */
export const bound = (schema: unknown): unknown => {
  let parts = maxParts
  const copy = (value: unknown, levels: number): unknown => {
    if (typeof value === "string") return value.slice(0, maxText)
    const isList = Array.isArray(value)
    if (!isList && !Predicate.isRecord(value)) return value
    if (levels === 0 || parts <= 0) return true
    const kept = isList ? value.slice(0, maxEntries) : Object.keys(value).slice(0, maxEntries)
    parts -= kept.length
    if (isList) return kept.map((part) => copy(part, levels - 1))
    return Object.fromEntries(kept.map((name) => [name, copy(value[name], levels - 1)]))
  }
  return copy(schema, maxLevels)
}

export const spend = (run: Run, steps: number): boolean => {
  run.steps -= steps
  return run.steps > 0
}

export const isSpent = ({ steps }: Run): boolean => steps <= 0

/** Never a property of the prototype. */
export const own = (fields: object, name: string): unknown =>
  Object.hasOwn(fields, name) ? Reflect.get(fields, name) : undefined

/** The names in a list, or of properties; none once the steps are spent. */
export const namesIn = (run: Run, given: unknown): ReadonlyArray<string> => {
  if (isSpent(run)) return []
  const names = Array.isArray(given) ? given.filter(Predicate.isString) : Object.keys(asFields(given))
  spend(run, names.length >> 3)
  return names
}

const typesOf = ({ type }: Fields): ReadonlyArray<unknown> | undefined =>
  typeof type === "string" ? [type] : Array.isArray(type) ? type.slice(0, maxTypes) : undefined

export const choicesOf = (schema: Fields): ReadonlyArray<unknown> | undefined => {
  if ("const" in schema) return [schema.const]
  return "enum" in schema ? asList(schema.enum) : undefined
}

const keywords: ReadonlyArray<readonly [type: string, keys: string]> = [
  ["object", "properties required additionalProperties patternProperties minProperties propertyNames"],
  ["array", "items prefixItems minItems maxItems contains uniqueItems"],
  ["string", "pattern minLength maxLength format"],
  ["number", "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf"]
]

/** Those that every facet allows, or the one that the keywords are about where no facet names any. */
export const typesAllowed = (facets: ReadonlyArray<Fields>): ReadonlyArray<unknown> => {
  const lists = facets.map(typesOf).filter(Predicate.isNotUndefined)
  if (lists.length === 0) {
    const isUsed = (key: string): boolean => facets.some((facet) => key in facet)
    return [keywords.find(([, keys]) => keys.split(" ").some(isUsed))?.[0] ?? "string"]
  }
  const allows = (list: ReadonlyArray<unknown>, type: unknown): boolean =>
    list.includes(type) || (type === "integer" && list.includes("number"))
  return [...new Set(lists.flat())].filter((type) => lists.every((list) => allows(list, type)))
}

export const positions = ({ additionalItems, items, prefixItems }: Fields) =>
  Array.isArray(items) ? { prefix: asList(items), rest: additionalItems } : { prefix: asList(prefixItems), rest: items }

/** Undefined allows anything; customers' patterns are never executed: unlisted names get the first pattern's schema. */
export const propertySchema = (run: Run, schema: Fields, name: string): unknown => {
  const properties = asFields(schema.properties)
  if (Object.hasOwn(properties, name)) return properties[name]
  const byPattern = asFields(schema.patternProperties)
  const [pattern] = namesIn(run, byPattern)
  return pattern === undefined ? schema.additionalProperties : byPattern[pattern]
}

/** True, which allows everything, where `$ref` leads out or nowhere. */
export const dereference = (run: Run, { $ref: reference }: Fields): ReadonlyArray<unknown> => {
  if (typeof reference !== "string") return []
  spend(run, reference.length >> 2)
  return [resolveLocal(asFields(run.root), reference) ?? true]
}

/** A schema's distance from an end, to choose the branch that stops a recursion. */
const reach = (schema: unknown): number => {
  const fields = asFields(schema)
  if ("$ref" in fields) return 2
  return (typesOf(fields) ?? []).some((type) => type === "object" || type === "array") ? 1 : 0
}

const branches = (run: Run, given: unknown, nearestFirst: boolean): ReadonlyArray<unknown> => {
  if (given === undefined) return [true]
  const list = asList(given)
  spend(run, list.length >> 1)
  return nearestFirst ? list.toSorted((one, other) => reach(one) - reach(other)) : list
}

/** The ways to satisfy all `schemas`, each as schemas without branches; `nearestFirst` prefers ends of recursion. */
export function* alternatives(
  run: Run,
  [head, ...rest]: ReadonlyArray<unknown>,
  nearestFirst: boolean,
  facets: ReadonlyArray<Fields> = []
): Generator<ReadonlyArray<Fields>> {
  const hasSteps = spend(run, 1 + ((rest.length + facets.length) >> 4))
  if (head === undefined || facets.length > maxFacets || !hasSteps) yield facets
  else if (!Predicate.isRecord(head)) {
    if (head !== false) yield* alternatives(run, rest, nearestFirst, facets)
  } else {
    const always = [...dereference(run, head), ...asList(head.allOf)]
    const conditions = head.if === undefined ? [[]] : [[head.if, head.then ?? true], [head.else ?? true]]
    for (const any of branches(run, head.anyOf, nearestFirst)) {
      for (const one of branches(run, head.oneOf, nearestFirst)) {
        for (const condition of conditions) {
          yield* alternatives(run, [...always, any, one, ...condition, ...rest], nearestFirst, [...facets, head])
        }
      }
    }
  }
}

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
  const types = typesOf(schema)
  if (types?.some((type) => hasType(type, value)) === false) return schema.nullable === true && value === null
  const choices = choicesOf(schema)
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
  const { prefix, rest } = positions(schema)
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
        check(propertySchema(run, schema, name), value[name]) &&
        check(schema.propertyNames, name) &&
        hasAll(own(asFields(schema.dependentRequired), name)) &&
        check(own(asFields(schema.dependentSchemas), name), value)
    )
  )
}

const isAllowed = (run: Run, schema: Fields, holds: (schema: unknown) => boolean): boolean => {
  const { allOf, anyOf, oneOf } = schema
  if (!dereference(run, schema).every(holds) || !asList(allOf).every(holds)) return false
  if (anyOf !== undefined && !asList(anyOf).some(holds)) return false
  if (oneOf !== undefined && asList(oneOf).filter(holds).length !== 1) return false
  if (schema.not !== undefined && holds(schema.not) && run.steps > 0) return false
  return schema.if === undefined || holds(holds(schema.if) ? schema.then : schema.else)
}
