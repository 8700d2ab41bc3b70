import { atLeast, atMost } from "./Facets.ts"
import { type Node, numberAt, stringAt } from "./JsonSchema.ts"
import type { Words } from "./Words.ts"

/** Characters of the longest text made, whatever a schema asks for. */
const maxLength = 16_384
/** Multiples tried one after the other: some are not exact as floating point numbers. */
const maxMultiples = 20

const twoDigits = (n: number): string => String(n).padStart(2, "0")
const date = (n: number): string => `2026-${twoDigits(1 + (Math.floor(n / 28) % 12))}-${twoDigits(1 + (n % 28))}`
const email = (_: number, name: string): string => `${name}@example.com`
const hostname = (_: number, name: string): string => `${name}.example.com`
const uri = (_: number, name: string): string => `https://example.com/${name}`
const path = (_: number, name: string): string => `/${name}`

/** The `n`th example of each format, with a name in it where there is room for one. */
const formats: Readonly<Record<string, (n: number, name: string) => string>> = {
  date,
  "date-time": (n) => `${date(n)}T12:00:00Z`,
  time: (n) => `${twoDigits(9 + (n % 12))}:${twoDigits(Math.floor(n / 12) % 60)}:00Z`,
  duration: (n) => `PT${n + 1}H`,
  email,
  "idn-email": email,
  hostname,
  "idn-hostname": hostname,
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

/** Texts to try for a schema, the likeliest first; `n` counts the texts of the document, for variety. */
export function* texts(facets: ReadonlyArray<Node>, words: Words, n: number): Generator<string> {
  const topic = words.topics[n % words.topics.length] ?? "sandbox"
  const round = Math.floor(n / words.topics.length)
  for (const facet of facets) {
    const format = stringAt(facet, "format") ?? ""
    if (Object.hasOwn(formats, format)) yield formats[format]?.(n, nameOf(topic, n)) ?? ""
  }
  const min = Math.min(Math.max(atLeast(facets, "minLength"), 0), maxLength)
  const max = Math.min(Math.max(atMost(facets, "maxLength"), 0), maxLength)
  yield fitLength(round === 0 ? topic : `${topic} ${round + 1}`, min, max)
  yield fitLength(n.toString(36), min, max)
  yield fitLength("", min, max)
}

/** The text padded or cut to between `min` and `max` characters. */
const fitLength = (text: string, min: number, max: number): string => {
  const characters = Array.from(text)
  if (characters.length > max) return characters.slice(0, max).join("")
  return text.padEnd(text.length + min - characters.length, " and so on").replace(/ $/, ".")
}

/** Numbers to try for a schema, the prompt's own first; `salt` tells siblings apart. */
export function* numbers(facets: ReadonlyArray<Node>, whole: boolean, words: Words, salt: number): Generator<number> {
  const fromPrompt = words.numbers[salt]
  if (fromPrompt !== undefined) yield fromPrompt
  const low = atLeast(facets, "minimum", "exclusiveMinimum")
  const high = atMost(facets, "maximum", "exclusiveMaximum")
  const step = stepOf(facets, whole)
  if (step !== undefined) {
    const [first, last] = [Math.ceil(low / step), Math.floor(high / step)]
    for (let n = salt; n < salt + maxMultiples; n++) {
      if (Number.isFinite(low)) yield (first + (n % (last - first + 1))) * step
      else yield Math.min(1 + n, last - n) * step
    }
    return
  }
  const from = Number.isFinite(low) ? low : Math.min(1, high - 1 - salt)
  yield from + salt
  yield from + ((Number.isFinite(high) ? high : from + 1) - from) * ((salt + 1) / (salt + 2))
  yield from
  yield high
}

/** The distance between allowed numbers; undefined where any number is. */
const stepOf = (facets: ReadonlyArray<Node>, whole: boolean): number | undefined => {
  const steps = facets.map((facet) => numberAt(facet, "multipleOf") ?? 0).filter((step) => step > 0)
  const [first, ...others] = [...(whole ? [1] : []), ...steps].toSorted((one, other) => other - one).slice(0, 10)
  if (first === undefined) return undefined
  for (let times = 1; times <= 1_000; times++) {
    if (others.every((other) => Number.isInteger((first * times) / other))) return first * times
  }
  return first
}
