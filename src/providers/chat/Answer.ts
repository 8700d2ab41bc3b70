import { Either, identity, Predicate, Schema } from "effect"
import type { ChatAnswer, ChatEvent, Citation, FinishReason, ToolCall, Unread, Usage } from "../../domain/Chat.ts"
import { stringify } from "../../domain/JsonSource.ts"
import { sanitizeUsage } from "../../domain/Pricing.ts"
import { asFields, asRecords, asText, parseJsonExact } from "../client/Json.ts"
import { isCutShort, singleValue, twoValues } from "./CallArguments.ts"

/** Missing fields and fields of another type read as absent. */
const lenient = <A, I>(to: Schema.Schema<A, I>, read: (value: unknown) => unknown) =>
  Schema.transform(Schema.Unknown, to, { strict: false, decode: read, encode: identity })

export const Text = lenient(Schema.String, asText)

/** The arguments of a call as JSON; undefined where they cannot be read. */
export const Arguments = (read: (value: unknown) => string | undefined) =>
  lenient(Schema.UndefinedOr(Schema.String), read)

export const fields = <const F extends Schema.Struct.Fields>(of: F) =>
  Schema.transform(Schema.Unknown, Schema.Struct(of), { strict: false, decode: asFields, encode: identity })

export const records = <A, I>(item: Schema.Schema<A, I>) => lenient(Schema.Array(item), asRecords)

/** Parts never exceed their whole; undefined without counts. */
export const usageOf = (usage: Usage): Usage | undefined =>
  usage.prompt + usage.completion + (usage.webSearches ?? 0) === 0 ? undefined : sanitizeUsage(usage)

interface Ended {
  readonly hasCalls: boolean
  /** The arguments of a call end within their JSON: some hosts do not say that they cut an answer. */
  readonly isCutShort?: boolean
  readonly isRefusal?: boolean
}

export const finishOf = (
  reason: FinishReason | undefined,
  { hasCalls, isCutShort = false, isRefusal = false }: Ended
): FinishReason => {
  if (reason !== undefined) return reason
  if (isCutShort) return "length"
  return hasCalls ? "tool_calls" : isRefusal ? "content_filter" : "stop"
}

export const unreadableArguments = "a tool call whose arguments are no JSON object"

/** The arguments of a call as JSON, empty where there are none; undefined where they are no object. */
export const encodeArguments = (given: unknown): string | undefined => {
  if (given === undefined || given === null || given === "") return ""
  const value = typeof given === "string" ? parseJsonExact(given) : given
  if (!Predicate.isRecord(value)) return undefined
  return Object.keys(value).length > 0 ? stringify(value) : ""
}

/** The same on a wire where they are a JSON text, which may come in pieces: a text is passed on as it is. */
export const argumentsText = (given: unknown): string | undefined =>
  typeof given === "string" ? given : encodeArguments(given)

/** An answer's parts as a host gives them: empty texts are absent ones. */
interface AnswerParts {
  readonly text: string
  /** Follows the text, which repeats it at some hosts. */
  readonly refusal?: string
  readonly reasoning: string
  readonly calls: ReadonlyArray<AnswerCall>
  readonly finish: FinishReason | undefined
  readonly unread?: ReadonlyArray<Unread | undefined>
  readonly isUnbilled?: boolean
  readonly usage: Usage | undefined
  readonly stopSequence?: string | undefined
  readonly sources?: Pick<ChatAnswer, "citations" | "unread"> | undefined
}

interface AnswerCall {
  readonly id: string
  readonly name: string
  readonly arguments: string | undefined
  /** Its arguments are any text. */
  readonly isText?: boolean | undefined
}

/** The calls of an answer, each with one value and an id of its own; a text says how they break the protocol. */
const readCalls = (given: ReadonlyArray<AnswerCall>, newId: () => string): ReadonlyArray<ToolCall> | string => {
  const ids = new Set<string>()
  const calls: Array<ToolCall> = []
  for (const call of given) {
    if (call.name === "") return "a tool call without a name"
    if (call.arguments === undefined) return unreadableArguments
    const text = call.isText ? call.arguments : singleValue(call.arguments)
    if (text === undefined) return twoValues
    const id = call.id === "" || ids.has(call.id) ? newId() : call.id
    ids.add(id)
    calls.push({ id, type: "function", function: { name: call.name, arguments: text || "{}" } })
  }
  return calls
}

