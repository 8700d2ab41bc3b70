/** json-schema-faker 0.6.3 hangs on hostile schemas and executes patterns; ajv compiles what customers send. */
import { Array, Predicate } from "effect"
import { asFields, asList, type Fields } from "../../client/Json.ts"
import { conforms } from "./Conformance.ts"
import * as JsonSchema from "./JsonSchema.ts"
import { isSpent, namesIn, own, type Run, spend } from "./JsonSchema.ts"
import { atLeast, atMost, numbers, texts } from "./Values.ts"
import { wordsOf } from "./Words.ts"

const maxSteps = 12_000
/** Lets required properties exceed a spent budget. */
const overdraft = 1_000
const maxSimple = 100
const maxAlternatives = 16
const maxTries = 60
const maxExtras = 200
/** Deeper values stay plain, so that recursion ends where its schema permits. */
const plainDepth = 4
const maxDepth = 32

interface Place {
  readonly depth: number
  readonly salt: number
}

type IsNew = (value: unknown) => boolean

/** Deterministic; ignores `pattern`. A value over the bounds, divided by `shares`, satisfies a part of the schema. */
export const jsonFromSchema = (schema: unknown, prompt: string, shares = 1): unknown => {
  const root = JsonSchema.bound(schema)
  const run = { root, words: wordsOf(prompt), steps: maxSteps / shares, texts: 0 }
  return fill(run, [root], { depth: 0, salt: 0 })
}

/** The first candidate that satisfies all `schemas` and is new, or else the first. */
const fill = (run: Run, schemas: ReadonlyArray<unknown>, place: Place, isNew: IsNew = () => true): unknown => {
  spend(run, 8)
  if (isSpent(run) || place.depth > maxDepth) return simplestValue(run, schemas)
  let tried = 0
  let first: unknown
  for (const facets of JsonSchema.alternatives(run, schemas, place.depth > plainDepth)) {
    for (const value of candidates(run, facets, place)) {
      if (isNew(value) && schemas.every((schema) => conforms(run, schema, value))) return value
      first ??= value
    }
    if (++tried >= maxAlternatives) break
  }
  return first ?? simplestValue(run, schemas)
}

const simple: Fields = { object: {}, array: [], string: "", number: 0, integer: 0, boolean: true }

const simplestValue = (run: Run, schemas: ReadonlyArray<unknown>): unknown => {
  const heads = schemas.slice(0, 4).filter(Predicate.isRecord)
  const nodes = heads.flatMap((node) => [node, ...JsonSchema.dereference(run, node)]).filter(Predicate.isRecord)
  for (const choice of nodes.map((node) => JsonSchema.choicesOf(node)?.[0])) {
    if (typeof choice === "number" || (typeof choice === "string" && choice.length <= maxSimple)) return choice
  }
  const [type] = JsonSchema.typesAllowed(nodes)
  return own(simple, String(type)) ?? null
}

function* candidates(run: Run, facets: ReadonlyArray<Fields>, place: Place): Generator {
  spend(run, facets.length >> 2)
  const choices = facets.map(JsonSchema.choicesOf).find(Predicate.isNotUndefined)
  if (choices !== undefined) return yield* withinBudget(run, rankChoices(run, choices, place.salt))
  if (place.salt === 0) yield* withinBudget(run, facets.flatMap(suggestionsIn))
  const [others, nulls] = Array.partition(JsonSchema.typesAllowed(facets), (type) => type === "null")
  for (const type of place.depth > plainDepth ? [...nulls, ...others] : [...others, ...nulls]) {
    yield* valuesOfType(run, facets, place, type)
  }
}

const suggestionsIn = (facet: Fields): ReadonlyArray<unknown> => [
  ...("default" in facet ? [facet.default] : []),
  ...asList(facet.examples).slice(0, 1)
]

const rankChoices = (run: Run, choices: ReadonlyArray<unknown>, salt: number): ReadonlyArray<unknown> => {
  spend(run, choices.length)
  const [others, mentioned] = Array.partition(
    choices,
    (choice) => Predicate.isString(choice) && run.words.mention(choice)
  )
  return Array.rotate([...mentioned, ...others], -salt).slice(0, maxTries)
}

function* withinBudget(run: Run, values: ReadonlyArray<unknown>): Generator {
  for (const value of values) {
    if (!spend(run, 1 + (JSON.stringify(value).length >> 3))) return
    yield value
  }
}

