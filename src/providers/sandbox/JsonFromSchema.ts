/**
 * Generates values without a library: json-schema-faker 0.6.3 hangs on hostile schemas and executes patterns, and ajv
 * compiles customers' schemas to code.
 */
import { Array as Arr, Predicate } from "effect"
import { resolveLocal } from "../../domain/JsonSchema.ts"
import { asFields, asList, type Fields } from "../client/JsonFields.ts"

/** Steps are counted instead of time, so results are reproducible. A step takes about a microsecond. */
const maxSteps = 12_000
/** Required properties may exceed the budget by this many steps. */
const overdraft = 1_000
const maxAlternatives = 16
const maxFacets = 200
const maxAttempts = 60
const maxExtras = 200
/** Deeper values stay simple, which ends recursion if the schema permits it. */
const plainDepth = 4
const maxDepth = 32

interface Run {
  readonly root: unknown
  readonly words: Words
  stepsLeft: number
  textCount: number
}

interface ValuePosition {
  readonly depth: number
  /** Different salts give different values. */
  readonly salt: number
}

/**
 * Returns a value for a schema, the same one for the same arguments. Ignores `pattern` and the other keywords listed in
 * docs/getting-started.md. The value gets the budget divided by `shares`. Once that is used up, the rest of the value is
 * simple and may not satisfy the schema.
 */
export const jsonFromSchema = (schema: unknown, prompt: string, shares = 1): unknown => {
  const root = limitSchema(schema)
  const run = { root, words: wordsOf(prompt), stepsLeft: maxSteps / shares, textCount: 0 }
  return fill(run, [root], { depth: 0, salt: 0 }, true)
}

const maxEntries = 1_000
const maxParts = 50_000
const maxText = 10_000
const maxLevels = 100

/** Copies a schema within limits. Parts beyond them become `true`, which allows everything. */
const limitSchema = (schema: unknown): unknown => {
  let parts = maxParts
  const copy = (value: unknown, levels: number): unknown => {
    if (typeof value === "string") return value.slice(0, maxText)
    const isList = Array.isArray(value)
    if (!isList && !Predicate.isRecord(value)) return value
    if (levels === 0 || parts <= 0) return true
    const entries = isList ? value.slice(0, maxEntries) : Object.keys(value).slice(0, maxEntries)
    parts -= entries.length
    if (isList) return entries.map((part) => copy(part, levels - 1))
    return Object.fromEntries(entries.map((name) => [name, copy(value[name], levels - 1)]))
  }
  return copy(schema, maxLevels)
}

const spend = (run: Run, steps: number): boolean => {
  run.stepsLeft -= steps
  return run.stepsLeft > 0
}

const isSpent = ({ stepsLeft }: Run): boolean => stepsLeft <= 0

type Facets = ReadonlyArray<Fields>

/** Reads an own property, never one of the prototype. */
export const getOwn = (fields: object, name: string): unknown =>
  Object.hasOwn(fields, name) ? Reflect.get(fields, name) : undefined

/** Returns a value for all `schemas`. If there is none, returns a simple value if `isRequired`, or undefined. */
const fill = (run: Run, schemas: ReadonlyArray<unknown>, position: ValuePosition, isRequired: boolean): unknown => {
  spend(run, 8)
  if (isSpent(run) || position.depth > maxDepth) return simpleValue(run, schemas)
  let attempts = 0
  for (const facets of alternatives(run, schemas, position)) {
    const value = valueOf(run, facets, position)
    if (value !== undefined) return value
    if (++attempts >= maxAlternatives) break
  }
  return isRequired || isSpent(run) ? simpleValue(run, schemas) : undefined
}

const maxSimpleLength = 100
const simpleValues: Fields = { object: {}, array: [], string: "", number: 0, integer: 0, boolean: true }

const simpleValue = (run: Run, schemas: ReadonlyArray<unknown>): unknown => {
  const heads = schemas.slice(0, 4).map(asFields)
  const nodes = heads.flatMap((node) => [node, ...dereference(run, node).map(asFields)])
  const isShort = (choice: unknown): boolean =>
    typeof choice === "number" || (typeof choice === "string" && choice.length <= maxSimpleLength)
  const choice = nodes.map((node) => choicesOf(node)?.[0]).find(isShort)
  return choice ?? getOwn(simpleValues, String(typesAllowed(nodes)[0])) ?? null
}

