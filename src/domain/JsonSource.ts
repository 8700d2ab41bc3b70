/** The parts of a JSON text that a parsed object or array does not hold. */
export interface JsonSource {
  /** The texts of its numbers that JavaScript writes in another way, by name or position. */
  readonly numbers: ReadonlyMap<string | number, string> | undefined
  /** The names in order; undefined if the object keeps the order. */
  readonly names: ReadonlyArray<string> | undefined
}

/** Begins what `stringify` writes in place of numbers and of names; no client can guess it. */
const mark = globalThis.crypto.randomUUID()
const markedNumber = new RegExp(`"${mark}([-+.\\deE]+)"`, "g")
const nameMark = `${mark}:`

const sources = new WeakMap<object, JsonSource>()

/** Undefined unless `stringify` runs. */
let hasMarks: boolean | undefined

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

/** The text of a number that JavaScript writes in another way; undefined for any other member. */
export const exactNumber = (value: object, name: string): string | undefined => {
  const source = sourceOf(value)
  return source && numberText(value, name, source)
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

/** A copy whose names have a mark, which keeps them in order. */
const markNames = (value: object, source: JsonSource): object => {
  const copy: Record<string, unknown> = {}
  for (const name of namesOf(value, source)) copy[nameMark + name] = Reflect.get(value, name)
  return copy
}

/** Called by `JSON.stringify`. Outside of `stringify` the value stays as it is. */
function toJSON(this: object): object {
  const source = hasMarks === undefined ? undefined : sourceOf(this)
  if (source === undefined) return this
  hasMarks = true
  const isInOrder = source.names === undefined
  const copy = Array.isArray(this) ? [...this] : isInOrder ? { ...this } : markNames(this, source)
  for (const name of source.numbers?.keys() ?? []) {
    const text = numberText(this, name, source)
    if (text !== undefined) Reflect.set(copy, isInOrder ? name : `${nameMark}${name}`, mark + text)
  }
  return copy
}

/** A property of the value itself would be a field to a schema. */
const exactObject: object = Object.create(Object.prototype, { toJSON: { value: toJSON } })
const exactArray: object = Object.create(Array.prototype, { toJSON: { value: toJSON } })

/** Ties a source to a value. An object with a member `toJSON` of its own goes without. */
export const setSource = <A extends object>(value: A, source: JsonSource): A => {
  if (Object.hasOwn(value, "toJSON")) return value
  sources.set(value, source)
  Object.setPrototypeOf(value, Array.isArray(value) ? exactArray : exactObject)
  return value
}

const withoutNumbers = (source: JsonSource, names: ReadonlyArray<string>): JsonSource => {
  if (!names.some((name) => source.numbers?.has(name))) return source
  return { ...source, numbers: new Map([...(source.numbers ?? [])].filter(([name]) => !names.includes(String(name)))) }
}

/**
 * Gives a changed copy of a parsed value the texts of the numbers that it still holds, and the order of its members.
 * `written`: names of numbers that the copy does not take from the original.
 */
export const keepSource = <A extends object>(
  original: object | undefined,
  copy: A,
  written: ReadonlyArray<string> = []
): A => {
  const source = original && sourceOf(original)
  return source === undefined || copy === original ? copy : setSource(copy, withoutNumbers(source, written))
}

/** `JSON.stringify`, with numbers digit for digit and members in the order in which `parseExact` found them. */
export const stringify = (value: unknown): string => {
  hasMarks = false
  try {
    const text = JSON.stringify(value)
    return hasMarks ? text.replaceAll(`"${nameMark}`, '"').replaceAll(markedNumber, "$1") : text
  } finally {
    hasMarks = undefined
  }
}
