import { nestsWithin } from "./Json.ts"
import { setSource } from "./JsonSource.ts"

/** Marks numbers and names in a text; no client can guess it. */
const mark = `${globalThis.crypto.randomUUID()}:`

const indexName = /^(?:0|[1-9]\d{0,9})$/

/** JavaScript moves such members to the front of an object. */
export const isIndexName = (name: string): boolean => indexName.test(name)

/** Whether JavaScript writes the number in another way. */
export const isInexact = (number: string): boolean => String(Number(number)) !== number

/**
 * Finds numbers of 16 digits, with six zeros or a last zero after the point, or an exponent; `-0`; and names like an
 * index. Text that looks so within a string only costs time.
 */
const suspects =
  /\d(?:[\d.]{15}|\.(?:000000|\d*0[ \t\n\r]*[,\]}])|[eE][+-]?\d+[ \t\n\r]*[,\]}]|(?<=-0)[ \t\n\r]*[,\]}]|(?<="\d)\d{0,9}"[ \t\n\r]*:)/

const number = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/
const [quote, backslash] = [0x22, 0x5c]

/** Whether a character of the list is the next one that is not blank. */
const isNext = (characters: string, text: string, from: number): boolean => {
  let at = from
  while (at < text.length && " \t\n\r".includes(text.charAt(at))) at++
  return at < text.length && characters.includes(text.charAt(at))
}

/** The position of the closing quote; -1 if there is none. */
const endOfString = (text: string, from: number): number => {
  for (let at = text.indexOf('"', from); at !== -1; at = text.indexOf('"', at + 1)) {
    let before = at
    while (before > from && text.charCodeAt(before - 1) === backslash) before--
    if ((at - before) % 2 === 0) return at
  }
  return -1
}

/** Turns each number that would change into a marked string, and marks each name that would move. */
const markText = (text: string): string => {
  const tokens = /"|(?<![\w.+-])-?\d[\d.eE+-]*/g
  let marked = ""
  let from = 0
  for (let found = tokens.exec(text); found !== null; found = tokens.exec(text)) {
    const [token] = found
    const end = tokens.lastIndex
    if (token.charCodeAt(0) === quote) {
      const close = endOfString(text, end)
      if (close === -1) return text
      tokens.lastIndex = close + 1
      const isMoved = close - end <= 10 && isIndexName(text.slice(end, close)) && isNext(":", text, close + 1)
      if (!isMoved) continue
      marked += text.slice(from, end) + mark
      from = end
    } else if (isInexact(token) && number.test(token) && isNext(",]}", text, end)) {
      marked += `${text.slice(from, found.index)}"${mark}${token}"`
      from = end
    }
  }
  return from === 0 ? text : marked + text.slice(from)
}

const define = (object: object, name: string, value: unknown): void => {
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true })
}

/** The names in order; undefined if the object keeps it. */
export const orderOf = (object: object, names: Iterable<string>): ReadonlyArray<string> | undefined => {
  const order = [...new Set(names)]
  return Object.keys(object).every((name, at) => name === order[at]) ? undefined : order
}

/** Undoes `markText` in a parsed value. */
const unmark = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null) return value
  const isList = Array.isArray(value)
  const given = Object.keys(value)
  const isMarked = !isList && given.some((name) => name.startsWith(mark))
  const target: object = isMarked ? {} : value
  const names = isMarked ? given.map((name) => (name.startsWith(mark) ? name.slice(mark.length) : name)) : given
  let numbers: Map<string | number, string> | undefined
  for (const [at, from] of given.entries()) {
    const name = names[at] ?? from
    const member: unknown = Reflect.get(value, from)
    let read = member
    if (typeof member === "string" && member.startsWith(mark)) {
      const text = member.slice(mark.length)
      numbers ??= new Map()
      numbers.set(isList ? at : name, text)
      read = Number(text)
    } else if (typeof member === "object") read = unmark(member)
    if (isMarked || read !== member) define(target, name, read)
  }
  const order = isMarked ? orderOf(target, names) : undefined
  return numbers === undefined && order === undefined ? target : setSource(target, { numbers, names: order })
}

/** Thrown by `parseExact`. */
export class NestsTooDeep extends Error {}

const parse = (text: string, marked: string): unknown => {
  try {
    return JSON.parse(marked)
  } catch {
    // The error quotes the text.
    return JSON.parse(text)
  }
}

/**
 * `JSON.parse`, whose value `stringify` writes with the same numbers, digit for digit, and the same order of members.
 * A copy of an object or array loses this for its own numbers and names, and keeps it for what it holds: `keepSource`.
 * Throws `NestsTooDeep` and `SyntaxError`.
 */
export const parseExact = (text: string, maxLevels: number): unknown => {
  const marked = suspects.test(text) ? markText(text) : text
  const value = parse(text, marked)
  if (text.length > 2 * maxLevels && !nestsWithin(maxLevels, value)) throw new NestsTooDeep()
  return marked === text ? value : unmark(value)
}

/** Half a surrogate pair as an escape; after an escaped backslash it may be none. */
const halfPair = /\\u[dD](?:[89abAB]..(?!\\u[dD][c-fC-F])|[c-fC-F]..(?<!(?:^|[^\\])\\u[dD][89abAB]..\\u[dD][c-fC-F]..))/

const escapes = /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[dD][89a-fA-F][\da-fA-F]{2}|[^])/g

/** A JSON text whose escapes are pairs of surrogates, or U+FFFD for half a pair. */
export const withWholePairs = (text: string): string =>
  halfPair.test(text) ? text.replace(escapes, (escape) => (escape.length === 6 ? String.raw`\ufffd` : escape)) : text
