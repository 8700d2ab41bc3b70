import { Predicate } from "effect"
import { nestsWithin } from "./Json.ts"
import { setSource } from "./JsonSource.ts"

const backslashCode = 0x5c

/** Whether a byte or character code is JSON white space. */
export const isBlank = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09

/** Whether a character may be part of a literal or a number. Invalid combinations are not detected. */
const isScalar = (char: string): boolean => /[-+.\w]/.test(char)

/** The expected token. Instead of a `first` one, the closing bracket may follow. */
type Next = "value" | "first value" | "key" | "first key" | "colon" | "more"

/** Scans the structure of a JSON object or array that arrives in pieces. Does not check strings and numbers. */
export class JsonScanner {
  /** `start`: there was only white space so far. */
  state: "start" | "open" | "complete" | "invalid" = "start"
  /** Whether the outermost object or array has no members so far. */
  isEmpty = true
  readonly #open: Array<"{" | "["> = []
  #next: Next = "value"
  #isInString = false
  #isEscaped = false
  #isInScalar = false

  /**
   * Scans the next piece. Returns the position in it at which the value ends, or the piece's length if the value is
   * incomplete.
   */
  take(text: string): number {
    let at = 0
    while (at < text.length && (this.state === "start" || this.state === "open")) {
      at = this.#isInString ? this.#skipString(text, at) : this.#step(text.charAt(at), at)
    }
    return this.state === "complete" ? at : text.length
  }

  #skipString(text: string, from: number): number {
    let at = from + Number(this.#isEscaped)
    this.#isEscaped = false
    for (;;) {
      const quoteAt = text.indexOf('"', at)
      const end = quoteAt < 0 ? text.length : quoteAt
      let slashes = 0
      while (end - slashes > at && text.charCodeAt(end - slashes - 1) === backslashCode) slashes++
      const isEscaped = slashes % 2 === 1
      if (quoteAt < 0) {
        this.#isEscaped = isEscaped
        return text.length
      }
      at = quoteAt + 1
      if (isEscaped) continue
      this.#isInString = false
      return at
    }
  }

  #step(char: string, at: number): number {
    const isInScalar = this.#isInScalar
    if (isInScalar && isScalar(char)) return at + 1
    this.#isInScalar = false
    if (!isBlank(char.charCodeAt(0)) && !this.#takeToken(char)) this.state = "invalid"
    return at + 1
  }

  #takeToken(char: string): boolean {
    const next = this.#next
    const isValue = next === "value" || next === "first value"
    switch (char) {
      case "{":
      case "[":
        if (!isValue) return false
        if (this.state === "open") this.isEmpty = false
        this.state = "open"
        this.#open.push(char)
        this.#next = char === "{" ? "first key" : "first value"
        return true
      case "}":
        return this.#close("{", "first key")
      case "]":
        return this.#close("[", "first value")
      case ":":
        this.#next = "value"
        return next === "colon"
      case ",":
        this.#next = this.#open.at(-1) === "{" ? "key" : "value"
        return next === "more"
      default:
        return this.#takeScalar(char, isValue)
    }
  }

  #takeScalar(char: string, isValue: boolean): boolean {
    const isKey = this.#next === "key" || this.#next === "first key"
    // A number or literal outside of an object or array has no visible end.
    if (this.state === "start") return false
    this.#isInString = char === '"'
    this.#isInScalar = !this.#isInString && isValue && isScalar(char)
    this.isEmpty = false
    this.#next = isKey ? "colon" : "more"
    return this.#isInString ? isKey || isValue : this.#isInScalar
  }

  #close(opening: "{" | "[", first: Next): boolean {
    if (this.#next !== first && this.#next !== "more") return false
    if (this.#open.pop() !== opening) return false
    this.#next = "more"
    if (this.#open.length === 0) this.state = "complete"
    return true
  }
}

/** The prefix that marks numbers and names in a text. No client can guess it. */
const mark = `${globalThis.crypto.randomUUID()}:`

const indexName = /^(?:0|[1-9]\d{0,9})$/

/** Whether JavaScript would move a member with this name to the front of its object, as it does with array indexes. */
export const isIndexName = (name: string): boolean => indexName.test(name)

/** Whether JavaScript would format the number differently. */
export const isInexact = (number: string): boolean => String(Number(number)) !== number

/**
 * Matches what JavaScript may write differently: numbers with 16 digits, with six zeros or a last zero after the point, or
 * with an exponent; `-0`; and names that look like an index. A match inside a string is harmless: `markText` skips it.
 */
const inexactPattern =
  /\d(?:[\d.]{15}|\.(?:000000|\d*0[ \t\n\r]*[,\]}])|[eE][+-]?\d+[ \t\n\r]*[,\]}]|(?<=-0)[ \t\n\r]*[,\]}]|(?<="\d)\d{0,9}"[ \t\n\r]*:)/

