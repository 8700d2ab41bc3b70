import type { Message, ToolCall } from "../../domain/Chat.ts"
import { toObjectText } from "./Messages.ts"
import { matchesRule, replaceId } from "./ToolNames.ts"
import type { NameRule, WireRules } from "./WireRules.ts"

/** The text sent as the result of a call that has none, because providers refuse calls without a result. */
export const missingResultText = "The call was interrupted and has no result."

export interface SentCall<Position> {
  readonly id: string
  /** The position of its result. Undefined if it has none. */
  result: Position | undefined
}

/** The calls of one turn that have the same original id. */
interface Calls<Position> {
  readonly turn: number
  readonly sentCalls: Array<SentCall<Position>>
  /** The number of leading calls that have results. */
  resultCount: number
}

/**
 * Assigns ids to calls and their results in the order of a conversation. Another vendor's ids may be too long, contain
 * other characters, or repeat. A result belongs to the latest turn that has a call with its id.
 */
export class CallIds<Position> {
  readonly #rule: NameRule
  readonly #usedIds = new Set<string>()
  /** The attempt that found an unused id, by original id. The search for another one continues there. */
  readonly #attempts = new Map<string, number>()
  readonly #calls = new Map<string, Calls<Position>>()
  #turn = 0

  constructor(rule: NameRule) {
    this.#rule = rule
  }

  /** Starts a turn. The following calls belong to it. */
  beginTurn(): void {
    this.#turn += 1
  }

  /** Adds a call and returns its unique id to send. */
  addCall(id: string): SentCall<Position> {
    let attempt = this.#attempts.get(id) ?? 0
    let sentId = attempt === 0 && matchesRule(id, this.#rule) ? id : replaceId(id, this.#rule, attempt)
    while (this.#usedIds.has(sentId)) sentId = replaceId(id, this.#rule, ++attempt)
    if (attempt > 0) this.#attempts.set(id, attempt)
    this.#usedIds.add(sentId)
    const sentCall: SentCall<Position> = { id: sentId, result: undefined }
    const existing = this.#calls.get(id)
    if (existing?.turn === this.#turn) existing.sentCalls.push(sentCall)
    else this.#calls.set(id, { turn: this.#turn, sentCalls: [sentCall], resultCount: 0 })
    return sentCall
  }

  /**
   * Returns the call that a result answers: the first without a result, or else the last. Undefined if there is none.
   * The caller sets its `result`.
   */
  findCall(id: string): SentCall<Position> | undefined {
    const calls = this.#calls.get(id)
    if (calls === undefined) return undefined
    while (calls.sentCalls[calls.resultCount]?.result !== undefined) calls.resultCount += 1
    return calls.sentCalls[calls.resultCount] ?? calls.sentCalls.at(-1)
  }

  /** Returns the id to send for a result without a call. */
  fitUnmatched(id: string): string {
    return matchesRule(id, this.#rule) ? id : replaceId(id, this.#rule)
  }
}

type Assistant = Extract<Message, { role: "assistant" }>
type Result = Extract<Message, { role: "tool" }>

const callsOf = (message: Message): ReadonlyArray<ToolCall> =>
  message.role === "assistant" ? (message.tool_calls ?? []) : []

/** A message, its calls, and the results that follow it. */
interface Entry {
  readonly message: Message
  readonly calls: ReadonlyArray<SentCall<ResultPosition>>
  readonly results: Array<Result>
}

interface ResultPosition {
  readonly results: Array<Result>
  readonly at: number
}

class CallHistory {
  readonly #entries: Array<Entry> = []
  readonly #rules: WireRules
  readonly #names: ReadonlyMap<string, string> | undefined
  readonly #ids: CallIds<ResultPosition>
  readonly #entryOf = new Map<SentCall<ResultPosition>, Entry>()
  /** Whether the last message is the assistant's. A further assistant message continues its turn. */
  #isAssistantTurn = false

  constructor(rules: WireRules, names: ReadonlyMap<string, string> | undefined) {
    this.#rules = rules
    this.#names = names
    this.#ids = new CallIds(rules.callId)
  }

  #fitCall(call: ToolCall, sentId: string): ToolCall {
    const { function: functionCall, id } = call
    const name = this.#names?.get(functionCall.name) ?? functionCall.name
    const text = this.#rules.callArguments === "text" ? toObjectText(functionCall.arguments) : functionCall.arguments
    if (sentId === id && name === functionCall.name && text === functionCall.arguments) return call
    return { ...call, id: sentId, function: { ...functionCall, name, arguments: text } }
  }

  #addAssistant(message: Assistant): void {
    if (!this.#isAssistantTurn) this.#ids.beginTurn()
    const toolCalls = callsOf(message)
    const sentCalls = toolCalls.map(({ id }) => this.#ids.addCall(id))
    const calls = toolCalls.map((call, at) => this.#fitCall(call, sentCalls[at]?.id ?? call.id))
    const isSame = calls.every((call, at) => call === toolCalls[at])
    const entry = { message: isSame ? message : { ...message, tool_calls: calls }, calls: sentCalls, results: [] }
    for (const call of sentCalls) this.#entryOf.set(call, entry)
    this.#entries.push(entry)
  }

  #addResult(message: Result): void {
    const call = this.#ids.findCall(message.tool_call_id)
    const id = call === undefined ? this.#ids.fitUnmatched(message.tool_call_id) : call.id
    const result = id === message.tool_call_id ? message : { ...message, tool_call_id: id }
    const entry = call && this.#entryOf.get(call)
    if (call === undefined || entry === undefined) this.#push(result)
    else if (call.result !== undefined) call.result.results[call.result.at] = result
    else {
      call.result = { results: entry.results, at: entry.results.length }
      entry.results.push(result)
    }
  }

  #push(message: Message): void {
    this.#entries.push({ message, calls: [], results: [] })
  }

  add(message: Message): void {
    if (message.role === "tool") this.#addResult(message)
    else if (message.role === "assistant") this.#addAssistant(message)
    else this.#push(message)
    this.#isAssistantTurn = message.role === "assistant"
  }

  /** Returns all messages, with each result directly after its call, as providers require. Adds missing results. */
  messages(): ReadonlyArray<Message> {
    return this.#entries.flatMap(({ calls, message, results }) => [
      message,
      ...results,
      ...calls
        .filter(({ result }) => result === undefined)
        .map(({ id }): Message => ({ role: "tool", content: missingResultText, tool_call_id: id }))
    ])
  }
}

/**
 * Changes names, ids and arguments of earlier calls to what the wire format accepts. If a call has several results, the
 * last is kept. Results directly follow the message with their calls.
 */
export const fitCalls = (
  messages: ReadonlyArray<Message>,
  rules: WireRules,
  names: ReadonlyMap<string, string> | undefined
): ReadonlyArray<Message> => {
  if (!messages.some((message) => message.role === "tool" || callsOf(message).length > 0)) return messages
  const history = new CallHistory(rules, names)
  for (const message of messages) history.add(message)
  const fittedMessages = history.messages()
  const isSame =
    fittedMessages.length === messages.length && fittedMessages.every((message, at) => message === messages[at])
  return isSame ? messages : fittedMessages
}
