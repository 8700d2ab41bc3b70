import { Predicate } from "effect"
import { endsOf, leastCharacters, mark } from "../chat/CacheMarks.ts"
import { asFields, asList, asRecords, asText, type Fields } from "../client/Json.ts"

const isMarked = (place: unknown): boolean =>
  Predicate.isRecord(place) && place.cache_control !== undefined && place.cache_control !== null

/** In blocks, and in the blocks of a tool's result. */
const hasMark = (blocks: unknown): boolean =>
  asRecords(blocks).some((block) => isMarked(block) || asRecords(block.content).some(isMarked))

const isMarkedBody = (body: Fields): boolean =>
  isMarked(body) ||
  hasMark(body.tools) ||
  hasMark(body.system) ||
  asRecords(body.messages).some(({ content }) => hasMark(content))

const isGoingOn = ({ messages, tool_choice, tools }: Fields): boolean =>
  asRecords(messages).some(({ role }) => role === "assistant") ||
  (asList(tools).length > 0 && (asFields(tool_choice).type ?? "auto") === "auto")

/** Of all texts in a value, up to a limit. */
const lengthIn = (value: unknown, limit: number): number => {
  if (typeof value === "string") return value.length
  let length = 0
  for (const member of Predicate.isObject(value) ? Object.values(value) : []) {
    length += lengthIn(member, limit - length)
    if (length >= limit) break
  }
  return length
}

const canBeMarked = (block: unknown): boolean => {
  const { text, type } = asFields(block)
  return type === "text"
    ? asText(text).trim() !== ""
    : type === "image" || type === "document" || type === "tool_result"
}

const markAt = (places: ReadonlyArray<unknown>, at: number): ReadonlyArray<unknown> =>
  places.map((place, index) => (index === at ? { ...asFields(place), cache_control: mark } : place))

/** The last block that can be; a text alone becomes one. */
const markContent = (content: unknown): unknown => {
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : asList(content)
  const at = blocks.findLastIndex(canBeMarked)
  return at < 0 ? content : markAt(blocks, at)
}

/** A tool that is loaded only when it is needed cannot be marked. */
const markTools = (tools: unknown): unknown => {
  const at = asList(tools).findLastIndex((tool) => asFields(tool).defer_loading !== true)
  return at < 0 ? tools : markAt(asList(tools), at)
}

/** A request in the vendor's own words, with marks where it is going on and has none. */
export const markNative = (body: Fields): Fields => {
  const fields = [body.system, body.messages, body.tools]
  if (isMarkedBody(body) || !isGoingOn(body) || lengthIn(fields, leastCharacters) < leastCharacters) return body
  const ends = new Set(endsOf(asList(body.messages).map(asFields)))
  const messages = asList(body.messages).map((message, at) =>
    ends.has(at) ? { ...asFields(message), content: markContent(asFields(message).content) } : message
  )
  const system = markContent(body.system)
  return system === body.system
    ? { ...body, messages, ...("tools" in body && { tools: markTools(body.tools) }) }
    : { ...body, messages, system }
}