/** Returns `true`, which allows everything, for an external or unknown `$ref`. */
const dereference = (run: Run, { $ref: reference }: Fields): ReadonlyArray<unknown> => {
  if (typeof reference !== "string") return []
  spend(run, reference.length >> 2)
  return [resolveLocal(asFields(run.root), reference) ?? true]
}

/** Returns the branches in the order to try them. For deep values, branches that may recur come last. */
const branchesOf = (run: Run, schemas: unknown, { depth, salt }: ValuePosition): ReadonlyArray<unknown> => {
  if (schemas === undefined) return [true]
  const list = asList(schemas)
  spend(run, list.length >> 1)
  if (depth <= plainDepth) return Arr.rotate(list, -salt)
  return Arr.partition(list, (branch) => mayRecur(asFields(branch))).flat()
}

const mayRecur = (schema: Fields): boolean =>
  "$ref" in schema || typesAllowed([schema]).some((type) => type === "object" || type === "array")

/** Yields the combinations of branches to try. A value must satisfy all facets of one combination. */
function* alternatives(
  run: Run,
  [head, ...rest]: ReadonlyArray<unknown>,
  position: ValuePosition,
  facets: Facets = []
): Generator<Facets> {
  const hasSteps = spend(run, 1 + ((rest.length + facets.length) >> 4))
  if (head === undefined || facets.length > maxFacets || !hasSteps) yield facets
  else if (!Predicate.isRecord(head)) {
    if (head !== false) yield* alternatives(run, rest, position, facets)
  } else if (!isEmpty(head.not)) {
    const required = [...dereference(run, head), ...asList(head.allOf)]
    for (const alternative of branchesOf(run, head.anyOf, position)) {
      for (const exclusive of branchesOf(run, head.oneOf, { ...position, salt: 0 })) {
        yield* alternatives(run, [...required, alternative, exclusive, ...rest], position, [...facets, head])
      }
    }
  }
}

/** Zod writes `{ not: {} }` for a schema that allows no value. */
const isEmpty = (schema: unknown): boolean => Predicate.isRecord(schema) && Object.keys(schema).length === 0

const maxTypes = 7

const typesOf = ({ type }: Fields): ReadonlyArray<unknown> | undefined =>
  typeof type === "string" ? [type] : Array.isArray(type) ? type.slice(0, maxTypes) : undefined

/** Returns the types that every facet allows, or a guess if no facet names any. */
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

const valueOf = (run: Run, facets: Facets, position: ValuePosition): unknown => {
  spend(run, facets.length >> 2)
  const choices = facets.map(choicesOf).find(Predicate.isNotUndefined)
  if (choices !== undefined) return firstAllowed(run, facets, rankChoices(run, choices, position.salt))
  const suggestions = facets.flatMap((facet) => [facet.default, ...asList(facet.examples).slice(0, 1)])
  // Defaults that are objects or lists are ignored. A default such as `{}` often lacks required properties.
  const scalars = suggestions.filter((value) => value !== undefined && !Predicate.isObject(value))
  const suggestion = position.salt === 0 ? firstAllowed(run, facets, scalars) : undefined
  if (suggestion !== undefined) return suggestion
  const [others, nulls] = Arr.partition(typesAllowed(facets), (type) => type === "null")
  for (const type of position.depth > plainDepth ? [...nulls, ...others] : [...others, ...nulls]) {
    const value = valueOfType(run, facets, position, type)
    if (value !== undefined) return value
  }
  return undefined
}

const rankChoices = (run: Run, choices: ReadonlyArray<unknown>, salt: number): ReadonlyArray<unknown> => {
  spend(run, choices.length)
  const [others, mentions] = Arr.partition(
    choices,
    (choice) => Predicate.isString(choice) && run.words.isMentioned(choice)
  )
  return Arr.rotate([...mentions, ...others], -salt).slice(0, maxAttempts)
}

const firstAllowed = (run: Run, facets: Facets, values: ReadonlyArray<unknown>): unknown =>
  values.find((value) => spend(run, 1 + (JSON.stringify(value).length >> 3)) && allows(run, facets, value))

/** Ignores `format`, patterns, and the contents of objects and lists. */
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
    return length >= lowerBound(facets, "minLength") && length <= upperBound(facets, "maxLength")
  }
  return (
    typeof value !== "number" ||
    (value >= lowerBound(facets, "minimum") &&
      value <= upperBound(facets, "maximum") &&
      value > lowerBound(facets, "exclusiveMinimum") &&
      value < upperBound(facets, "exclusiveMaximum") &&
      limits(facets, ["multipleOf"]).every((step) => step === 0 || Number.isInteger(value / step)))
  )
}