const endsEarly = (call: AnswerCall): boolean => !call.isText && isCutShort(call.arguments ?? "")

/** Left: what breaks the protocol. */
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
    finish: finishOf(finish, { hasCalls, isCutShort: calls.some(endsEarly), isRefusal: refusal !== "" }),
    usage
  }
  return Either.right(hasDetails(parts) ? { ...answer, ...detailsOf(parts) } : answer)
}

/** Few answers have any: spreading them into each took several microseconds. */
const hasDetails = ({ isUnbilled, sources, stopSequence, unread }: AnswerParts): boolean =>
  isUnbilled === true || sources !== undefined || stopSequence !== undefined || unread?.some(Boolean) === true

const withDetails = ({
  citations = [],
  isUnbilled = false,
  stopSequence,
  unread = []
}: Pick<ChatAnswer, "citations" | "isUnbilled" | "stopSequence" | "unread">) => ({
  ...(isUnbilled && { isUnbilled }),
  ...(stopSequence !== undefined && { stopSequence }),
  ...(citations.length > 0 && { citations }),
  ...(unread.length > 0 && { unread })
})

const detailsOf = ({ isUnbilled, sources, stopSequence, unread = [] }: AnswerParts) =>
  withDetails({
    citations: sources?.citations,
    isUnbilled,
    stopSequence,
    unread: [...unread, ...(sources?.unread ?? [])].filter((part) => part !== undefined)
  })

/** Reads a whole answer by its schema; a text among its parts says how they break the protocol. */
export const answerDecoder = <A, I, Call = void>(
  schema: Schema.Schema<A, I>,
  missing: string,
  partsOf: (body: A, call: Call) => AnswerParts | string
) => {
  const decode = Schema.decodeUnknownEither(schema)
  return (body: unknown, newId: () => string, call: Call): Either.Either<ChatAnswer, string> => {
    const decoded = decode(body)
    const parts = Either.isLeft(decoded) ? missing : partsOf(decoded.right, call)
    return typeof parts === "string" ? Either.left(parts) : answerOf(parts, newId)
  }
}

export const pushUsage = (out: Array<ChatEvent>, usage: Usage | undefined, isPartial = false): undefined => {
  if (usage !== undefined) out.push({ type: "usage", usage, ...(isPartial && { isPartial }) })
}

export const pushUnread = (out: Array<ChatEvent>, ...parts: ReadonlyArray<Unread | undefined>): void => {
  for (const unread of parts) if (unread !== undefined) out.push({ type: "unread", unread })
}

export const pushEnd = (
  out: Array<ChatEvent>,
  reason: FinishReason,
  usage: Usage | undefined,
  { isUnbilled = false, stopSequence }: Pick<ChatAnswer, "isUnbilled" | "stopSequence"> = {}
): "whole" => {
  out.push({
    type: "finish",
    reason,
    ...(stopSequence !== undefined && { stopSequence }),
    ...(isUnbilled && { isUnbilled })
  })
  pushUsage(out, usage)
  return "whole"
}

/** A stop sequence that a host names, if the client asked for it. */
export const askedStop = (given: unknown, stops: ReadonlyArray<string>): string | undefined =>
  typeof given === "string" && stops.includes(given) ? given : undefined

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
  before: ToolCall | undefined,
  event: Extract<ChatEvent, { readonly type: "tool_call" }>
): ToolCall => {
  const signature = event.signature ?? before?.signature
  return {
    id: before?.id ?? event.id ?? "",
    type: "function",
    function: {
      name: before?.function.name ?? event.name ?? "",
      arguments: (before?.function.arguments ?? "") + event.arguments
    },
    ...(signature !== undefined && { signature })
  }
}

/** The answer that the events of a whole stream add up to. */
export const joinEvents = (events: ReadonlyArray<ChatEvent>): ChatAnswer => {
  let content = ""
  let reasoning = ""
  let finish: FinishReason = "stop"
  let stopSequence: string | undefined
  let isUnbilled: boolean | undefined
  let usage: Usage | undefined
  const toolCalls: Array<ToolCall> = []
  const citations: Array<Citation> = []
  const unread: Array<Unread> = []
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
      isUnbilled = event.isUnbilled
    }
  }
  return {
    content: content === "" && toolCalls.length > 0 ? null : content,
    reasoning: reasoning || undefined,
    toolCalls,
    finish,
    ...withDetails({ citations, isUnbilled, stopSequence, unread }),
    usage
  }
}
