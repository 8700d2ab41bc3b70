/** What a parsed object or array loses of its JSON text. */
export interface JsonSource {
  /** The texts of its numbers that JavaScript writes in another way, by name or position. */
  readonly numbers: ReadonlyMap<string | number, string> | undefined
  /** The names in order; undefined if the object keeps the order. */
  readonly names: ReadonlyArray<string> | undefined
}

/** Stands for a text that `JSON.stringify` cannot write; no client can guess it. */
const mark = globalThis.crypto.randomUUID()
const marked = new RegExp(`"${mark}:(\\d+)"`, "g")

const sources = new WeakMap<object, JsonSource>()

/** The texts that the placeholders stand for; undefined unless `stringify` runs. */
let texts: Array<string> | undefined

const sourceOf = (value: object): JsonSource | undefined => ("toJSON" in value ? sources.get(value) : undefined)

/** Undefined if the number has been replaced since. */
const numberText = (value: object, name: string | number, { numbers }: JsonSource): string | undefined => {
  const text = numbers?.get(name)
  return text !== undefined && Object.is(Reflect.get(value, name), Number(text)) ? text : undefined
}

const namesOf = (value: object, { names }: JsonSource): ReadonlyArray<string> =>
  names === undefined
    ? Object.keys(value)
    : [...new Set([...names.filter((name) => Object.hasOwn(value, name)), ...Object.keys(value)])]

/** A JSON text in place of a value. */
export class RawJson {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

const exactAt = (value: object, name: string | number, source: JsonSource): unknown => {
  const text = numberText(value, name, source)
  return text === undefined ? Reflect.get(value, name) : new RawJson(text)
}

/** The members of an object in order, numbers as their texts; undefined for a plain object. */
export const exactMembers = (value: object): ReadonlyArray<readonly [string, unknown]> | undefined => {
  const source = sourceOf(value)
  return source && namesOf(value, source).map((name) => [name, exactAt(value, name, source)])
}

/** The items of an array, numbers as their texts; undefined for a plain array. */
export const exactItems = (value: ReadonlyArray<unknown>): ReadonlyArray<unknown> | undefined => {
  const source = sourceOf(value)
  return source && value.map((_, at) => exactAt(value, at, source))
}

const placeholder = (text: string, found: Array<string>): string => `${mark}:${found.push(text) - 1}`

const writeMember = ([name, value]: readonly [string, unknown]): ReadonlyArray<string> => {
  // `JSON.stringify` has nothing for undefined.
  const text: string | undefined = value instanceof RawJson ? value.text : JSON.stringify(value)
  return text === undefined ? [] : [`${JSON.stringify(name)}:${text}`]
}

/** Called by `JSON.stringify`. Outside of `stringify` it leaves the value as it is. */
function toJSON(this: object): unknown {
  const found = texts
  const source = sourceOf(this)
  if (found === undefined || source === undefined) return this
  const replace = (value: unknown): unknown => (value instanceof RawJson ? placeholder(value.text, found) : value)
  if (Array.isArray(this)) return exactItems(this)?.map(replace)
  const members = exactMembers(this) ?? []
  // The texts of its members may hold placeholders as well.
  if (source.names !== undefined) return placeholder(`{${members.flatMap(writeMember).join(",")}}`, found)
  return Object.fromEntries(members.map(([name, value]) => [name, replace(value)]))
}

/** Ties a source to a value. An object with a member `toJSON` of its own goes without. */
export const setSource = <A extends object>(value: A, source: JsonSource): A => {
  if (Object.hasOwn(value, "toJSON")) return value
  sources.set(value, source)
  return Object.defineProperty(value, "toJSON", { value: toJSON, enumerable: false })
}

/** Gives a changed copy of a parsed object the texts of the numbers that it still holds. */
export const keepSource = <A extends object>(original: object, copy: A): A => {
  const source = sourceOf(original)
  return source === undefined || copy === original ? copy : setSource(copy, source)
}

const fill = (text: string, filled: ReadonlyArray<string>): string =>
  text.replace(marked, (_, at: string) => fill(filled[Number(at)] ?? "null", filled))

/** `JSON.stringify`, with numbers digit for digit and members in the order in which `parseExact` found them. */
export const stringify = (value: unknown): string => {
  const found: Array<string> = []
  texts = found
  try {
    const text = JSON.stringify(value)
    return found.length === 0 ? text : fill(text, found)
  } finally {
    texts = undefined
  }
}
