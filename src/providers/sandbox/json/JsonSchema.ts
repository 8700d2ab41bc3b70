import { Either, Encoding, Predicate } from "effect"
import { asFields, asList, type Fields } from "../../client/Json.ts"
import type { Words } from "./Words.ts"

/** Steps are counted, not timed, for the same value each time; one takes about a microsecond. */
export interface Run {
  readonly root: unknown
  readonly words: Words
  steps: number
  texts: number
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

export const typesOf = ({ type }: Fields): ReadonlyArray<unknown> | undefined =>
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
  if (!/^#(\/|$)/.test(reference)) return [true]
  spend(run, reference.length >> 2)
  let found = run.root
  for (const step of reference.split("/").slice(1)) {
    const decoded = Either.getOrElse(Encoding.decodeUriComponent(step), () => step)
    const name = decoded.replaceAll("~1", "/").replaceAll("~0", "~")
    found = Predicate.isObject(found) ? own(found, name) : undefined
  }
  return [found ?? true]
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
