import { Either, Predicate, Schema } from "effect"
import type { ChatAnswer, ChatEvent, FinishReason, Unread, Usage } from "../../domain/Chat.ts"
import { stringify } from "../../domain/JsonSource.ts"
import { sanitizeUsage } from "../../domain/Pricing.ts"
import { parseJsonExact } from "../client/Json.ts"

/** Parts never exceed their whole; undefined without counts. */
export const usageOf = (usage: Usage): Usage | undefined =>
  usage.prompt + usage.completion + (usage.webSearches ?? 0) === 0 ? undefined : sanitizeUsage(usage)

export const finishOf = (reason: FinishReason | undefined, hasCalls: boolean, isRefusal = false): FinishReason =>
  reason ?? (hasCalls ? "tool_calls" : isRefusal ? "content_filter" : "stop")

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
  /** Shown where there is no text. */
  readonly refusal?: string
  readonly reasoning: string
  readonly calls: ReadonlyArray<{ readonly id: string; readonly name: string; readonly arguments: string | undefined }>
  readonly finish: FinishReason | undefined
  readonly unread?: ReadonlyArray<Unread | undefined>
  readonly isUnbilled?: boolean
  readonly usage: Usage | undefined
}

/** Left: what breaks the protocol. */
const answerOf = (parts: AnswerParts, newId: () => string): Either.Either<ChatAnswer, string> => {
  const { calls, finish, isUnbilled = false, reasoning, refusal = "", text, usage } = parts
  if (calls.some(({ name }) => name === "")) return Either.left("a tool call without a name")
  if (calls.some(({ arguments: given }) => given === undefined)) return Either.left(unreadableArguments)
  const hasCalls = calls.length > 0
  const content = text || refusal
  const unread = parts.unread?.filter((part) => part !== undefined) ?? []
  const ids = new Set<string>()
  const claimId = (given: string) => {
    const id = given === "" || ids.has(given) ? newId() : given
    ids.add(id)
    return id
  }
  return Either.right({
    content: content === "" && hasCalls ? null : content,
    reasoning: reasoning || undefined,
    toolCalls: calls.map(({ arguments: given, id, name }) => {
      return { id: claimId(id), type: "function", function: { name, arguments: given || "{}" } }
    }),
    finish: finishOf(finish, hasCalls, text === "" && refusal !== ""),
    ...(unread.length > 0 && { unread }),
    ...(isUnbilled && { isUnbilled }),
    usage
  })
}

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
  isUnbilled = false
): "whole" => {
  out.push({ type: "finish", reason, ...(isUnbilled && { isUnbilled }) })
  pushUsage(out, usage)
  return "whole"
}

export const eventsOf = (answer: ChatAnswer): ReadonlyArray<ChatEvent> => {
  const events: Array<ChatEvent> = []
  if (answer.reasoning !== undefined) events.push({ type: "reasoning", text: answer.reasoning })
  if (answer.content !== null && answer.content !== "") events.push({ type: "content", text: answer.content })
  answer.toolCalls.forEach(({ function: { arguments: text, name }, id, signature }, index) => {
    events.push({ type: "tool_call", index, id, name, arguments: text, ...(signature && { signature }) })
  })
  pushUnread(events, ...(answer.unread ?? []))
  pushEnd(events, answer.finish, answer.usage, answer.isUnbilled)
  return events
}

export interface StreamedCall {
  readonly index: number
  isOpen: boolean
  isEmpty: boolean
}

export class StreamedCalls {
  readonly #calls: Array<StreamedCall> = []

  get count(): number {
    return this.#calls.length
  }

  get hasAny(): boolean {
    return this.count > 0
  }

  begin(): StreamedCall {
    const call = { index: this.#calls.length, isOpen: false, isEmpty: true }
    this.#calls.push(call)
    return call
  }

  open(call: StreamedCall, id: string, name: string, text: string, out: Array<ChatEvent>): void {
    call.isOpen = true
    call.isEmpty = text === ""
    out.push({ type: "tool_call", index: call.index, id, name, arguments: text })
  }

  append(call: StreamedCall, text: string, out: Array<ChatEvent>): void {
    if (text === "") return
    call.isEmpty = false
    out.push({ type: "tool_call", index: call.index, arguments: text })
  }

  /** False where one never had a name. */
  close(out: Array<ChatEvent>): boolean {
    for (const call of this.#calls) {
      if (!call.isOpen) return false
      if (call.isEmpty) this.append(call, "{}", out)
    }
    return true
  }
}
