/** json-schema-faker 0.6.3 hangs on hostile schemas and executes patterns; ajv compiles what customers send. */
import { Array, Predicate } from "effect"
import { nestsWithin } from "../../../domain/Json.ts"
import { asFields, asList, type Fields } from "../../client/Json.ts"
import { conforms } from "./Conformance.ts"
import * as JsonSchema from "./JsonSchema.ts"
import { isSpent, namesIn, own, type Run, spend } from "./JsonSchema.ts"
import { atLeast, atMost, numbers, texts } from "./Values.ts"
import { wordsOf } from "./Words.ts"

const maxSteps = 12_000
const maxCharacters = 65_536
/** Lets required properties exceed a spent budget. */
const overdraft = 1_000
const maxSimple = 100
const maxAlternatives = 16
const maxChoices = 60
const maxRepeats = 60
const maxExtras = 200
/** Deeper values stay plain, so that recursion ends where its schema permits. */
const plainDepth = 4
const maxDepth = 32
const maxDepthChosen = 60

interface Place {
  readonly depth: number
  readonly salt: number
}

/** Deterministic; ignores `pattern`. A value over the bounds, divided by `shares`, satisfies a part of the schema. */
export const jsonFromSchema = (schema: unknown, prompt: string, shares = 1): unknown => {
  const root = JsonSchema.bounded(schema)
  const budget = { steps: maxSteps / shares, characters: maxCharacters / shares }
  return fill({ root, words: wordsOf(prompt), texts: 0, ...budget }, [root], { depth: 0, salt: 0 })
}

const fill = (run: Run, schemas: ReadonlyArray<unknown>, place: Place, taken?: ReadonlySet<string>): unknown => {
  spend(run, 8)
  if (isSpent(run) || place.depth > maxDepth) return simplestValue(run, schemas)
  const isGood = (value: unknown): boolean =>
    isFree(run, value, taken) && schemas.every((schema) => conforms(run, schema, value))
  let tried = 0
  let first: { readonly value: unknown } | undefined
  for (const facets of JsonSchema.alternatives(run, schemas, place.depth > plainDepth)) {
    for (const value of candidates(run, facets, place)) {
      first ??= { value }
      const isChosen = isGood(value)
      if (isChosen || isSpent(run)) return charge(run, isChosen ? value : first.value)
    }
    if (++tried >= maxAlternatives) break
  }
  return first === undefined ? simplestValue(run, schemas) : charge(run, first.value)
}

const isFree = (run: Run, value: unknown, taken: ReadonlySet<string> | undefined): boolean => {
  if (taken === undefined) return true
  const json = JSON.stringify(value)
  spend(run, json.length >> 4)
  return !taken.has(json)
}

const charge = (run: Run, value: unknown): unknown => {
  if (typeof value === "string") run.characters -= value.length
  return value
}

const simple: Fields = { object: {}, array: [], string: "", number: 0, integer: 0, boolean: true }

const simplestValue = (run: Run, schemas: ReadonlyArray<unknown>): unknown => {
  const heads = schemas.slice(0, 4).filter(Predicate.isRecord)
  const nodes = heads.flatMap((node) => [node, ...JsonSchema.dereference(run, node)]).filter(Predicate.isRecord)
  for (const { const: constant, enum: choices } of nodes) {
    const choice = constant ?? asList(choices)[0]
    if (typeof choice === "number" || (typeof choice === "string" && choice.length <= maxSimple)) return choice
  }
  const [type = "null"] = JsonSchema.typesAllowed(nodes.filter((node) => JsonSchema.typesOf(node) !== undefined))
  return own(simple, String(type)) ?? null
}

function* withinBudget(run: Run, values: ReadonlyArray<unknown>): Generator {
  for (const value of values) {
    const size = nestsWithin(maxDepthChosen, value) ? JSON.stringify(value).length : Number.POSITIVE_INFINITY
    spend(run, 1 + (Math.min(size, maxCharacters) >> 4))
    if (isSpent(run)) return
    if (size > run.characters) continue
    if (typeof value !== "string") run.characters -= size
    yield value
  }
}

const choicesOf = (run: Run, choices: unknown, salt: number): ReadonlyArray<unknown> => {
  const all = asList(choices)
  spend(run, all.length)
  const [others, mentioned] = Array.partition(all, (choice) => typeof choice === "string" && run.words.mention(choice))
  return Array.rotate([...mentioned, ...others], -salt).slice(0, maxChoices)
}

