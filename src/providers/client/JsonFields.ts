import { Predicate } from "effect"
import { jsonTexts, nestsWithin } from "../../domain/Json.ts"
import { stringify } from "../../domain/JsonSource.ts"
import { parseExact } from "../../domain/JsonText.ts"
import { type ByteChunks, chunksOf } from "../../services/media/Base64.ts"
import type { Steps } from "../../services/runtime/EventLoop.ts"

export type Fields = Readonly<Record<PropertyKey, unknown>>

const noFields: Fields = {}

/** No protocol nests deeper, and recursion over this many levels cannot overflow the stack. */
const maxLevels = 200

export const withoutByteOrderMark = (text: string): string => (text.charCodeAt(0) === 0xfe_ff ? text.slice(1) : text)

const parse = (text: string): unknown => {
  try {
    return JSON.parse(withoutByteOrderMark(text))
  } catch {
    return undefined
  }
}

const nestsTooDeep = (text: string, value: unknown): boolean =>
  text.length > 2 * maxLevels && !nestsWithin(maxLevels, value)

/** Returns the value of a JSON text. Undefined if it is invalid or nests more than 200 levels deep. */
export const parseJson = (text: string): unknown => {
  const value = parse(text)
  return nestsTooDeep(text, value) ? undefined : value
}

/** Like `parseJson`, but `stringify` restores all digits of the numbers and the order of the members. */
export const parseJsonExact = (text: string): unknown => {
  try {
    return parseExact(withoutByteOrderMark(text), maxLevels)
  } catch {
    return undefined
  }
}

/** Matches call arguments that are an object, in the formats of all providers. */
const argumentsObject = /"(?:args|arguments|input|partial_json)"[ \t\n\r]*:[ \t\n\r]*\{/

/** Parses an answer or event. Uses `parseJsonExact` if it contains arguments or is forwarded to the client. */
export const parseAnswer = (text: string, isNative: boolean): unknown =>
  isNative || argumentsObject.test(text) ? parseJsonExact(text) : parseJson(text)

const prune = (levels: number, value: unknown): unknown => {
  if (Array.isArray(value)) return levels === 0 ? null : value.map((item) => prune(levels - 1, item))
  if (!Predicate.isRecord(value)) return value
  if (levels === 0) return null
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, prune(levels - 1, member)]))
}

/** Like `parseJson`, but values deeper than 200 levels become null. */
export const parsePruned = (text: string): unknown => {
  const value = parse(text)
  return nestsTooDeep(text, value) ? prune(maxLevels, value) : value
}

export const asFields = (value: unknown): Fields => (Predicate.isRecord(value) ? value : noFields)

export const asText = (value: unknown): string => (typeof value === "string" ? value : "")

export const asList = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

export const asRecords = (value: unknown): ReadonlyArray<Fields> => asList(value).filter(Predicate.isRecord)

export const asCount = (value: unknown): number =>
  typeof value === "number" && Number.isFinite(value) && value > 0 ? Math.floor(value) : 0

export const without = (fields: Fields, names: ReadonlyArray<string>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)))

type Defined<A> = { [K in keyof A]: Exclude<A[K], undefined> }

const isDefined = <A>(value: A): value is Exclude<A, undefined> => value !== undefined

/** Removes undefined fields. Providers treat `null` and absent fields differently. */
export const withoutUndefined = <A extends object>(fields: A): Partial<Defined<A>> => {
  const defined: Partial<Defined<A>> = {}
  for (const name in fields) {
    const value = fields[name]
    if (isDefined(value)) defined[name] = value
  }
  return defined
}

/** A body of many MiB, serialized in slices just before it is sent. */
export class LargeJson {
  readonly value: unknown

  constructor(value: unknown) {
    this.value = value
  }
}

/** Returns the JSON text of a body, or a `LargeJson` that is serialized later. */
export const jsonBody = (value: object, isLarge: boolean): string | LargeJson =>
  isLarge ? new LargeJson(value) : stringify(value)

export function* encodeJson({ value }: LargeJson): Steps<ByteChunks> {
  const parts: Array<Uint8Array> = []
  for (const text of jsonTexts(value)) {
    parts.push(Buffer.from(text))
    yield
  }
  return chunksOf(parts)
}

export const pick = (fields: Fields, names: ReadonlyArray<string>): Fields =>
  Object.fromEntries(names.flatMap((name) => (fields[name] === undefined ? [] : [[name, fields[name]]])))
