import { Predicate } from "effect"
import type { Fields } from "../../client/Json.ts"
import type { Words } from "./Words.ts"

const maxLength = 16_384
/** Several, since some are inexact in floating point, and another step may ask for a multiple of its own. */
const maxMultiples = 60

const limits = (facets: ReadonlyArray<Fields>, keys: ReadonlyArray<string>): ReadonlyArray<number> =>
  facets.flatMap((facet) => keys.map((key) => facet[key])).filter((limit) => typeof limit === "number")

export const atLeast = (facets: ReadonlyArray<Fields>, ...keys: ReadonlyArray<string>): number =>
  Math.max(...limits(facets, keys))

export const atMost = (facets: ReadonlyArray<Fields>, ...keys: ReadonlyArray<string>): number =>
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

export function* texts(facets: ReadonlyArray<Fields>, { topics }: Words, n: number): Generator<string> {
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

export const numbers = (
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
