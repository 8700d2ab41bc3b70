/** The details of a JSON text that parsing loses: the digits of numbers and the order of names. */
interface JsonSource {
  /** The original texts of numbers that JavaScript would write differently, by name or position. */
  readonly numbers: ReadonlyMap<string | number, string> | undefined
  /** The names in their original order; undefined if the parsed object has the same order. */
  readonly names: ReadonlyArray<string> | undefined
}

/** The prefix of the placeholders for numbers and names in `stringify`. No client can guess it. */
const mark = globalThis.crypto.randomUUID()
const markedNumber = new RegExp(`"${mark}([-+.\\deE]+)"`, "g")
const nameMark = `${mark}:`

const sources = new WeakMap<object, JsonSource>()

/** Whether `stringify` has written placeholders; undefined while it does not run. */
let hasMarks: boolean | undefined

const sourceOf = (value: object): JsonSource | undefined => ("toJSON" in value ? sources.get(value) : undefined)

/** Returns the original text of a number; undefined if the member has another value now. */
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

/** Returns the original text of a number that JavaScript would write differently; undefined for other members. */
export const exactNumber = (value: object, name: string): string | undefined => {
  const source = sourceOf(value)
  return source && numberText(value, name, source)
}

/**
 * Returns the members of an object in their original order, with inexact numbers as `RawJson`; undefined if it has no
 * source.
 */
export const exactMembers = (value: object): ReadonlyArray<readonly [string, unknown]> | undefined => {
  const source = sourceOf(value)
  return source && namesOf(value, source).map((name) => [name, exactAt(value, name, source)])
}

/** Returns the items of an array, with inexact numbers as `RawJson`; undefined if it has no source. */
export const exactItems = (value: ReadonlyArray<unknown>): ReadonlyArray<unknown> | undefined => {
  const source = sourceOf(value)
  return source && value.map((_, at) => exactAt(value, at, source))
}

/**
 * Returns a copy whose names begin with a mark, because JavaScript would move index-like names such as `0` to the front.
 */
const markNames = (value: object, source: JsonSource): object => {
  const copy: Record<string, unknown> = {}
  for (const name of namesOf(value, source)) copy[nameMark + name] = Reflect.get(value, name)
  return copy
}

/** Called by `JSON.stringify`. Returns a copy with placeholders inside `stringify`, and the value itself otherwise. */
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

/** Prototypes with `toJSON`. As a property of the value itself, schemas would treat it as a field. */
const exactObject: object = Object.create(Object.prototype, { toJSON: { value: toJSON } })
const exactArray: object = Object.create(Array.prototype, { toJSON: { value: toJSON } })

/** Attaches a source to a value. Objects with a member `toJSON` stay plain. */
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
 * Copies the number texts and the member order of a parsed value to a changed copy of it. Skips the members in
 * `replacedNumbers`, whose numbers the copy changed.
 */
export const keepSource = <A extends object>(
  original: object | undefined,
  copy: A,
  replacedNumbers: ReadonlyArray<string> = []
): A => {
  const source = original && sourceOf(original)
  return source === undefined || copy === original ? copy : setSource(copy, withoutNumbers(source, replacedNumbers))
}

/** As `JSON.stringify`, but preserves the digits of numbers and the member order that `parseExact` recorded. */
export const stringify = (value: unknown): string => {
  hasMarks = false
  try {
    const text = JSON.stringify(value)
    return hasMarks ? text.replaceAll(`"${nameMark}`, '"').replaceAll(markedNumber, "$1") : text
  } finally {
    hasMarks = undefined
  }
}