const hasType = (type: unknown, value: unknown): boolean => {
  if (type === "integer") return Number.isInteger(value)
  if (type === "null") return value === null
  if (type === "array") return Array.isArray(value)
  return type === "object" ? Predicate.isRecord(value) : typeof value === type
}

const valueOfType = (run: Run, facets: Facets, position: ValuePosition, type: unknown): unknown => {
  if (type === "object") return objectOf(run, facets, position)
  if (type === "array") return arrayOf(run, facets, position)
  if (type === "string") return firstAllowed(run, facets, textCandidates(facets, run.words, run.textCount++))
  if (type === "boolean") return position.salt % 2 === 0
  if (type === "null") return null
  const isWhole = type === "integer"
  return isWhole || type === "number"
    ? firstAllowed(run, facets, numberCandidates(facets, isWhole, run.words, position.salt))
    : undefined
}

/** Returns the names in a list or the property names of an object. Empty once the steps are used up. */
const namesIn = (run: Run, source: unknown): ReadonlyArray<string> => {
  if (isSpent(run)) return []
  const names = Array.isArray(source) ? source.filter(Predicate.isString) : Object.keys(asFields(source))
  spend(run, names.length >> 3)
  return names
}

const objectOf = (run: Run, facets: Facets, position: ValuePosition): unknown => {
  const required = new Set(facets.flatMap((facet) => namesIn(run, facet.required)))
  const names = new Set([...facets.flatMap((facet) => namesIn(run, facet.properties)), ...required])
  // Properties required only by another `oneOf` branch could satisfy that branch as well.
  const branches = facets.flatMap(({ oneOf }) => asList(oneOf)).map(asFields)
  const branchOnlyNames = new Set(branches.flatMap((branch) => namesIn(run, branch.required)))
  const members = new Map<string, unknown>()
  const add = (name: string): void => {
    if (members.has(name) || (required.has(name) ? run.stepsLeft < -overdraft : isSpent(run))) return
    spend(run, 1 + (facets.length >> 3) + (name.length >> 3))
    const schemas = facets
      .map(({ additionalProperties, properties }) => getOwn(asFields(properties), name) ?? additionalProperties)
      .filter(Predicate.isNotUndefined)
    const value = fill(run, schemas, { ...position, depth: position.depth + 1 }, required.has(name))
    if (value !== undefined) members.set(name, value)
  }
  let optionalCountLeft = position.depth > plainDepth ? 0 : upperBound(facets, "maxProperties") - required.size
  for (const name of names) if (required.has(name) || (!branchOnlyNames.has(name) && optionalCountLeft-- > 0)) add(name)
  const minCount = Math.min(Math.max(lowerBound(facets, "minProperties"), 0), maxExtras)
  const extras = Array.from({ length: minCount }, (_, at) => `extra${at + 1}`)
  for (const name of [...names, ...extras]) if (members.size < minCount) add(name)
  return Object.fromEntries(members)
}

const layoutOf = ({ additionalItems, items, prefixItems }: Fields) =>
  Array.isArray(items) ? { prefix: asList(items), rest: additionalItems } : { prefix: asList(prefixItems), rest: items }

const arrayOf = (run: Run, facets: Facets, position: ValuePosition): unknown => {
  const layouts = facets.map(layoutOf)
  const minCount = Math.max(lowerBound(facets, "minItems"), 0)
  const preferredCount = position.depth > plainDepth ? 0 : Math.max(1, ...layouts.map(({ prefix }) => prefix.length))
  const count = Math.min(Math.max(minCount, preferredCount), upperBound(facets, "maxItems"))
  const isUnique = facets.some((facet) => facet.uniqueItems === true)
  const seenTexts = new Set<string>()
  const items: Array<unknown> = []
  for (let { salt } = position; items.length < count && salt < position.salt + count + maxAttempts; salt++) {
    if (isSpent(run)) break
    spend(run, facets.length >> 3)
    const schemas = layouts.map(({ prefix, rest }) => (items.length < prefix.length ? prefix[items.length] : rest))
    const itemPosition = { depth: position.depth + 1, salt }
    const item = fill(run, schemas.filter(Predicate.isNotUndefined), itemPosition, items.length < minCount)
    if (item === undefined) break
    const text = isUnique ? JSON.stringify(item) : String(salt)
    spend(run, text.length >> 4)
    if (!seenTexts.has(text)) items.push(item)
    seenTexts.add(text)
  }
  return items
}

