/** json-schema-faker 0.6.3 hangs on hostile schemas and executes patterns; ajv compiles what customers send. */
import { Array as Arr, Predicate } from "effect"
import { resolveLocal } from "../../domain/JsonSchema.ts"
import { asFields, asList, type Fields } from "../client/Json.ts"

/** Steps are counted, not timed, for the same value each time; one takes about a microsecond. */
const maxSteps = 12_000
/** Lets required properties exceed a spent budget. */
const overdraft = 1_000
const maxAlternatives = 16
const maxFacets = 200
const maxTries = 60
const maxExtras = 200
/** Deeper values stay plain, so that recursion ends where its schema permits. */
const plainDepth = 4
const maxDepth = 32

interface Run {
  readonly root: unknown
  readonly words: Words
  steps: number
  texts: number
}

interface Place {
  readonly depth: number
  /** Another one gives another value. */
  readonly salt: number
}

/** Deterministic; ignores `pattern` and what else docs/getting-started.md names. A value over the bounds, divided by `shares`, satisfies a part of the schema. */
export const jsonFromSchema = (schema: unknown, prompt: string, shares = 1): unknown => {
  const root = bound(schema)
  const run = { root, words: wordsOf(prompt), steps: maxSteps / shares, texts: 0 }
  return fill(run, [root], { depth: 0, salt: 0 }, true)
}

const maxEntries = 1_000
const maxParts = 50_000
const maxText = 10_000
const maxLevels = 100

