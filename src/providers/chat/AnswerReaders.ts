import { Either, identity, Predicate, Schema } from "effect"
import type { ChatAnswer, ChatEvent, Citation, FinishReason, ToolCall, UnknownPart, Usage } from "../../domain/Chat.ts"
import { stringify } from "../../domain/JsonSource.ts"
import { sanitizeUsage } from "../../domain/Pricing.ts"
import { asFields, asRecords, asText, parseJsonExact } from "../client/JsonFields.ts"
import { conflictingArguments, isTruncated, toSingleValue } from "./CallArguments.ts"

/** Returns a schema that treats a value of another type as absent. */
const lenient = <A, I>(to: Schema.Schema<A, I>, read: (value: unknown) => unknown) =>
  Schema.transform(Schema.Unknown, to, { strict: false, decode: read, encode: identity })

export const Text = lenient(Schema.String, asText)

/** The arguments of a call as JSON, or undefined if they cannot be read. */
export const Arguments = (read: (value: unknown) => string | undefined) =>
  lenient(Schema.UndefinedOr(Schema.String), read)

export const fields = <const F extends Schema.Struct.Fields>(struct: F) =>
  Schema.transform(Schema.Unknown, Schema.Struct(struct), { strict: false, decode: asFields, encode: identity })

export const records = <A, I>(item: Schema.Schema<A, I>) => lenient(Schema.Array(item), asRecords)

/** Limits each part to its total. Returns undefined if all counts are zero. */
export const usageOf = (usage: Usage): Usage | undefined =>
  usage.prompt + usage.completion + (usage.webSearches ?? 0) === 0 ? undefined : sanitizeUsage(usage)

interface EndState {
  readonly hasCalls: boolean
  /** Whether the arguments of a call are incomplete JSON. Some providers don't report that they truncated an answer. */
  readonly isTruncated?: boolean
  readonly isRefusal?: boolean
}

export const finishOf = (
  reason: FinishReason | undefined,
  { hasCalls, isTruncated = false, isRefusal = false }: EndState
): FinishReason => {
  if (reason !== undefined) return reason
  if (isTruncated) return "length"
  return hasCalls ? "tool_calls" : isRefusal ? "content_filter" : "stop"
}

export const unreadableArguments = "a tool call with arguments that are not a JSON object"

/** Encodes the arguments of a call as JSON. Returns an empty text for none, and undefined if they are no object. */
export const encodeArguments = (callArguments: unknown): string | undefined => {
  if (callArguments === undefined || callArguments === null || callArguments === "") return ""
  const value = typeof callArguments === "string" ? parseJsonExact(callArguments) : callArguments
  if (!Predicate.isRecord(value)) return undefined
  return Object.keys(value).length > 0 ? stringify(value) : ""
}

/** Encodes arguments in a wire format where they are a JSON text. A text may be a piece and is returned unchanged. */
export const argumentsText = (callArguments: unknown): string | undefined =>
  typeof callArguments === "string" ? callArguments : encodeArguments(callArguments)

/** The parts of a provider's answer. An empty text means that the part is absent. */
interface AnswerParts {
  readonly text: string
  /** Appended to the text, unless the text already ends with it. */
  readonly refusal?: string
  readonly reasoning: string
  readonly calls: ReadonlyArray<AnswerCall>
  readonly finish: FinishReason | undefined
  readonly unread?: ReadonlyArray<UnknownPart | undefined>
  readonly isFree?: boolean
  readonly usage: Usage | undefined
  readonly stopSequence?: string | undefined
  readonly sources?: Pick<ChatAnswer, "citations" | "unread"> | undefined
}

interface AnswerCall {
  readonly id: string
  readonly name: string
  readonly arguments: string | undefined
  /** Whether the arguments are plain text. */
  readonly isText?: boolean | undefined
}

/** Returns the calls of an answer with unique ids, or a text that describes a protocol error. */
const readCalls = (answerCalls: ReadonlyArray<AnswerCall>, newId: () => string): ReadonlyArray<ToolCall> | string => {
  const ids = new Set<string>()
  const calls: Array<ToolCall> = []
  for (const call of answerCalls) {
    if (call.name === "") return "a tool call without a name"
    if (call.arguments === undefined) return unreadableArguments
    const text = call.isText ? call.arguments : toSingleValue(call.arguments)
    if (text === undefined) return conflictingArguments
    const id = call.id === "" || ids.has(call.id) ? newId() : call.id
    ids.add(id)
    calls.push({ id, type: "function", function: { name: call.name, arguments: text || "{}" } })
  }
  return calls
}

const isCallTruncated = (call: AnswerCall): boolean => !call.isText && isTruncated(call.arguments ?? "")

/** Builds an answer from its parts. A `Left` is a text that describes a protocol error. */
const answerOf = (parts: AnswerParts, newId: () => string): Either.Either<ChatAnswer, string> => {
  const { calls, finish, reasoning, refusal = "", text, usage } = parts
  const toolCalls = calls.length === 0 ? [] : readCalls(calls, newId)
  if (typeof toolCalls === "string") return Either.left(toolCalls)
  const hasCalls = toolCalls.length > 0
  const content = text.endsWith(refusal) ? text : text + refusal
  const answer: ChatAnswer = {
    content: content === "" && hasCalls ? null : content,
    reasoning: reasoning || undefined,
    toolCalls,
    finish: finishOf(finish, { hasCalls, isTruncated: calls.some(isCallTruncated), isRefusal: refusal !== "" }),
    usage
  }
  return Either.right(hasDetails(parts) ? { ...answer, ...detailsOf(parts) } : answer)
}