function* valuesOfType(run: Run, facets: ReadonlyArray<Fields>, place: Place, type: unknown): Generator {
  if (type === "object") {
    yield objectOf(run, facets, place, place.depth <= plainDepth)
    if (facets.some((facet) => "properties" in facet)) yield objectOf(run, facets, place, false)
  } else if (type === "array") {
    yield arrayOf(run, facets, place, 1)
    yield arrayOf(run, facets, place, 0)
  } else if (type === "string") yield* texts(facets, run.words, run.texts++)
  else if (type === "number" || type === "integer") yield* numbers(facets, type === "integer", run.words, place.salt)
  else if (type === "boolean") yield* place.salt % 2 === 0 ? [true, false] : [false, true]
  else if (type === "null") yield null
}

const objectOf = (run: Run, facets: ReadonlyArray<Fields>, place: Place, isGenerous: boolean): unknown => {
  const required = new Set(facets.flatMap((facet) => namesIn(run, asList(facet.required))))
  const known = new Set([...facets.flatMap((facet) => namesIn(run, asFields(facet.properties))), ...required])
  const made = new Map<string, unknown>()
  const add = (name: string, isNeeded: boolean): void => {
    if (made.has(name) || (isNeeded ? run.steps < -overdraft : isSpent(run))) return
    spend(run, 1 + (facets.length >> 3) + (name.length >> 3))
    const schemas = facets.map((facet) => JsonSchema.propertySchema(run, facet, name)).filter(Predicate.isNotUndefined)
    const value = fill(run, schemas, { depth: place.depth + 1, salt: place.salt })
    if (isNeeded || schemas.every((schema) => conforms(run, schema, value))) made.set(name, value)
  }
  let room = atMost(facets, "maxProperties") - required.size
  for (const name of known) {
    if (required.has(name)) add(name, true)
    else if (isGenerous && room-- > 0) add(name, false)
  }
  for (const name of made.keys()) {
    for (const { dependentRequired } of facets) {
      for (const needed of namesIn(run, asList(own(asFields(dependentRequired), name)))) add(needed, true)
    }
  }
  const least = Math.min(atLeast(facets, "minProperties"), maxExtras)
  for (const name of known) if (made.size < least) add(name, false)
  const rules = facets.map(({ propertyNames }) => propertyNames).filter(Predicate.isNotUndefined)
  for (let salt = 0; made.size < least && salt < 2 * least && !isSpent(run); salt++) {
    const isNew: IsNew = (name) => typeof name === "string" && !made.has(name)
    const rule = [{ type: "string" }, ...rules]
    const name = rules.length === 0 ? `extra${salt + 1}` : fill(run, rule, { depth: 1, salt }, isNew)
    if (typeof name === "string") add(name, false)
  }
  return Object.fromEntries(made)
}

const arrayOf = (run: Run, facets: ReadonlyArray<Fields>, place: Place, wish: number): unknown => {
  const contained = facets.map(({ contains }) => contains).filter(Predicate.isNotUndefined)
  const held = contained.length === 0 ? 0 : Math.max(1, atLeast(facets, "minContains"))
  const listed = facets.map(JsonSchema.positions)
  const prefixes = wish === 0 ? [] : listed.map(({ prefix }) => prefix.length)
  const count = Math.min(Math.max(atLeast(facets, "minItems"), held, wish, ...prefixes), atMost(facets, "maxItems"))
  const isUnique = facets.some((facet) => facet.uniqueItems === true)
  const taken = new Set<string>()
  const isNew: IsNew = (item) => !isUnique || !taken.has(JSON.stringify(item))
  const items: globalThis.Array<unknown> = []
  for (let salt = place.salt; items.length < count && salt < place.salt + count + maxTries; salt++) {
    if (isSpent(run)) break
    spend(run, facets.length >> 3)
    const schemas = listed.map(({ prefix, rest }) => (items.length < prefix.length ? prefix[items.length] : rest))
    const wanted = [...schemas, ...(items.length < held ? contained : [])].filter(Predicate.isNotUndefined)
    const item = fill(run, wanted, { depth: place.depth + 1, salt }, isNew)
    if (!isNew(item)) continue
    if (isUnique) taken.add(JSON.stringify(item))
    items.push(item)
  }
  return items
}