const maxLength = 16_384
/** Several multiples are tried, because some are inexact in floating point or violate another `multipleOf`. */
const maxMultiples = 60

const limits = (facets: Facets, keys: ReadonlyArray<string>): ReadonlyArray<number> =>
  facets.flatMap((facet) => keys.map((key) => facet[key])).filter((limit) => typeof limit === "number")

const lowerBound = (facets: Facets, ...keys: ReadonlyArray<string>): number => Math.max(...limits(facets, keys))

const upperBound = (facets: Facets, ...keys: ReadonlyArray<string>): number => Math.min(...limits(facets, keys))

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

const textCandidates = (facets: Facets, { topics }: Words, n: number): ReadonlyArray<string> => {
  const topic = topics[n % topics.length] ?? "sandbox"
  const round = Math.floor(n / topics.length)
  const formatNames = facets.flatMap(({ format }) =>
    typeof format === "string" && Object.hasOwn(formats, format) ? [format] : []
  )
  const min = Math.min(Math.max(lowerBound(facets, "minLength"), 0), maxLength)
  const max = Math.min(Math.max(upperBound(facets, "maxLength"), 0), maxLength)
  const text = round === 0 ? topic : `${topic} ${round + 1}`
  const plainText = round > 0 && text.length > max ? n.toString(36).slice(-max) : text
  return [...formatNames.map((format) => formats[format]?.(n, nameOf(topic, n)) ?? ""), fitLength(plainText, min, max)]
}

const fitLength = (text: string, min: number, max: number): string => {
  const characters = Array.from(text)
  if (characters.length > max) return characters.slice(0, max).join("")
  return text.padEnd(text.length + min - characters.length, " and so on").replace(/ $/, ".")
}

const numberCandidates = (facets: Facets, isWhole: boolean, words: Words, salt: number): ReadonlyArray<number> => {
  const low = lowerBound(facets, "minimum", "exclusiveMinimum")
  const high = upperBound(facets, "maximum", "exclusiveMaximum")
  const step = Math.max(isWhole ? 1 : 0, ...limits(facets, ["multipleOf"]))
  const candidates = step > 0 ? multiples(low, high, step, salt) : fractions(low, high, salt)
  return [...words.numbers.slice(salt, salt + 1), ...candidates].filter(Number.isFinite)
}

/** Counts up from 1 or the closest valid number, then down, because bounds such as int64's are hard to read. */
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

/** Words from the prompt, which make an answer recognizable. */
interface Words {
  /** Quoted phrases, then names, then long words. Never empty. */
  readonly topics: ReadonlyArray<string>
  readonly numbers: ReadonlyArray<number>
  readonly isMentioned: (text: string) => boolean
}

const maxPromptLength = 4_000
const maxMention = 100
const maxTopics = 50

const normalize = (text: string): string => ` ${(text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []).join(" ")} `

export const wordsOf = (prompt: string): Words => {
  const text = prompt.slice(0, maxPromptLength)
  const [lowerCase, normalized] = [text.toLowerCase(), normalize(text)]
  const quotations = Array.from(
    text.matchAll(/["\u201c\xab`]([^"\u201c\u201d\xab\xbb`\n]{1,60})["\u201d\xbb`]/gu),
    ([, phrase = ""]) => phrase.trim()
  )
  // A capitalized word is a name unless it starts a sentence.
  const names = text.match(/(?<=[\p{L}\p{N},;:] )\p{Lu}[\p{L}\p{M}]+(?: \p{Lu}[\p{L}\p{M}]+){0,3}/gu) ?? []
  const words = text.match(/[\p{L}\p{M}]{5,24}/gu) ?? []
  const topics = [...new Set([...quotations, ...names, ...words])].filter((topic) => topic !== "").slice(0, maxTopics)
  const numbers = text.match(/(?<![\p{L}\p{N}.,-])\d{1,9}(?![\p{L}\p{N}])/gu) ?? []
  return {
    topics: topics.length === 0 ? ["sandbox"] : topics,
    numbers: numbers.slice(0, maxTopics).map(Number),
    isMentioned: (phrase) => {
      if (phrase.length > maxMention || !lowerCase.includes(phrase.toLowerCase())) return false
      const words = normalize(phrase)
      return words !== "  " && normalized.includes(words)
    }
  }
}