/** Few answers have details. Spreading them into each answer took several microseconds. */
const hasDetails = ({ isFree, sources, stopSequence, unread }: AnswerParts): boolean =>
  isFree === true || sources !== undefined || stopSequence !== undefined || unread?.some(Boolean) === true

const withDetails = ({
  citations = [],
  isFree = false,
  stopSequence,
  unread = []
}: Pick<ChatAnswer, "citations" | "isFree" | "stopSequence" | "unread">) => ({
  ...(isFree && { isFree }),
  ...(stopSequence !== undefined && { stopSequence }),
  ...(citations.length > 0 && { citations }),
  ...(unread.length > 0 && { unread })
})

const detailsOf = ({ isFree, sources, stopSequence, unread = [] }: AnswerParts) =>
  withDetails({
    citations: sources?.citations,
    isFree,
    stopSequence,
    unread: [...unread, ...(sources?.unread ?? [])].filter((part) => part !== undefined)
  })

/**
 * Makes a decoder of complete answers. `missingMessage` describes a response without an answer. A text that `partsOf`
 * returns describes a protocol error.
 */
export const answerDecoder = <A, I, Call = void>(
  schema: Schema.Schema<A, I>,
  missingMessage: string,
  partsOf: (body: A, call: Call) => AnswerParts | string
) => {
  const decode = Schema.decodeUnknownEither(schema)
  return (body: unknown, newId: () => string, call: Call): Either.Either<ChatAnswer, string> => {
    const decoded = decode(body)
    const parts = Either.isLeft(decoded) ? missingMessage : partsOf(decoded.right, call)
    return typeof parts === "string" ? Either.left(parts) : answerOf(parts, newId)
  }
}

export const pushUsage = (out: Array<ChatEvent>, usage: Usage | undefined, isPartial = false): undefined => {
  if (usage !== undefined) out.push({ type: "usage", usage, ...(isPartial && { isPartial }) })
}

export const pushUnread = (out: Array<ChatEvent>, ...parts: ReadonlyArray<UnknownPart | undefined>): void => {
  for (const unread of parts) if (unread !== undefined) out.push({ type: "unread", unread })
}

export const pushEnd = (
  out: Array<ChatEvent>,
  reason: FinishReason,
  usage: Usage | undefined,
  { isFree = false, stopSequence }: Pick<ChatAnswer, "isFree" | "stopSequence"> = {}
): "complete" => {
  out.push({
    type: "finish",
    reason,
    ...(stopSequence !== undefined && { stopSequence }),
    ...(isFree && { isFree })
  })
  pushUsage(out, usage)
  return "complete"
}

/** Returns the stop sequence that a provider names if the client requested it. */
export const requestedStop = (sequence: unknown, stops: ReadonlyArray<string>): string | undefined =>
  typeof sequence === "string" && stops.includes(sequence) ? sequence : undefined

export const eventsOf = (answer: ChatAnswer): ReadonlyArray<ChatEvent> => {
  const events: Array<ChatEvent> = []
  if (answer.reasoning !== undefined) events.push({ type: "reasoning", text: answer.reasoning })
  if (answer.content !== null && answer.content !== "") events.push({ type: "content", text: answer.content })
  for (const citation of answer.citations ?? []) events.push({ type: "citation", citation })
  answer.toolCalls.forEach(({ function: { arguments: text, name }, id, signature }, index) => {
    events.push({ type: "tool_call", index, id, name, arguments: text, ...(signature && { signature }) })
  })
  pushUnread(events, ...(answer.unread ?? []))
  pushEnd(events, answer.finish, answer.usage, answer)
  return events
}

const joinCall = (
  existing: ToolCall | undefined,
  event: Extract<ChatEvent, { readonly type: "tool_call" }>
): ToolCall => {
  const signature = event.signature ?? existing?.signature
  return {
    id: existing?.id ?? event.id ?? "",
    type: "function",
    function: {
      name: existing?.function.name ?? event.name ?? "",
      arguments: (existing?.function.arguments ?? "") + event.arguments
    },
    ...(signature !== undefined && { signature })
  }
}

/** Builds the answer from all events of a stream. */
export const joinEvents = (events: ReadonlyArray<ChatEvent>): ChatAnswer => {
  let content = ""
  let reasoning = ""
  let finish: FinishReason = "stop"
  let stopSequence: string | undefined
  let isFree: boolean | undefined
  let usage: Usage | undefined
  const toolCalls: Array<ToolCall> = []
  const citations: Array<Citation> = []
  const unread: Array<UnknownPart> = []
  for (const event of events) {
    if (event.type === "content") content += event.text
    else if (event.type === "reasoning") reasoning += event.text
    else if (event.type === "tool_call") toolCalls[event.index] = joinCall(toolCalls[event.index], event)
    else if (event.type === "citation") citations.push(event.citation)
    else if (event.type === "unread") unread.push(event.unread)
    else if (event.type === "usage") usage = event.usage
    else if (event.type === "finish") {
      finish = event.reason
      stopSequence = event.stopSequence
      isFree = event.isFree
    }
  }
  return {
    content: content === "" && toolCalls.length > 0 ? null : content,
    reasoning: reasoning || undefined,
    toolCalls,
    finish,
    ...withDetails({ citations, isFree, stopSequence, unread }),
    usage
  }
}
