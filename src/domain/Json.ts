import { Predicate } from "effect"
import { exactItems, exactMembers, RawJson } from "./JsonSource.ts"

const pieceLength = 64 * 1024

interface Container {
  readonly entries: Iterator<readonly [name: string | undefined, value: unknown]>
  readonly end: string
  isEmpty: boolean
}

function* items(values: ReadonlyArray<unknown>): Generator<readonly [undefined, unknown]> {
  for (const value of values) yield [undefined, value === undefined ? null : value]
}

function* members(entries: ReadonlyArray<readonly [string, unknown]>): Generator<readonly [string, unknown]> {
  for (const entry of entries) if (entry[1] !== undefined) yield entry
}

const containerOf = (value: object): Container =>
  Array.isArray(value)
    ? { entries: items(exactItems(value) ?? value), end: "]", isEmpty: true }
    : { entries: members(exactMembers(value) ?? Object.entries(value)), end: "}", isEmpty: true }

const splitsPair = (text: string, at: number): boolean =>
  (text.charCodeAt(at - 1) & 0xfc00) === 0xd800 && (text.charCodeAt(at) & 0xfc00) === 0xdc00

function* stringTokens(text: string): Generator<string> {
  yield '"'
  for (let start = 0; start < text.length; ) {
    const end = Math.min(start + pieceLength, text.length)
    const pieceEnd = splitsPair(text, end) ? end - 1 : end
    yield JSON.stringify(text.slice(start, pieceEnd)).slice(1, -1)
    start = pieceEnd
  }
  yield '"'
}

function* scalarTokens(value: unknown): Generator<string> {
  if (typeof value === "string" && value.length > pieceLength) yield* stringTokens(value)
  else if (value instanceof RawJson) yield value.text
  else yield JSON.stringify(value)
}

function* tokens(root: unknown): Generator<string> {
  const openContainers: Array<Container> = []
  let value = root
  for (;;) {
    if (typeof value === "object" && value !== null && !(value instanceof RawJson)) {
      openContainers.push(containerOf(value))
      yield Array.isArray(value) ? "[" : "{"
    } else {
      yield* scalarTokens(value)
    }
    for (;;) {
      const container = openContainers.at(-1)
      if (container === undefined) return
      const entry = container.entries.next()
      if (entry.done !== true) {
        const [name, next] = entry.value
        const separator = container.isEmpty ? "" : ","
        yield name === undefined ? separator : `${separator}${JSON.stringify(name)}:`
        container.isEmpty = false
        value = next
        break
      }
      yield container.end
      openContainers.pop()
    }
  }
}

/** Yields the text of `stringify` in pieces of about 64 KiB. */
export function* jsonTexts(value: unknown): Generator<string> {
  let text = ""
  for (const token of tokens(value)) {
    text += token
    if (text.length < pieceLength) continue
    yield text
    text = ""
  }
  if (text !== "") yield text
}

/**
 * Whether the value has at most this many levels. Values of clients need this check, because encoding them is recursive.
 */
export const nestsWithin = (levels: number, value: unknown): boolean => {
  if (typeof value !== "object" || value === null) return true
  if (levels === 0) return false
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at += 1) if (!nestsWithin(levels - 1, value[at])) return false
    return true
  }
  for (const name in value) {
    if (Object.hasOwn(value, name) && !nestsWithin(levels - 1, Reflect.get(value, name))) return false
  }
  return true
}

/** Whether any object in the value, at any depth, satisfies the predicate. */
export const someObject = (
  value: unknown,
  predicate: (object: Readonly<Record<string, unknown>>) => boolean
): boolean => {
  if (Array.isArray(value)) return value.some((item) => someObject(item, predicate))
  return (
    Predicate.isRecord(value) &&
    (predicate(value) || Object.values(value).some((member) => someObject(member, predicate)))
  )
}

const [quote, backslash, comma, openBracket, openBrace] = [0x22, 0x5c, 0x2c, 0x5b, 0x7b]

const isSeparator = (unit: number): boolean => unit === comma || unit === openBracket || unit === openBrace

/**
 * Returns an upper bound of the number of values in a JSON text, without parsing it. Yields after every 64 KiB, so
 * other requests can run.
 */
export function* countValues(text: string): Generator<void, number> {
  let values = 1
  let isQuoted = false
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit === quote) isQuoted = !isQuoted
    else if (isQuoted && unit === backslash) at++
    else if (!isQuoted && isSeparator(unit)) values++
    if (at % pieceLength === 0) yield
  }
  return values
}
