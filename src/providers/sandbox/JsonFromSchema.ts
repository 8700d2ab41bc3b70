import { conforms } from "./Conformity.ts"
import { propertyFacets, tightest, typesAllowed, ways } from "./Facets.ts"
import { bare, givenIn, sizeOf } from "./Given.ts"
import { type Document, type Node, namesAt, nodeAt, numberAt, own, positions } from "./JsonSchema.ts"
import { numbers, texts } from "./Scalars.ts"
import { type Words, wordsOf } from "./Words.ts"

const mostSteps = 25_000
const mostCharacters = 65_536
const mostWays = 16
const mostRepeats = 60
const mostExtras = 200
/** Below this depth values stay plain, so that a recursion ends where its schema lets it. */
const plainDepth = 4
const deepest = 60

interface Run {
  readonly document: Document
  readonly words: Words
  /** Counts the texts made so far. */
  texts: number
  characters: number
}

/** Where a value is: how deep, and which of several like ones, so that siblings can differ. */
interface Place {
  readonly depth: number
  readonly salt: number
}

/**
 * A JSON value that satisfies a JSON schema (draft 7 to 2020-12), with words of `prompt` where a text is wanted. The
 * same input gives the same value. Time and size are bounded whatever the schema: one that cannot be satisfied, or
 * only by something huge, gets a value that does not satisfy it.
 */
export const jsonFromSchema = (schema: unknown, prompt: string): unknown => {
  const document: Document = { root: schema, budget: { steps: mostSteps }, patterns: new Map() }
  const run: Run = { document, words: wordsOf(prompt), texts: 0, characters: mostCharacters }
  return fill(run, [schema], { depth: 0, salt: 0 })
}

const spent = ({ characters, document }: Run): boolean => document.budget.steps <= 0 || characters <= 0

/** A value for which all of `schemas` hold and whose JSON is not `taken`, or else the first one thought of. */
const fill = (run: Run, schemas: ReadonlyArray<unknown>, place: Place, taken?: ReadonlySet<string>): unknown => {
  run.document.budget.steps -= 4
  if (spent(run) || place.depth > deepest) return bare(schemas)
  const nearestFirst = place.depth > plainDepth
  let tried = 0
  let first: { readonly value: unknown } | undefined
  for (const facets of ways(run.document, schemas, nearestFirst)) {
    for (const value of candidates(run, facets, place)) {
      const free = taken === undefined || !taken.has(JSON.stringify(value))
      if (free && schemas.every((schema) => conforms(run.document, schema, value))) return charged(run, value)
      first ??= { value }
      if (spent(run)) return charged(run, first.value)
    }
    if (++tried >= mostWays) break
  }
  return first === undefined ? bare(schemas) : charged(run, first.value)
}

const charged = (run: Run, value: unknown): unknown => {
  // Objects and arrays made here have been charged part by part.
  if (typeof value === "string") run.characters -= value.length
  return value
}

function* candidates(run: Run, facets: ReadonlyArray<Node>, place: Place): Generator {
  const given = givenIn(facets, run.words, place.salt)
  for (const value of given.values) {
    run.characters -= typeof value === "string" ? 0 : sizeOf(value)
    if (run.characters <= 0) return
    yield value
  }
  if (given.closed) return
  const types = typesAllowed(facets)
  const nearestFirst = place.depth > plainDepth && types.includes("null")
  for (const type of nearestFirst ? ["null"].concat(types) : types) yield* ofType(run, facets, place, type)
}

function* ofType(run: Run, facets: ReadonlyArray<Node>, place: Place, type: string): Generator {
  switch (type) {
    case "object":
      yield objectOf(run, facets, place, place.depth <= plainDepth)
      if (facets.some((facet) => Object.hasOwn(facet, "properties"))) yield objectOf(run, facets, place, false)
      return
    case "array":
      yield arrayOf(run, facets, place, 1)
      yield arrayOf(run, facets, place, 0)
      return
    case "string":
      yield* texts(run.document, facets, run.words, run.texts++)
      return
    case "number":
    case "integer":
      yield* numbers(facets, type === "integer", run.words, place.salt)
      return
    case "boolean":
      yield place.salt % 2 === 0
      yield place.salt % 2 !== 0
      return
    case "null":
      yield null
      return
    default:
      return
  }
}