/** A copy of a schema's first parts: what is beyond them allows everything. */
const bound = (schema: unknown): unknown => {
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

const spend = (run: Run, steps: number): boolean => {
  run.steps -= steps
  return run.steps > 0
}

const isSpent = ({ steps }: Run): boolean => steps <= 0

type Facets = ReadonlyArray<Fields>

/** Never a property of the prototype. */
export const own = (fields: object, name: string): unknown =>
  Object.hasOwn(fields, name) ? Reflect.get(fields, name) : undefined

/** Satisfies all `schemas`. Where nothing does, plain if it is needed, or else undefined. */
const fill = (run: Run, schemas: ReadonlyArray<unknown>, place: Place, isNeeded: boolean): unknown => {
  spend(run, 8)
  if (isSpent(run) || place.depth > maxDepth) return simplestValue(run, schemas)
  let tried = 0
  for (const facets of alternatives(run, schemas, place)) {
    const value = valueOf(run, facets, place)
    if (value !== undefined) return value
    if (++tried >= maxAlternatives) break
  }
  return isNeeded || isSpent(run) ? simplestValue(run, schemas) : undefined
}

const maxSimple = 100
const simple: Fields = { object: {}, array: [], string: "", number: 0, integer: 0, boolean: true }

const simplestValue = (run: Run, schemas: ReadonlyArray<unknown>): unknown => {
  const heads = schemas.slice(0, 4).map(asFields)
  const nodes = heads.flatMap((node) => [node, ...dereference(run, node).map(asFields)])
  const isShort = (choice: unknown): boolean =>
    typeof choice === "number" || (typeof choice === "string" && choice.length <= maxSimple)
  const choice = nodes.map((node) => choicesOf(node)?.[0]).find(isShort)
  return choice ?? own(simple, String(typesAllowed(nodes)[0])) ?? null
}

/** True, which allows everything, where `$ref` leads out or nowhere. */
const dereference = (run: Run, { $ref: reference }: Fields): ReadonlyArray<unknown> => {
  if (typeof reference !== "string") return []
  spend(run, reference.length >> 2)
  return [resolveLocal(asFields(run.root), reference) ?? true]
}

/** Branches that may recur come last where a value is deep. */
const branches = (run: Run, given: unknown, { depth, salt }: Place): ReadonlyArray<unknown> => {
  if (given === undefined) return [true]
  const list = asList(given)
  spend(run, list.length >> 1)
  if (depth <= plainDepth) return Arr.rotate(list, -salt)
  return Arr.partition(list, (one) => mayRecur(asFields(one))).flat()
}

const mayRecur = (schema: Fields): boolean =>
  "$ref" in schema || typesAllowed([schema]).some((type) => type === "object" || type === "array")

/** The ways to satisfy all `schemas`, each as schemas without branches. */
function* alternatives(
  run: Run,
  [head, ...rest]: ReadonlyArray<unknown>,
  place: Place,
  facets: Facets = []
): Generator<Facets> {
  const hasSteps = spend(run, 1 + ((rest.length + facets.length) >> 4))
  if (head === undefined || facets.length > maxFacets || !hasSteps) yield facets
  else if (!Predicate.isRecord(head)) {
    if (head !== false) yield* alternatives(run, rest, place, facets)
  } else if (!isEmpty(head.not)) {
    const always = [...dereference(run, head), ...asList(head.allOf)]
    for (const any of branches(run, head.anyOf, place)) {
      for (const one of branches(run, head.oneOf, { ...place, salt: 0 })) {
        yield* alternatives(run, [...always, any, one, ...rest], place, [...facets, head])
      }
    }
  }
}

/** `{ not: {} }` is how Zod writes that there is no value. */
const isEmpty = (schema: unknown): boolean => Predicate.isRecord(schema) && Object.keys(schema).length === 0

const maxTypes = 7

const typesOf = ({ type }: Fields): ReadonlyArray<unknown> | undefined =>
  typeof type === "string" ? [type] : Array.isArray(type) ? type.slice(0, maxTypes) : undefined

/** Those that every facet allows, or a guess where no facet names any. */
const typesAllowed = (facets: Facets): ReadonlyArray<unknown> => {
  const lists = facets.map(typesOf).filter(Predicate.isNotUndefined)
  if (lists.length === 0) {
    const has = (...keys: ReadonlyArray<string>): boolean => facets.some((facet) => keys.some((key) => key in facet))
    if (has("properties", "required", "additionalProperties")) return ["object"]
    return has("items", "prefixItems") ? ["array"] : ["string"]
  }
  const allows = (list: ReadonlyArray<unknown>, type: unknown): boolean =>
    list.includes(type) || (type === "integer" && list.includes("number"))
  return [...new Set(lists.flat())].filter((type) => lists.every((list) => allows(list, type)))
}

const choicesOf = (schema: Fields): ReadonlyArray<unknown> | undefined => {
  if ("const" in schema) return [schema.const]
  return "enum" in schema ? asList(schema.enum) : undefined
}

const valueOf = (run: Run, facets: Facets, place: Place): unknown => {
  spend(run, facets.length >> 2)
  const choices = facets.map(choicesOf).find(Predicate.isNotUndefined)
  if (choices !== undefined) return firstAllowed(run, facets, rankChoices(run, choices, place.salt))
  const suggestions = facets.flatMap((facet) => [facet.default, ...asList(facet.examples).slice(0, 1)])
  // Objects and lists are made anew: a default such as `{}` often lacks what its schema requires.
  const scalars = suggestions.filter((value) => value !== undefined && !Predicate.isObject(value))
  const suggested = place.salt === 0 ? firstAllowed(run, facets, scalars) : undefined
  if (suggested !== undefined) return suggested
  const [others, nulls] = Arr.partition(typesAllowed(facets), (type) => type === "null")
  for (const type of place.depth > plainDepth ? [...nulls, ...others] : [...others, ...nulls]) {
    const value = valueOfType(run, facets, place, type)
    if (value !== undefined) return value
  }
  return undefined
}

const rankChoices = (run: Run, choices: ReadonlyArray<unknown>, salt: number): ReadonlyArray<unknown> => {
  spend(run, choices.length)
  const [others, mentioned] = Arr.partition(
    choices,
    (choice) => Predicate.isString(choice) && run.words.mention(choice)
  )
  return Arr.rotate([...mentioned, ...others], -salt).slice(0, maxTries)
}

const firstAllowed = (run: Run, facets: Facets, values: ReadonlyArray<unknown>): unknown =>
  values.find((value) => spend(run, 1 + (JSON.stringify(value).length >> 3)) && allows(run, facets, value))

/** Ignores `format` and patterns, and what is in objects and lists. */
const allows = (run: Run, facets: Facets, value: unknown): boolean => {
  const isListed = facets.every((facet) => {
    const choices = choicesOf(facet)
    spend(run, (choices?.length ?? 0) >> 3)
    const isChoice = choices === undefined || Predicate.isObject(value) || choices.includes(value)
    return isChoice && typesOf(facet)?.some((type) => hasType(type, value)) !== false
  })
  if (!isListed) return false
  if (typeof value === "string") {
    const { length } = Array.from(value)
    return length >= atLeast(facets, "minLength") && length <= atMost(facets, "maxLength")
  }
  return (
    typeof value !== "number" ||
    (value >= atLeast(facets, "minimum") &&
      value <= atMost(facets, "maximum") &&
      value > atLeast(facets, "exclusiveMinimum") &&
      value < atMost(facets, "exclusiveMaximum") &&
      limits(facets, ["multipleOf"]).every((step) => step === 0 || Number.isInteger(value / step)))
  )
}

const hasType = (type: unknown, value: unknown): boolean => {
  if (type === "integer") return Number.isInteger(value)
  if (type === "null") return value === null
  if (type === "array") return Array.isArray(value)
  return type === "object" ? Predicate.isRecord(value) : typeof value === type
}

const valueOfType = (run: Run, facets: Facets, place: Place, type: unknown): unknown => {
  if (type === "object") return objectOf(run, facets, place)
  if (type === "array") return arrayOf(run, facets, place)
  if (type === "string") return firstAllowed(run, facets, texts(facets, run.words, run.texts++))
  if (type === "boolean") return place.salt % 2 === 0
  if (type === "null") return null
  const isWhole = type === "integer"
  return isWhole || type === "number"
    ? firstAllowed(run, facets, numbers(facets, isWhole, run.words, place.salt))
    : undefined
}

/** The names in a list, or of properties; none once the steps are spent. */
const namesIn = (run: Run, given: unknown): ReadonlyArray<string> => {
  if (isSpent(run)) return []
  const names = Array.isArray(given) ? given.filter(Predicate.isString) : Object.keys(asFields(given))
  spend(run, names.length >> 3)
  return names
}

const objectOf = (run: Run, facets: Facets, place: Place): unknown => {
  const required = new Set(facets.flatMap((facet) => namesIn(run, facet.required)))
  const known = new Set([...facets.flatMap((facet) => namesIn(run, facet.properties)), ...required])
  // What only another branch requires might satisfy that one too.
  const branches = facets.flatMap(({ oneOf }) => asList(oneOf)).map(asFields)
  const avoided = new Set(branches.flatMap((branch) => namesIn(run, branch.required)))
  const made = new Map<string, unknown>()
  const add = (name: string): void => {
    if (made.has(name) || (required.has(name) ? run.steps < -overdraft : isSpent(run))) return
    spend(run, 1 + (facets.length >> 3) + (name.length >> 3))
    const schemas = facets
      .map(({ additionalProperties, properties }) => own(asFields(properties), name) ?? additionalProperties)
      .filter(Predicate.isNotUndefined)
    const value = fill(run, schemas, { ...place, depth: place.depth + 1 }, required.has(name))
    if (value !== undefined) made.set(name, value)
  }
  let room = place.depth > plainDepth ? 0 : atMost(facets, "maxProperties") - required.size
  for (const name of known) if (required.has(name) || (!avoided.has(name) && room-- > 0)) add(name)
  const least = Math.min(Math.max(atLeast(facets, "minProperties"), 0), maxExtras)
  const extras = Array.from({ length: least }, (_, at) => `extra${at + 1}`)
  for (const name of [...known, ...extras]) if (made.size < least) add(name)
  return Object.fromEntries(made)
}

const positions = ({ additionalItems, items, prefixItems }: Fields) =>
  Array.isArray(items) ? { prefix: asList(items), rest: additionalItems } : { prefix: asList(prefixItems), rest: items }

const arrayOf = (run: Run, facets: Facets, place: Place): unknown => {
  const listed = facets.map(positions)
  const least = Math.max(atLeast(facets, "minItems"), 0)
  const wish = place.depth > plainDepth ? 0 : Math.max(1, ...listed.map(({ prefix }) => prefix.length))
  const count = Math.min(Math.max(least, wish), atMost(facets, "maxItems"))
  const isUnique = facets.some((facet) => facet.uniqueItems === true)
  const taken = new Set<string>()
  const items: Array<unknown> = []
  for (let { salt } = place; items.length < count && salt < place.salt + count + maxTries; salt++) {
    if (isSpent(run)) break
    spend(run, facets.length >> 3)
    const schemas = listed.map(({ prefix, rest }) => (items.length < prefix.length ? prefix[items.length] : rest))
    const inside = { depth: place.depth + 1, salt }
    const item = fill(run, schemas.filter(Predicate.isNotUndefined), inside, items.length < least)
    if (item === undefined) break
    const text = isUnique ? JSON.stringify(item) : String(salt)
    spend(run, text.length >> 4)
    if (!taken.has(text)) items.push(item)
    taken.add(text)
  }
  return items
}

const maxLength = 16_384
/** Several, since some are inexact in floating point, and another step may ask for a multiple of its own. */
const maxMultiples = 60

const limits = (facets: Facets, keys: ReadonlyArray<string>): ReadonlyArray<number> =>
  facets.flatMap((facet) => keys.map((key) => facet[key])).filter((limit) => typeof limit === "number")

const atLeast = (facets: Facets, ...keys: ReadonlyArray<string>): number => Math.max(...limits(facets, keys))

const atMost = (facets: Facets, ...keys: ReadonlyArray<string>): number => Math.min(...limits(facets, keys))

const twoDigits = (n: number): string => String(n).padStart(2, "0")
const date = (n: number): string => `2026-${twoDigits(1 + (Math.floor(n / 28) % 12))}-${twoDigits(1 + (n % 28))}`
const uri = (_: number, name: string): string => `https://example.com/${name}`

const formats: Readonly<Record<string, (n: number, name: string) => string>> = {
  date,
  "date-time": (n) => `${date(n)}T12:00:00Z`,
  time: (n) => `${twoDigits(9 + (n % 12))}:${twoDigits(Math.floor(n / 12) % 60)}:00Z`,
  duration: (n) => `PT${n + 1}H`,
  email: (_, name) => `${name}@example.com`,
  hostname: (_, name) => `${name}.example.com`,
  uri,
  url: uri,
  ipv4: (n) => `192.0.2.${1 + (n % 254)}`,
  ipv6: (n) => `2001:db8::${(1 + (n % 0xfffe)).toString(16)}`,
  uuid: (n) => `00000000-0000-4000-8000-${(1 + n).toString(16).padStart(12, "0")}`
}

const nameOf = (topic: string, n: number): string => {
  const words = topic.toLowerCase().match(/[a-z0-9]+/g) ?? ["sandbox"]
  return `${words.join("-").slice(0, 24).replace(/-$/, "")}${n === 0 ? "" : `-${n}`}`
}

const texts = (facets: Facets, { topics }: Words, n: number): ReadonlyArray<string> => {
  const topic = topics[n % topics.length] ?? "sandbox"
  const round = Math.floor(n / topics.length)
  const named = facets.flatMap(({ format }) =>
    typeof format === "string" && Object.hasOwn(formats, format) ? [format] : []
  )
  const min = Math.min(Math.max(atLeast(facets, "minLength"), 0), maxLength)
  const max = Math.min(Math.max(atMost(facets, "maxLength"), 0), maxLength)
  const text = round === 0 ? topic : `${topic} ${round + 1}`
  const plain = round > 0 && text.length > max ? n.toString(36).slice(-max) : text
  return [...named.map((format) => formats[format]?.(n, nameOf(topic, n)) ?? ""), fitLength(plain, min, max)]
}

const fitLength = (text: string, min: number, max: number): string => {
  const characters = Array.from(text)
  if (characters.length > max) return characters.slice(0, max).join("")
  return text.padEnd(text.length + min - characters.length, " and so on").replace(/ $/, ".")
}

const numbers = (facets: Facets, isWhole: boolean, words: Words, salt: number): ReadonlyArray<number> => {
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
  const count = last - first + 1
  const nth = (n: number): number => {
    const at = n % count
    return at <= last - start ? start + at : last - at
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

const normalize = (text: string): string => ` ${(text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []).join(" ")} `

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