function* candidates(run: Run, facets: ReadonlyArray<Fields>, place: Place): Generator {
  spend(run, facets.length >> 2)
  const constant = facets.find((facet) => "const" in facet)
  const choosing = facets.find((facet) => "enum" in facet)
  if (constant !== undefined) yield* withinBudget(run, [constant.const])
  else if (choosing !== undefined) yield* withinBudget(run, choicesOf(run, choosing.enum, place.salt))
  else {
    for (const facet of place.salt === 0 ? facets : []) {
      const suggested = "default" in facet ? [facet.default] : []
      yield* withinBudget(run, [...suggested, ...asList(facet.examples).slice(0, 1)])
    }
    const types = JsonSchema.typesAllowed(facets)
    const isNullFirst = place.depth > plainDepth && types.includes("null")
    for (const type of isNullFirst ? ["null", ...types] : types) yield* valuesOfType(run, facets, place, type)
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
  else if (type === "number" || type === "integer") {
    for (const value of numbers(facets, type === "integer", run.words, place.salt)) {
      if (Number.isFinite(value)) yield value
    }
  } else if (type === "boolean") yield* place.salt % 2 === 0 ? [true, false] : [false, true]
  else if (type === "null") yield null
}

const objectOf = (run: Run, facets: ReadonlyArray<Fields>, place: Place, isGenerous: boolean): unknown => {
  const union = (read: (facet: Fields) => ReadonlyArray<string>): Set<string> =>
    new Set(facets.flatMap((facet) => (isSpent(run) ? [] : read(facet))))
  const required = union((facet) => namesIn(run, asList(facet.required)))
  const known = new Set([...union((facet) => namesIn(run, asFields(facet.properties))), ...required])
  const made = new Map<string, unknown>()
  const add = (name: string, isNeeded: boolean): void => {
    const isOver = isNeeded ? Math.min(run.steps, run.characters) < -overdraft : isSpent(run)
    if (isOver || made.has(name)) return
    spend(run, 1 + (facets.length >> 3))
    run.characters -= name.length
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
    for (const facet of facets) {
      for (const needed of namesIn(run, asList(own(asFields(facet.dependentRequired), name)))) add(needed, true)
    }
  }
  const least = Math.min(atLeast(facets, "minProperties"), maxExtras)
  for (const name of [...known, ...extraNames(run, facets, least)]) if (made.size < least) add(name, false)
  return Object.fromEntries(made)
}

function* extraNames(run: Run, facets: ReadonlyArray<Fields>, count: number): Generator<string> {
  const rules = facets.map(({ propertyNames }) => propertyNames).filter(Predicate.isNotUndefined)
  const taken = new Set<string>()
  for (let salt = 0; salt < count * 2 && !isSpent(run); salt++) {
    const rule = [{ type: "string" }, ...rules]
    const name = rules.length === 0 ? `extra${salt + 1}` : fill(run, rule, { depth: 1, salt }, taken)
    taken.add(JSON.stringify(name))
    if (typeof name === "string") yield name
  }
}

const arrayOf = (run: Run, facets: ReadonlyArray<Fields>, place: Place, wish: number): unknown => {
  const contained = facets.map(({ contains }) => contains).filter(Predicate.isNotUndefined)
  const held = contained.length === 0 ? 0 : Math.max(1, atLeast(facets, "minContains"))
  const listed = facets.map(JsonSchema.positions)
  const prefixes = wish === 0 ? [] : listed.map(({ prefix }) => prefix.length)
  const count = Math.min(Math.max(atLeast(facets, "minItems"), held, wish, ...prefixes), atMost(facets, "maxItems"))
  const isUnique = facets.some((facet) => facet.uniqueItems === true)
  const taken = new Set<string>()
  const items: globalThis.Array<unknown> = []
  for (let salt = place.salt; items.length < count && salt < place.salt + count + maxRepeats; salt++) {
    if (isSpent(run)) break
    spend(run, facets.length >> 3)
    const schemas = listed.map(({ prefix, rest }) => (items.length < prefix.length ? prefix[items.length] : rest))
    const wanted = [...schemas, ...(items.length < held ? contained : [])].filter(Predicate.isNotUndefined)
    const item = fill(run, wanted, { depth: place.depth + 1, salt }, isUnique ? taken : undefined)
    const json = isUnique ? JSON.stringify(item) : ""
    if (isUnique && taken.has(json)) continue
    taken.add(json)
    items.push(item)
  }
  return items
}
