import { createHash } from "node:crypto"
import type { CacheControl, ChatRequest, Message, Part } from "../../domain/Chat.ts"

/** Vendors accept at most four breakpoints in one request. */
const maxBreakpoints = 4

/** The length of the shortest prompt that any model caches: about 512 tokens. */
export const minCharacters = 2_048

interface Cacheable {
  readonly cache_control?: CacheControl | undefined
}

/** Returns the breakpoint of a tool, part or message. A message's breakpoint belongs to its last block. */
export type FindBreakpoint = (item: Cacheable) => CacheControl | undefined

export const noBreakpoints: FindBreakpoint = () => undefined

export const ephemeral = { type: "ephemeral" } as const
const ephemeralHour = { type: "ephemeral", ttl: "1h" } as const

const hasCacheControl = ({ cache_control }: Cacheable): boolean => cache_control !== undefined
const isForAnHour = ({ cache_control }: Cacheable): boolean => cache_control?.ttl === "1h"

/** The vendors' format. Without `ttl`, the lifetime is five minutes. */
export interface WithCacheControl {
  readonly cache_control: typeof ephemeral | typeof ephemeralHour
}

export const cacheControlField = (control: CacheControl | undefined): WithCacheControl | undefined =>
  control && { cache_control: control.ttl === "1h" ? ephemeralHour : ephemeral }

/** Returns the blocks with the breakpoint on the last one, unless that has its own. */
export const addToLastBlock = <A extends object>(blocks: Array<A>, control: CacheControl | undefined): Array<A> =>
  control === undefined
    ? blocks
    : blocks.map((block, at) => (at === blocks.length - 1 ? { ...cacheControlField(control), ...block } : block))

interface CacheableItems {
  /** Tools and system messages, which vendors put first. */
  readonly head: ReadonlyArray<Cacheable>
  readonly tail: ReadonlyArray<Cacheable>
}

const findCacheable = ({ messages, tools }: ChatRequest): CacheableItems => {
  const head: Array<Cacheable> = tools.filter(hasCacheControl)
  const tail: Array<Cacheable> = []
  for (const message of messages) {
    const items = message.role === "system" ? head : tail
    if (Array.isArray(message.content)) items.push(...message.content.filter(hasCacheControl))
    if (hasCacheControl(message)) items.push(message)
  }
  return { head, tail }
}

/** Selects at most four: the latest of the conversation, and at least one of the head, which conversations share. */
const selectBreakpoints = ({ head, tail }: CacheableItems): ReadonlyArray<Cacheable> => {
  const last = tail.slice(head.length === 0 ? -maxBreakpoints : 1 - maxBreakpoints)
  return last.length === maxBreakpoints ? last : [...head.slice(last.length - maxBreakpoints), ...last]
}

/**
 * Extends every breakpoint before a one-hour breakpoint to one hour. Vendors refuse other orders, and charge the one-hour
 * price up to the last one-hour breakpoint.
 */
const fitBreakpoints = (cacheable: CacheableItems, { unpricedBreakpoints }: ChatRequest): FindBreakpoint => {
  const selectedItems = selectBreakpoints(cacheable)
  const lastHour = unpricedBreakpoints === "hour" ? -1 : selectedItems.findLastIndex(isForAnHour)
  const fittedBreakpoints = new Map(selectedItems.map((item, at) => [item, at <= lastHour ? ephemeralHour : ephemeral]))
  return (item) => fittedBreakpoints.get(item)
}

/** A single question or a forced call has no next turn that could read the cache. */
const mayContinue = ({ messages, toolChoice, tools }: ChatRequest): boolean =>
  messages.some(({ role }) => role === "assistant") ||
  (tools.length > 0 && (toolChoice === undefined || toolChoice === "auto"))

const lengthOf = ({ content }: Message): number => {
  if (content === null || typeof content === "string") return content?.length ?? 0
  return content.reduce((sum, part) => sum + (part.type === "text" ? part.text.length : minCharacters), 0)
}

const isCacheable = ({ messages, tools }: ChatRequest): boolean => {
  let length = 0
  for (const message of messages) {
    length += lengthOf(message)
    if (length >= minCharacters) return true
  }
  return tools.length > 0 && length + JSON.stringify(tools).length >= minCharacters
}

const isFromUser = ({ role }: { readonly role?: unknown }): boolean => role === "user" || role === "tool"

/** Returns the indexes of the last user or tool message, and of the one that ended the previous request. */
export const endsOf = (messages: ReadonlyArray<{ readonly role?: unknown }>): ReadonlyArray<number> => {
  const end = messages.findLastIndex(isFromUser)
  const answer = messages.findLastIndex(({ role }, at) => role === "assistant" && at < end)
  return [messages.findLastIndex((message, at) => isFromUser(message) && at < answer), end].filter((at) => at >= 0)
}

/** Places breakpoints after the last system message, or else the tools, and at the ends of this and the last request. */
const placeBreakpoints = ({ messages, tools }: ChatRequest): FindBreakpoint => {
  const head = messages.findLast(({ role }) => role === "system") ?? tools.at(-1)
  const lastItems = new Set<unknown>([head, ...endsOf(messages).map((at) => messages[at])])
  return (item) => (lastItems.has(item) ? ephemeral : undefined)
}

/** Returns the client's breakpoints. If there are none and `isAutomatic` is set, places some for the next turn. */
export const cacheBreakpoints = (request: ChatRequest, isAutomatic: boolean): FindBreakpoint => {
  if (request.unpricedBreakpoints === "all") return noBreakpoints
  const cacheable = findCacheable(request)
  if (cacheable.head.length + cacheable.tail.length > 0) return fitBreakpoints(cacheable, request)
  return isAutomatic && mayContinue(request) && isCacheable(request) ? placeBreakpoints(request) : noBreakpoints
}

const hasContent = (part: Part): boolean => part.type !== "text" || part.text.trim() !== ""

/** Returns the breakpoint of each part. The message's own belongs to its last part. Empty texts have none. */
export const partBreakpoints = (
  message: Message,
  breakpointOf: FindBreakpoint
): ReadonlyArray<CacheControl | undefined> => {
  if (breakpointOf === noBreakpoints) return []
  const { content } = message
  const parts: ReadonlyArray<Part> = typeof content === "string" ? [{ type: "text", text: content }] : (content ?? [])
  const last = parts.findLastIndex(hasContent)
  return parts.map((part, at) => {
    if (!hasContent(part)) return undefined
    return breakpointOf(part) ?? (at === last ? breakpointOf(message) : undefined)
  })
}

/** Whether all breakpoints of a request have a lifetime of one hour. */
export const isOneHourCache = (request: ChatRequest): boolean => {
  const { head, tail } = findCacheable(request)
  const all = [...head, ...tail]
  return request.unpricedBreakpoints === undefined && all.length > 0 && all.every(isForAnHour)
}

const maxKeyLength = 64

/** Hashes a key that vendors refuse as too long, or that a header cannot contain. */
export const fitCacheKey = (key: string): string =>
  key.length <= maxKeyLength && /^[!-~]+$/.test(key) ? key : createHash("sha256").update(key).digest("hex")
