import { createHash } from "node:crypto"
import type { CacheControl, ChatRequest, Message, Part } from "../../domain/Chat.ts"

/** What vendors take in one request. */
const maxMarks = 4

/** Some 512 tokens: no model caches less. */
export const minCharacters = 2_048

interface Markable {
  readonly cache_control?: CacheControl | undefined
}

/** The mark of a tool, of a part, or of a message: of the last block that the message becomes. */
export type FindMark = (place: Markable) => CacheControl | undefined

export const noMarks: FindMark = () => undefined

export const mark = { type: "ephemeral" } as const
const hourMark = { type: "ephemeral", ttl: "1h" } as const

const isMarked = ({ cache_control }: Markable): boolean => cache_control !== undefined
const isForAnHour = ({ cache_control }: Markable): boolean => cache_control?.ttl === "1h"

/** As vendors have it: five minutes is their default. */
export interface Marked {
  readonly cache_control: typeof mark | typeof hourMark
}

export const markField = (given: CacheControl | undefined): Marked | undefined =>
  given && { cache_control: given.ttl === "1h" ? hourMark : mark }

/** Leaves a mark that the last block has. */
export const markLast = <A extends object>(blocks: Array<A>, given: CacheControl | undefined): Array<A> =>
  given === undefined
    ? blocks
    : blocks.map((block, at) => (at === blocks.length - 1 ? { ...markField(given), ...block } : block))

interface MarkedPlaces {
  /** Tools and system: vendors put them first. */
  readonly head: ReadonlyArray<Markable>
  readonly tail: ReadonlyArray<Markable>
}

const markedPlaces = ({ messages, tools }: ChatRequest): MarkedPlaces => {
  const head: Array<Markable> = tools.filter(isMarked)
  const tail: Array<Markable> = []
  for (const message of messages) {
    const places = message.role === "system" ? head : tail
    if (Array.isArray(message.content)) places.push(...message.content.filter(isMarked))
    if (isMarked(message)) places.push(message)
  }
  return { head, tail }
}

/** The end of the head, which conversations share, and the end of the conversation, which grows. */
const keepMarks = ({ head, tail }: MarkedPlaces): ReadonlyArray<Markable> => {
  const last = tail.slice(head.length === 0 ? -maxMarks : 1 - maxMarks)
  return last.length === maxMarks ? last : [...head.slice(last.length - maxMarks), ...last]
}

/** A mark before one for an hour is for an hour too: vendors refuse another, and charge for an hour up to the last such. */
const fitMarks = (places: MarkedPlaces, { unpricedMarks }: ChatRequest): FindMark => {
  const kept = keepMarks(places)
  const lastHour = unpricedMarks === "hour" ? -1 : kept.findLastIndex(isForAnHour)
  const fitted = new Map(kept.map((place, at) => [place, at <= lastHour ? hourMark : mark]))
  return (place) => fitted.get(place)
}

/** A single question, or one with a forced call, has no next turn to read what it would write. */
const isGoingOn = ({ messages, toolChoice, tools }: ChatRequest): boolean =>
  messages.some(({ role }) => role === "assistant") ||
  (tools.length > 0 && (toolChoice === undefined || toolChoice === "auto"))

const lengthOf = ({ content }: Message): number => {
  if (content === null || typeof content === "string") return content?.length ?? 0
  return content.reduce((sum, part) => sum + (part.type === "text" ? part.text.length : minCharacters), 0)
}

const isLong = ({ messages, tools }: ChatRequest): boolean => {
  let length = 0
  for (const message of messages) {
    length += lengthOf(message)
    if (length >= minCharacters) return true
  }
  return tools.length > 0 && length + JSON.stringify(tools).length >= minCharacters
}

const isFromUser = ({ role }: { readonly role?: unknown }): boolean => role === "user" || role === "tool"

/** Where the conversation ends, and where it ended last time: with that mark too, what came since may be long. */
export const endsOf = (messages: ReadonlyArray<{ readonly role?: unknown }>): ReadonlyArray<number> => {
  const end = messages.findLastIndex(isFromUser)
  const answer = messages.findLastIndex(({ role }, at) => role === "assistant" && at < end)
  return [messages.findLastIndex((message, at) => isFromUser(message) && at < answer), end].filter((at) => at >= 0)
}

/** What all turns share ends with the system, or with the tools where there is none. */
const placeMarks = ({ messages, tools }: ChatRequest): FindMark => {
  const head = messages.findLast(({ role }) => role === "system") ?? tools.at(-1)
  const places = new Set<unknown>([head, ...endsOf(messages).map((at) => messages[at])])
  return (place) => (places.has(place) ? mark : undefined)
}

/** The client's marks; without any and with `isAutomatic`, marks where the next turn will read this one's writes. */
export const cacheMarks = (request: ChatRequest, isAutomatic: boolean): FindMark => {
  if (request.unpricedMarks === "all") return noMarks
  const places = markedPlaces(request)
  if (places.head.length + places.tail.length > 0) return fitMarks(places, request)
  return isAutomatic && isGoingOn(request) && isLong(request) ? placeMarks(request) : noMarks
}

const isFilled = (part: Part): boolean => part.type !== "text" || part.text.trim() !== ""

/** One mark for each part; a message's own mark goes to its last part, and empty text has none. */
export const partMarks = (message: Message, markOf: FindMark): ReadonlyArray<CacheControl | undefined> => {
  if (markOf === noMarks) return []
  const { content } = message
  const parts: ReadonlyArray<Part> = typeof content === "string" ? [{ type: "text", text: content }] : (content ?? [])
  const last = parts.findLastIndex(isFilled)
  return parts.map((part, at) => {
    if (!isFilled(part)) return undefined
    return markOf(part) ?? (at === last ? markOf(message) : undefined)
  })
}

/** Whether all of a request's marks are for an hour. */
export const asksForAnHour = (request: ChatRequest): boolean => {
  const { head, tail } = markedPlaces(request)
  const all = [...head, ...tail]
  return request.unpricedMarks === undefined && all.length > 0 && all.every(isForAnHour)
}

const longestKey = 64

/** Vendors refuse longer ones, and no header takes every character. */
export const fitCacheKey = (key: string): string =>
  key.length <= longestKey && /^[!-~]+$/.test(key) ? key : createHash("sha256").update(key).digest("hex")