const number = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/
const [quote, backslash] = [0x22, 0x5c]

const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39

const isNumberChar = (code: number): boolean =>
  isDigit(code) || code === 0x2d || code === 0x2e || code === 0x2b || code === 0x65 || code === 0x45

/** Whether the next character that is not blank is one of `characters`. */
const isNext = (characters: string, text: string, from: number): boolean => {
  let at = from
  while (isBlank(text.charCodeAt(at))) at++
  return at < text.length && characters.includes(text.charAt(at))
}

/** Returns the position of the closing quote, or the text's length if there is none. */
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

/**
 * Replaces each number that JavaScript would write differently by a marked string, and marks each name that it would move.
 */
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
    } else if (isNumberChar(code)) {
      while (isNumberChar(text.charCodeAt(at + 1))) at++
      const token = text.slice(start, at + 1)
      if (!isInexact(token) || !number.test(token) || !isNext(",]}", text, at + 1)) continue
      marked += `${text.slice(from, start)}"${mark}${token}"`
      from = at + 1
    }
  }
  return from === 0 ? text : marked + text.slice(from)
}

/** Returns the names without duplicates, in their order; undefined if the object has the same order. */
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

/** Returns the object with its original names, and with a source if their order differs from the text's. */
const unmarkNames = (object: Record<string, unknown>, numbers: Numbers | undefined): object => {
  const originalNames = Object.keys(object).map((name) => (name.startsWith(mark) ? name.slice(mark.length) : name))
  const texts: Numbers = new Map()
  const target: Record<string, unknown> = Object.fromEntries(
    Object.entries(object).map(([name, member], at) => {
      const text = numbers?.get(name)
      if (text !== undefined) texts.set(originalNames[at] ?? name, text)
      return [originalNames[at] ?? name, member]
    })
  )
  const names = orderOf(target, originalNames)
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
    // The error message quotes its input, so it must come from the text without marks.
    return JSON.parse(text)
  }
}

/**
 * As `JSON.parse`, but `stringify` writes the value with the same digits and the same member order. A copy of an object or
 * array loses this for its own members, but not for nested ones; `keepSource` restores it.
 * Throws `NestsTooDeep` and `SyntaxError`.
 */
export const parseExact = (text: string, maxLevels: number): unknown => {
  const marked = inexactPattern.test(text) ? markText(text) : text
  const value = parse(text, marked)
  if (text.length > 2 * maxLevels && !nestsWithin(maxLevels, value)) throw new NestsTooDeep()
  return marked === text ? value : unmark(value)
}

/**
 * Matches the escape of a lone surrogate. Also matches plain text after an escaped backslash, which `escapes` tells apart.
 */
const loneSurrogate =
  /\\u[dD](?:[89abAB]..(?!\\u[dD][c-fC-F])|[c-fC-F]..(?<!(?:^|[^\\])\\u[dD][89abAB]..\\u[dD][c-fC-F]..))/

const escapes = /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[dD][89a-fA-F][\da-fA-F]{2}|[^])/g

/** Replaces the escapes of lone surrogates in a JSON text by U+FFFD. */
export const replaceLoneSurrogates = (text: string): string =>
  loneSurrogate.test(text)
    ? text.replace(escapes, (escape) => (escape.length === 6 ? String.raw`\ufffd` : escape))
    : text