const objectOf = (run: Run, facets: ReadonlyArray<Node>, place: Place, generous: boolean): unknown => {
  const required = new Set(facets.flatMap((facet) => namesAt(facet, "required")))
  const known = new Set([...facets.flatMap((facet) => Object.keys(nodeAt(facet, "properties"))), ...required])
  const most = tightest(facets, "maxProperties", Math.min) ?? Number.POSITIVE_INFINITY
  const made = new Map<string, unknown>()
  const add = (name: string, needed: boolean): void => {
    const schemas = propertyFacets(run.document, facets, name)
    run.document.budget.steps -= 1
    run.characters -= name.length
    if (made.has(name) || spent(run)) return
    const value = fill(run, schemas, { depth: place.depth + 1, salt: place.salt })
    const fitting = needed || schemas.every((schema) => conforms(run.document, schema, value))
    if (fitting) made.set(name, value)
  }
  let room = most - required.size
  for (const name of known) {
    if (spent(run)) break
    if (required.has(name)) add(name, true)
    else if (generous && room-- > 0) add(name, false)
  }
  const dependents = facets.map((facet) => nodeAt(facet, "dependentRequired"))
  for (const name of made.keys()) {
    for (const needed of dependents.flatMap((each) => namesAt(each, name))) add(needed, true)
  }
  const least = Math.min(tightest(facets, "minProperties", Math.max) ?? 0, mostExtras)
  for (const name of [...known, ...extraNames(run, facets, least)]) {
    if (made.size >= least || spent(run)) break
    add(name, false)
  }
  return Object.fromEntries(made)
}

/** Names beyond the properties that a schema lists, as its patterns and rules for names have them. */
function* extraNames(run: Run, facets: ReadonlyArray<Node>, count: number): Generator<string> {
  const sources = facets.flatMap((facet) => Object.keys(nodeAt(facet, "patternProperties")))
  const rules = facets.flatMap((facet) => (Object.hasOwn(facet, "propertyNames") ? [own(facet, "propertyNames")] : []))
  for (let salt = 0; salt < count * 2; salt++) {
    const pattern = sources.length === 0 ? [] : [{ pattern: sources[salt % sources.length] }]
    const schemas = [{ type: "string" }, ...rules, ...pattern]
    const name = schemas.length === 1 ? `extra${salt + 1}` : fill(run, schemas, { depth: 1, salt })
    if (typeof name === "string") yield name
  }
}

const arrayOf = (run: Run, facets: ReadonlyArray<Node>, place: Place, wish: number): unknown => {
  const contained = facets.filter((facet) => Object.hasOwn(facet, "contains"))
  const held = Math.max(0, ...contained.map((facet) => numberAt(facet, "minContains") ?? 1))
  const prefixes = wish === 0 ? [] : facets.map((facet) => positions(facet).prefix.length)
  const wanted = Math.max(tightest(facets, "minItems", Math.max) ?? 0, held, wish, ...prefixes)
  const count = Math.min(wanted, tightest(facets, "maxItems", Math.min) ?? wanted)
  const unique = facets.some((facet) => own(facet, "uniqueItems") === true)
  const seen = new Set<string>()
  const items: Array<unknown> = []
  for (let salt = place.salt; items.length < count && salt < place.salt + count + mostRepeats; salt++) {
    if (spent(run)) break
    const schemas = facets.flatMap((facet) => {
      const { prefix, rest } = positions(facet)
      const schema = items.length < prefix.length ? prefix[items.length] : rest
      return schema === undefined ? [] : [schema]
    })
    const inside = items.length < held ? contained.map((facet) => own(facet, "contains")) : []
    const item = fill(run, [...schemas, ...inside], { depth: place.depth + 1, salt }, unique ? seen : undefined)
    const json = unique ? JSON.stringify(item) : ""
    if (unique && seen.has(json)) continue
    seen.add(json)
    items.push(item)
  }
  return items
}
