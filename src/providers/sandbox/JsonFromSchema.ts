/** json-schema-faker 0.6.3 hangs on hostile schemas and executes patterns; ajv compiles what customers send. */
import { Array as Arr, Predicate } from "effect"
import { asFields, asList, type Fields } from "../client/Json.ts"
import {
  alternatives,
  bound,
  choicesOf,
  conforms,
  dereference,
  isSpent,
  namesIn,
  own,
  positions,
  propertySchema,
  type Run,
  spend,
  typesAllowed
} from "./JsonSchema.ts"

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

interface Filling extends Run {
  readonly words: Words
  texts: number
}

interface Place {
  readonly depth: number
  readonly salt: number
}

type IsNew = (value: unknown) => boolean

/** Deterministic; ignores `pattern`. A value over the bounds, divided by `shares`, satisfies a part of the schema. */
export const jsonFromSchema = (schema: unknown, prompt: string, shares = 1): unknown => {
  const root = bound(schema)
  const run = { root, words: wordsOf(prompt), steps: maxSteps / shares, texts: 0 }
  return fill(run, [root], { depth: 0, salt: 0 })
}

/** The first candidate that satisfies all `schemas` and is new, or else the first. */
const fill = (run: Filling, schemas: ReadonlyArray<unknown>, place: Place, isNew: IsNew = () => true): unknown => {
  spend(run, 8)
  if (isSpent(run) || place.depth > maxDepth) return simplestValue(run, schemas)
  let tried = 0
  let first: unknown
  for (const facets of alternatives(run, schemas, place.depth > plainDepth)) {
    for (const value of candidates(run, facets, place)) {
      if (isNew(value) && schemas.every((schema) => conforms(run, schema, value))) return value
      first ??= value
    }
    if (++tried >= maxAlternatives) break
  }
  return first ?? simplestValue(run, schemas)
}

const simple: Fields = { object: {}, array: [], string: "", number: 0, integer: 0, boolean: true }

const simplestValue = (run: Filling, schemas: ReadonlyArray<unknown>): unknown => {
  const heads = schemas.slice(0, 4).filter(Predicate.isRecord)
  const nodes = heads.flatMap((node) => [node, ...dereference(run, node)]).filter(Predicate.isRecord)
  for (const choice of nodes.map((node) => choicesOf(node)?.[0])) {
    if (typeof choice === "number" || (typeof choice === "string" && choice.length <= maxSimple)) return choice
  }
  const [type] = typesAllowed(nodes)
  return own(simple, String(type)) ?? null
}

function* candidates(run: Filling, facets: ReadonlyArray<Fields>, place: Place): Generator {
  spend(run, facets.length >> 2)
  const choices = facets.map(choicesOf).find(Predicate.isNotUndefined)
  if (choices !== undefined) return yield* withinBudget(run, rankChoices(run, choices, place.salt))
  if (place.salt === 0) yield* withinBudget(run, facets.flatMap(suggestionsIn))
  const [others, nulls] = Arr.partition(typesAllowed(facets), (type) => type === "null")
  for (const type of place.depth > plainDepth ? [...nulls, ...others] : [...others, ...nulls]) {
    yield* valuesOfType(run, facets, place, type)
  }
}

const suggestionsIn = (facet: Fields): ReadonlyArray<unknown> => [
  ...("default" in facet ? [facet.default] : []),
  ...asList(facet.examples).slice(0, 1)
]

const rankChoices = (run: Filling, choices: ReadonlyArray<unknown>, salt: number): ReadonlyArray<unknown> => {
  spend(run, choices.length)
  const [others, mentioned] = Arr.partition(
    choices,
    (choice) => Predicate.isString(choice) && run.words.mention(choice)
  )
  return Arr.rotate([...mentioned, ...others], -salt).slice(0, maxTries)
}

function* withinBudget(run: Filling, values: ReadonlyArray<unknown>): Generator {
  for (const value of values) {
    if (!spend(run, 1 + (JSON.stringify(value).length >> 3))) return
    yield value
  }
}

