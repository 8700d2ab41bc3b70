import { Predicate } from "effect"
import { jsonTexts, nestsWithin } from "../../domain/Json.ts"
import { stringify } from "../../domain/JsonSource.ts"
import { parseExact } from "../../domain/JsonText.ts"
import { type Chunks, chunksOf } from "../../services/media/Chunks.ts"
import type { Steps } from "../../services/runtime/EventLoop.ts"

export type Fields = Readonly<Record<PropertyKey, unknown>>

const none: Fields = {}

/** No protocol nests deeper, and what recurses over a value of so many levels stays within its stack. */
const maxLevels = 200

/** Without a byte order mark. */
export const withoutMark = (text: string): string => (text.charCodeAt(0) === 0xfe_ff ? text.slice(1) : text)

const parse = (text: string): unknown => {
  try {
    return JSON.parse(withoutMark(text))
  } catch {
    return undefined
  }
}

const nestsTooDeep = (text: string, value: unknown): boolean =>
  text.length > 2 * maxLevels && !nestsWithin(maxLevels, value)

/** The value of a JSON text; undefined where it is none, or nests more than 200 levels deep. */
export const parseJson = (text: string): unknown => {
  const value = parse(text)
  return nestsTooDeep(text, value) ? undefined : value
}

/** `parseJson` for a text that `stringify` writes again in part: numbers digit for digit, members in order. */
export const parseJsonExact = (text: string): unknown => {
  try {
    return parseExact(withoutMark(text), maxLevels)
  } catch {
    return undefined
  }
}

/** A call's arguments as an object, in the formats of all hosts. */
const argumentsObject = /"(?:args|arguments|input|partial_json)"[ \t\n\r]*:[ \t\n\r]*\{/

/** Parses an answer or an event of a host; exactly if it holds arguments, or if the client gets it as it is. */
export const parseAnswer = (text: string, isNative: boolean): unknown =>
  isNative || argumentsObject.test(text) ? parseJsonExact(text) : parseJson(text)

const prune = (levels: number, value: unknown): unknown => {
  if (Array.isArray(value)) return levels === 0 ? null : value.map((item) => prune(levels - 1, item))
  if (!Predicate.isRecord(value)) return value
  if (levels === 0) return null
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, prune(levels - 1, member)]))
}

/** The same for what is read for its first levels only: what nests deeper than 200 is null. */
export const parsePruned = (text: string): unknown => {
  const value = parse(text)
  return nestsTooDeep(text, value) ? prune(maxLevels, value) : value
}

export const asFields = (value: unknown): Fields => (Predicate.isRecord(value) ? value : none)

export const asText = (value: unknown): string => (typeof value === "string" ? value : "")

export const asList = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

export const asRecords = (value: unknown): ReadonlyArray<Fields> => asList(value).filter(Predicate.isRecord)

export const asCount = (value: unknown): number =>
  typeof value === "number" && Number.isFinite(value) && value > 0 ? Math.floor(value) : 0

export const without = (fields: Fields, names: ReadonlyArray<string>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)))

type Defined<A> = { [K in keyof A]: Exclude<A[K], undefined> }

const isDefined = <A>(value: A): value is Exclude<A, undefined> => value !== undefined

/** Hosts read `null` and absence differently. */
export const withoutUndefined = <A extends object>(fields: A): Partial<Defined<A>> => {
  const kept: Partial<Defined<A>> = {}
  for (const name in fields) {
    const value = fields[name]
    if (isDefined(value)) kept[name] = value
  }
  return kept
}

/** Many MiB, written out in slices just before it is sent. */
export class LargeJson {
  readonly value: unknown

  constructor(value: unknown) {
    this.value = value
  }
}

/** A body to send: its text, or the value if that is large. */
export const jsonBody = (value: object, isLarge: boolean): string | LargeJson =>
  isLarge ? new LargeJson(value) : stringify(value)

export function* encodeJson({ value }: LargeJson): Steps<Chunks> {
  const parts: Array<Uint8Array> = []
  for (const text of jsonTexts(value)) {
    parts.push(Buffer.from(text))
    yield
  }
  return chunksOf(parts)
}

export const pick = (fields: Fields, names: ReadonlyArray<string>): Fields =>
  Object.fromEntries(names.flatMap((name) => (fields[name] === undefined ? [] : [[name, fields[name]]])))
