import { Predicate } from "effect"
import { nestsWithin } from "./Json.ts"
import { isBlank } from "./JsonScanner.ts"
import { setSource } from "./JsonSource.ts"

/** Marks numbers and names in a text; no client can guess it. */
const mark = `${globalThis.crypto.randomUUID()}:`

const indexName = /^(?:0|[1-9]\d{0,9})$/

/** JavaScript moves such members to the front of an object. */
export const isIndexName = (name: string): boolean => indexName.test(name)

/** Whether JavaScript would write the number differently. */
export const isInexact = (number: string): boolean => String(Number(number)) !== number

/**
 * Finds numbers of 16 digits, with six zeros or a last zero after the point, or an exponent; `-0`; and names like an
 * index. Text that looks so within a string only costs time.
 */
const suspects =
  /\d(?:[\d.]{15}|\.(?:000000|\d*0[ \t\n\r]*[,\]}])|[eE][+-]?\d+[ \t\n\r]*[,\]}]|(?<=-0)[ \t\n\r]*[,\]}]|(?<="\d)\d{0,9}"[ \t\n\r]*:)/

const number = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/
const [quote, backslash] = [0x22, 0x5c]

const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39

/** A digit, a sign, a point or `e`. */
const isOfNumber = (code: number): boolean =>
  isDigit(code) || code === 0x2d || code === 0x2e || code === 0x2b || code === 0x65 || code === 0x45

/** Whether a character of the list is the next one that is not blank. */
const isNext = (characters: string, text: string, from: number): boolean => {
  let at = from
  while (isBlank(text.charCodeAt(at))) at++
  return at < text.length && characters.includes(text.charAt(at))
}

/** The position of the closing quote; the text's length if there is none. */
const endOfString = (text: string, from: number): number => {
  for (let at = text.indexOf('"', from); at !== -1; at = text.indexOf('"', at + 1)) {
    let before = at
    while (before > from && text.charCodeAt(before - 1) === backslash) before--
    if ((at - before) % 2 === 0) return at
  }
  return text.length
}

const isMovedName = (text: string, start: number, end: number): boolean =>
  isDigit(text.charCodeAt(start)) &&
  end - start <= 10 &&
  isIndexName(text.slice(start, end)) &&
  isNext(":", text, end + 1)

/** Turns each number that would change into a marked string, and marks each name that would move. */
const markText = (text: string): string => {
  let marked = ""
  let from = 0
  for (let at = 0; at < text.length; at++) {
    const start = at
    const code = text.charCodeAt(at)
    if (code === quote) {
      at = endOfString(text, start + 1)
      if (!isMovedName(text, start + 1, at)) continue
      marked += text.slice(from, start + 1) + mark
      from = start + 1
    } else if (isOfNumber(code)) {
      while (isOfNumber(text.charCodeAt(at + 1))) at++
      const token = text.slice(start, at + 1)
      if (!isInexact(token) || !number.test(token) || !isNext(",]}", text, at + 1)) continue
      marked += `${text.slice(from, start)}"${mark}${token}"`
      from = at + 1
    }
  }
  return from === 0 ? text : marked + text.slice(from)
}

/** The names in order; undefined if the object keeps it. */
export const orderOf = (object: object, names: Iterable<string>): ReadonlyArray<string> | undefined => {
  const order = [...new Set(names)]
  return Object.keys(object).every((name, at) => name === order[at]) ? undefined : order
}

type Numbers = Map<string | number, string>

const unmarkItems = (items: Array<unknown>): unknown => {
  let numbers: Numbers | undefined
  for (const [at, item] of items.entries()) {
    if (typeof item === "object") items[at] = unmark(item)
    else if (typeof item === "string" && item.startsWith(mark)) {
      const text = item.slice(mark.length)
      items[at] = Number(text)
      numbers = (numbers ?? new Map()).set(at, text)
    }
  }
  return numbers === undefined ? items : setSource(items, { numbers, names: undefined })
}

/** The object that the text names, whose members may stand in another order. */
const unmarkNames = (object: Record<string, unknown>, numbers: Numbers | undefined): object => {
  const renamed = Object.keys(object).map((name) => (name.startsWith(mark) ? name.slice(mark.length) : name))
  const texts: Numbers = new Map()
  const target: Record<string, unknown> = Object.fromEntries(
    Object.entries(object).map(([name, member], at) => {
      const text = numbers?.get(name)
      if (text !== undefined) texts.set(renamed[at] ?? name, text)
      return [renamed[at] ?? name, member]
    })
  )
  const names = orderOf(target, renamed)
  return names === undefined && texts.size === 0 ? target : setSource(target, { numbers: texts, names })
}

const unmarkMembers = (object: Record<string, unknown>): unknown => {
  let numbers: Numbers | undefined
  let hasMovedName = false
  for (const name of Object.keys(object)) {
    const member = object[name]
    if (name.startsWith(mark)) hasMovedName = true
    if (typeof member === "object") object[name] = unmark(member)
    else if (typeof member === "string" && member.startsWith(mark)) {
      const text = member.slice(mark.length)
      object[name] = Number(text)
      numbers = (numbers ?? new Map()).set(name, text)
    }
  }
  if (hasMovedName) return unmarkNames(object, numbers)
  return numbers === undefined ? object : setSource(object, { numbers, names: undefined })
}

/** Undoes `markText` in a parsed value. */
const unmark = (value: unknown): unknown => {
  if (Array.isArray(value)) return unmarkItems(value)
  return Predicate.isRecord(value) ? unmarkMembers(value) : value
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

/** The escape of a lone surrogate; after an escaped backslash it may be plain text. */
const loneSurrogate =
  /\\u[dD](?:[89abAB]..(?!\\u[dD][c-fC-F])|[c-fC-F]..(?<!(?:^|[^\\])\\u[dD][89abAB]..\\u[dD][c-fC-F]..))/

const escapes = /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[dD][89a-fA-F][\da-fA-F]{2}|[^])/g

/** Replaces escapes of lone surrogates in a JSON text by U+FFFD. */
export const withWholePairs = (text: string): string =>
  loneSurrogate.test(text)
    ? text.replace(escapes, (escape) => (escape.length === 6 ? String.raw`\ufffd` : escape))
    : text
