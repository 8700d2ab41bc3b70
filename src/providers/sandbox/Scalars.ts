import { tightest } from "./Facets.ts"
import { formatted } from "./Formats.ts"
import { type Document, type Node, patternOf, stringAt } from "./JsonSchema.ts"
import { textOf } from "./PatternText.ts"
import type { Words } from "./Words.ts"

/** Characters of the longest text made, whatever a schema asks for. */
const longestText = 16_384
const nudges = 60

const highest = (...numbers: ReadonlyArray<number>): number => Math.max(...numbers)
const lowest = (...numbers: ReadonlyArray<number>): number => Math.min(...numbers)

/** Texts to try for a schema, the likeliest first; `n` counts the texts of the document, for variety. */
export function* texts(document: Document, facets: ReadonlyArray<Node>, words: Words, n: number): Generator<string> {
  const min = Math.min(tightest(facets, "minLength", highest) ?? 0, longestText)
  const max = Math.min(tightest(facets, "maxLength", lowest) ?? longestText, longestText)
  const topic = words.topics[n % words.topics.length] ?? "sandbox"
  const round = Math.floor(n / words.topics.length)
  for (const facet of facets) {
    const text = formatted(stringAt(facet, "format") ?? "", topic, n)
    if (text !== undefined) yield text
  }
  yield sized(round === 0 ? topic : `${topic} ${round + 1}`, min, max)
  for (const facet of facets) {
    const pattern = patternOf(document, stringAt(facet, "pattern") ?? "")
    if (pattern === undefined) continue
    for (const hint of [topic, "a"]) yield textOf(pattern, { hint, min, max, variant: n })
  }
  yield sized(n.toString(36), min, max)
  yield sized("", min, max)
}

/** The text repeated or cut to between `min` and `max` characters. */
const sized = (text: string, min: number, max: number): string => {
  const characters = Array.from(text)
  if (characters.length > max) return characters.slice(0, max).join("")
  if (characters.length >= min) return text
  const unit = Array.from(text === "" ? "a" : `${text} `)
  const padded = Array.from({ length: min }, (_, at) => unit[at % unit.length] ?? "a")
  return padded.join("").replace(/ $/, ".")
}

/** Numbers to try for a schema, the prompt's own first; `salt` tells siblings apart. */
export function* numbers(facets: ReadonlyArray<Node>, whole: boolean, words: Words, salt: number): Generator<number> {
  const fromPrompt = words.numbers[salt]
  if (fromPrompt !== undefined) yield fromPrompt
  const over = tightest(facets, "exclusiveMinimum", highest)
  const under = tightest(facets, "exclusiveMaximum", lowest)
  const low = highestOf(tightest(facets, "minimum", highest), over)
  const high = lowestOf(tightest(facets, "maximum", lowest), under)
  const step = stepOf(facets, whole)
  if (step !== undefined) {
    const least = Math.ceil((low ?? Math.min(step, high ?? step)) / step)
    const most = high === undefined ? undefined : Math.floor(high / step)
    // Some multiples are not exact as floating point numbers, and a limit itself may be excluded.
    for (let nudge = 0; nudge < nudges; nudge++) {
      yield (least + salt + nudge) * step
      if (low === undefined && most !== undefined) yield (most - salt - nudge) * step
    }
    for (let nudge = 0; nudge < 3; nudge++) yield (least + nudge) * step
    return
  }
  const from = low ?? (high === undefined ? 1 : high - 1 - salt)
  yield from + salt
  if (high === undefined) yield from + salt + 1
  else yield from + ((high - from) * (salt + 1)) / (salt + 2)
  yield from
  if (high !== undefined) yield high
}

const highestOf = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? (one ?? other) : Math.max(one, other)
const lowestOf = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? (one ?? other) : Math.min(one, other)

/** The distance between allowed numbers; undefined where any number is. */
const stepOf = (facets: ReadonlyArray<Node>, whole: boolean): number | undefined => {
  const steps = facets.flatMap((facet) => {
    const step = facet["multipleOf"]
    return typeof step === "number" && step > 0 ? [step] : []
  })
  const all = whole ? [1, ...steps] : steps
  const [first, ...others] = all.toSorted((one, other) => other - one)
  if (first === undefined) return undefined
  for (let times = 1; times <= 1000; times++) {
    if (others.every((other) => Number.isInteger((first * times) / other))) return first * times
  }
  return first
}
