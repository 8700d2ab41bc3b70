import { Predicate } from "effect"
import type { ChatRequest } from "../../domain/Chat.ts"
import { endsOf, mark, minCharacters } from "../chat/CacheMarks.ts"
import { asFields, asList, asRecords, asText, type Fields } from "../client/Json.ts"
import type { Options } from "./Options.ts"

const isMarked = ({ cache_control }: Fields): boolean => cache_control !== undefined && cache_control !== null

/** Where a block may hold others, in a list or one alone. */
const inner = ["content", "source", "tool", "definition"]

const hasMark = (blocks: unknown): boolean =>
  asRecords(Predicate.isRecord(blocks) ? [blocks] : blocks).some(
    (block) => isMarked(block) || inner.some((name) => hasMark(block[name]))
  )

const isMarkedBody = (body: Fields): boolean =>
  isMarked(body) || hasMark(body.tools) || hasMark(body.system) || hasMark(body.messages)

const isGoingOn = ({ messages, tool_choice, tools }: Fields): boolean =>
  asRecords(messages).some(({ role }) => role === "assistant") ||
  (asList(tools).length > 0 && (asFields(tool_choice).type ?? "auto") === "auto")

/** Total length of all texts in a value, counted up to a limit. */
const lengthIn = (value: unknown, limit: number): number => {
  if (typeof value === "string") return value.length
  let length = 0
  for (const member of Predicate.isObject(value) ? Object.values(value) : []) {
    length += lengthIn(member, limit - length)
    if (length >= limit) break
  }
  return length
}

const isWorthIt = (body: Fields): boolean =>
  isGoingOn(body) && lengthIn([body.system, body.messages, body.tools], minCharacters) >= minCharacters

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

const addMarks = (body: Fields): Fields => {
  const ends = new Set(endsOf(asList(body.messages).map(asFields)))
  const messages = asList(body.messages).map((message, at) =>
    ends.has(at) ? { ...asFields(message), content: markContent(asFields(message).content) } : message
  )
  const system = markContent(body.system)
  if (system !== body.system) return { ...body, messages, system }
  return { ...body, messages, ...("tools" in body && { tools: markTools(body.tools) }) }
}

type Unpriced = NonNullable<ChatRequest["unpricedMarks"]>

const keepPriced = <A>(value: A, unpriced: Unpriced): A | Fields => {
  if (!Predicate.isRecord(value)) return value
  const kept: Record<string, unknown> = { ...value }
  if (isMarked(value)) kept.cache_control = unpriced === "all" ? undefined : mark
  for (const name of inner) if (name in value) kept[name] = keepPricedIn(value[name], unpriced)
  return kept
}

const keepPricedIn = (blocks: unknown, unpriced: Unpriced): unknown =>
  Array.isArray(blocks) ? blocks.map((block) => keepPriced(block, unpriced)) : keepPriced(blocks, unpriced)

const keepPricedBody = (body: Fields, unpriced: Unpriced): Fields => {
  const lists = Object.entries(body).filter(([name]) => name === "tools" || name === "system" || name === "messages")
  const kept = lists.map(([name, value]) => [name, keepPricedIn(value, unpriced)] as const)
  return { ...asFields(keepPriced(body, unpriced)), ...Object.fromEntries(kept) }
}

/** A request in the vendor's own words, without marks that have no price; one without any gets its own where it goes on. */
export const markNative = (body: Fields, { cache }: Pick<Options, "cache">, { unpricedMarks }: ChatRequest): Fields => {
  if (isMarkedBody(body)) return unpricedMarks === undefined ? body : keepPricedBody(body, unpricedMarks)
  return cache === "auto" && unpricedMarks !== "all" && isWorthIt(body) ? addMarks(body) : body
}