function* valuesOfType(run: Filling, facets: ReadonlyArray<Fields>, place: Place, type: unknown): Generator {
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

const objectOf = (run: Filling, facets: ReadonlyArray<Fields>, place: Place, isGenerous: boolean): unknown => {
  const required = new Set(facets.flatMap((facet) => namesIn(run, asList(facet.required))))
  const known = new Set([...facets.flatMap((facet) => namesIn(run, asFields(facet.properties))), ...required])
  const made = new Map<string, unknown>()
  const add = (name: string, isNeeded: boolean): void => {
    if (made.has(name) || (isNeeded ? run.steps < -overdraft : isSpent(run))) return
    spend(run, 1 + (facets.length >> 3) + (name.length >> 3))
    const schemas = facets.map((facet) => propertySchema(run, facet, name)).filter(Predicate.isNotUndefined)
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

const arrayOf = (run: Filling, facets: ReadonlyArray<Fields>, place: Place, wish: number): unknown => {
  const contained = facets.map(({ contains }) => contains).filter(Predicate.isNotUndefined)
  const held = contained.length === 0 ? 0 : Math.max(1, atLeast(facets, "minContains"))
  const listed = facets.map(positions)
  const prefixes = wish === 0 ? [] : listed.map(({ prefix }) => prefix.length)
  const count = Math.min(Math.max(atLeast(facets, "minItems"), held, wish, ...prefixes), atMost(facets, "maxItems"))
  const isUnique = facets.some((facet) => facet.uniqueItems === true)
  const taken = new Set<string>()
  const isNew: IsNew = (item) => !isUnique || !taken.has(JSON.stringify(item))
  const items: Array<unknown> = []
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

const maxLength = 16_384
/** Several, since some are inexact in floating point, and another step may ask for a multiple of its own. */
const maxMultiples = 60

const limits = (facets: ReadonlyArray<Fields>, keys: ReadonlyArray<string>): ReadonlyArray<number> =>
  facets.flatMap((facet) => keys.map((key) => facet[key])).filter((limit) => typeof limit === "number")

const atLeast = (facets: ReadonlyArray<Fields>, ...keys: ReadonlyArray<string>): number =>
  Math.max(...limits(facets, keys))

const atMost = (facets: ReadonlyArray<Fields>, ...keys: ReadonlyArray<string>): number =>
  Math.min(...limits(facets, keys))

const twoDigits = (n: number): string => String(n).padStart(2, "0")
const date = (n: number): string => `2026-${twoDigits(1 + (Math.floor(n / 28) % 12))}-${twoDigits(1 + (n % 28))}`
const uri = (_: number, name: string): string => `https://example.com/${name}`
const path = (_: number, name: string): string => `/${name}`

const formats: Readonly<Record<string, (n: number, name: string) => string>> = {
  date,
  "date-time": (n) => `${date(n)}T12:00:00Z`,
  time: (n) => `${twoDigits(9 + (n % 12))}:${twoDigits(Math.floor(n / 12) % 60)}:00Z`,
  duration: (n) => `PT${n + 1}H`,
  email: (_, name) => `${name}@example.com`,
  hostname: (_, name) => `${name}.example.com`,
  uri,
  url: uri,
  iri: uri,
  "uri-template": uri,
  "uri-reference": path,
  "iri-reference": path,
  "json-pointer": path,
  "relative-json-pointer": String,
  ipv4: (n) => `192.0.2.${1 + (n % 254)}`,
  ipv6: (n) => `2001:db8::${(1 + (n % 0xfffe)).toString(16)}`,
  uuid: (n) => `00000000-0000-4000-8000-${(1 + n).toString(16).padStart(12, "0")}`
}

const nameOf = (topic: string, n: number): string => {
  const words = topic.toLowerCase().match(/[a-z0-9]+/g) ?? ["sandbox"]
  return `${words.join("-").slice(0, 24).replace(/-$/, "")}${n === 0 ? "" : `-${n}`}`
}

function* texts(facets: ReadonlyArray<Fields>, { topics }: Words, n: number): Generator<string> {
  const topic = topics[n % topics.length] ?? "sandbox"
  const round = Math.floor(n / topics.length)
  for (const format of facets.map(({ format }) => format).filter(Predicate.isString)) {
    const common = format.replace(/^idn-/, "")
    if (Object.hasOwn(formats, common)) yield formats[common]?.(n, nameOf(topic, n)) ?? ""
  }
  const min = Math.min(Math.max(atLeast(facets, "minLength"), 0), maxLength)
  const max = Math.min(Math.max(atMost(facets, "maxLength"), 0), maxLength)
  for (const text of [round === 0 ? topic : `${topic} ${round + 1}`, n.toString(36), ""]) {
    yield fitLength(text, min, max)
  }
}

const fitLength = (text: string, min: number, max: number): string => {
  const characters = Array.from(text)
  if (characters.length > max) return characters.slice(0, max).join("")
  return text.padEnd(text.length + min - characters.length, " and so on").replace(/ $/, ".")
}

const numbers = (
  facets: ReadonlyArray<Fields>,
  isWhole: boolean,
  words: Words,
  salt: number
): ReadonlyArray<number> => {
  const low = atLeast(facets, "minimum", "exclusiveMinimum")
  const high = atMost(facets, "maximum", "exclusiveMaximum")
  const step = Math.max(isWhole ? 1 : 0, ...limits(facets, ["multipleOf"]))
  const made = step > 0 ? multiples(low, high, step, salt) : fractions(low, high, salt)
  return [...words.numbers.slice(salt, salt + 1), ...made].filter(Number.isFinite)
}

/** Counts up from 1 or the nearest valid number, then down: the bounds of a type, such as int64, give unreadable numbers. */
const multiples = (low: number, high: number, step: number, salt: number): ReadonlyArray<number> => {
  const [first, last] = [Math.ceil(low / step), Math.floor(high / step)]
  const start = first >= 0 ? first : Math.min(1, last)
  const above = last - start
  const count = last - first + 1
  const nth = (n: number): number => {
    const at = Number.isFinite(count) ? n % count : n
    return at <= above ? start + at : start - (at - above)
  }
  return Array.from({ length: maxMultiples }, (_, at) => nth(salt + at) * step)
}

const fractions = (low: number, high: number, salt: number): ReadonlyArray<number> => {
  const from = low >= 0 ? low : Math.max(low, Math.min(1, high - 1 - salt))
  const to = Math.min(high, from + 1)
  return [from + salt, from + (to - from) * ((salt + 1) / (salt + 2))]
}

/** From the prompt, so that an answer visibly belongs to its question. */
interface Words {
  /** Never empty: quoted phrases, then names, then longer words. */
  readonly topics: ReadonlyArray<string>
  readonly numbers: ReadonlyArray<number>
  readonly mention: (text: string) => boolean
}

const maxRead = 4_000
const maxMention = 100
const maxKept = 50

const normalize = (text: string): string =>
  ` ${text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_]+/gu, " ")
    .trim()} `

export const wordsOf = (prompt: string): Words => {
  const text = prompt.slice(0, maxRead)
  const [lower, normalized] = [text.toLowerCase(), normalize(text)]
  const quoted = Array.from(
    text.matchAll(/["\u201c\xab`]([^"\u201c\u201d\xab\xbb`\n]{1,60})["\u201d\xbb`]/gu),
    ([, phrase = ""]) => phrase.trim()
  )
  // A capital only marks a name where it does not begin a sentence.
  const names = text.match(/(?<=[\p{L}\p{N},;:] )\p{Lu}[\p{L}\p{M}]+(?: \p{Lu}[\p{L}\p{M}]+){0,3}/gu) ?? []
  const words = text.match(/[\p{L}\p{M}]{5,24}/gu) ?? []
  const topics = [...new Set([...quoted, ...names, ...words])].filter((topic) => topic !== "").slice(0, maxKept)
  const numbers = text.match(/(?<![\p{L}\p{N}.,-])\d{1,9}(?![\p{L}\p{N}])/gu) ?? []
  return {
    topics: topics.length === 0 ? ["sandbox"] : topics,
    numbers: numbers.slice(0, maxKept).map(Number),
    mention: (wanted) => {
      if (wanted.length > maxMention || !lower.includes(wanted.toLowerCase())) return false
      const words = normalize(wanted)
      return words !== "  " && normalized.includes(words)
    }
  }
}
