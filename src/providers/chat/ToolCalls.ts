import type { Message, ToolCall } from "../../domain/Chat.ts"
import { objectText } from "./Messages.ts"
import { isFitting, replaceId } from "./ToolNames.ts"
import type { NameRule, WireRules } from "./WireRules.ts"

/** The result of a call that the client never answered: hosts refuse a call without one. */
export const noResult = "The call was interrupted and has no result."

export interface SentCall<Place> {
  readonly id: string
  /** The position of its result; undefined without one. */
  result: Place | undefined
}

interface Calls<Place> {
  readonly turn: number
  readonly sent: Array<SentCall<Place>>
  /** How many of the first ones have results. */
  answered: number
}

/**
 * Ids of calls and their results in the order of a conversation. Another vendor's ids may be too long, hold other
 * characters, or repeat. A repeated one means its last call.
 */
export class CallIds<Place> {
  readonly #rule: NameRule
  readonly #taken = new Set<string>()
  /** By repeated id: the attempt that found a free one, at which the next repeat begins. */
  readonly #attempts = new Map<string, number>()
  readonly #calls = new Map<string, Calls<Place>>()
  #turn = 0

  constructor(rule: NameRule) {
    this.#rule = rule
  }

  /** Begins a turn, to which the following calls belong. */
  beginTurn(): void {
    this.#turn += 1
  }

  /** A call with the id to send; no two have the same. */
  call(id: string): SentCall<Place> {
    let attempt = this.#attempts.get(id) ?? 0
    let own = attempt === 0 && isFitting(id, this.#rule) ? id : replaceId(id, this.#rule, attempt)
    while (this.#taken.has(own)) own = replaceId(id, this.#rule, ++attempt)
    if (attempt > 0) this.#attempts.set(id, attempt)
    this.#taken.add(own)
    const sent: SentCall<Place> = { id: own, result: undefined }
    const before = this.#calls.get(id)
    if (before?.turn === this.#turn) before.sent.push(sent)
    else this.#calls.set(id, { turn: this.#turn, sent: [sent], answered: 0 })
    return sent
  }

  /**
   * The call that a result answers: the first one without a result, else the last one. The caller sets its `result`.
   * Undefined: there is no such call.
   */
  answer(id: string): SentCall<Place> | undefined {
    const calls = this.#calls.get(id)
    if (calls === undefined) return undefined
    while (calls.sent[calls.answered]?.result !== undefined) calls.answered += 1
    return calls.sent[calls.answered] ?? calls.sent.at(-1)
  }

  /** Fits the id of a result without a call. */
  fit(id: string): string {
    return isFitting(id, this.#rule) ? id : replaceId(id, this.#rule)
  }
}

type Assistant = Extract<Message, { role: "assistant" }>
type Result = Extract<Message, { role: "tool" }>

const callsOf = (message: Message): ReadonlyArray<ToolCall> =>
  message.role === "assistant" ? (message.tool_calls ?? []) : []

/** An assistant's calls, or another message, and the results that follow it. */
interface Entry {
  readonly message: Message
  readonly calls: ReadonlyArray<SentCall<Place>>
  readonly results: Array<Result>
}

/** A result among those of its call's entry. */
interface Place {
  readonly results: Array<Result>
  readonly at: number
}

class CallHistory {
  readonly #entries: Array<Entry> = []
  readonly #rules: WireRules
  readonly #names: ReadonlyMap<string, string> | undefined
  readonly #ids: CallIds<Place>
  readonly #entryOf = new Map<SentCall<Place>, Entry>()
  /** Whether the last message is the assistant's, whose next one is of the same turn. */
  #isAssistants = false

  constructor(rules: WireRules, names: ReadonlyMap<string, string> | undefined) {
    this.#rules = rules
    this.#names = names
    this.#ids = new CallIds(rules.callId)
  }

  #fitCall(call: ToolCall, own: string): ToolCall {
    const { function: given, id } = call
    const name = this.#names?.get(given.name) ?? given.name
    const text = this.#rules.callArguments === "text" ? objectText(given.arguments) : given.arguments
    if (own === id && name === given.name && text === given.arguments) return call
    return { ...call, id: own, function: { ...given, name, arguments: text } }
  }

  #addAssistant(message: Assistant): void {
    if (!this.#isAssistants) this.#ids.beginTurn()
    const given = callsOf(message)
    const sent = given.map(({ id }) => this.#ids.call(id))
    const calls = given.map((call, at) => this.#fitCall(call, sent[at]?.id ?? call.id))
    const isSame = calls.every((call, at) => call === given[at])
    const entry = { message: isSame ? message : { ...message, tool_calls: calls }, calls: sent, results: [] }
    for (const call of sent) this.#entryOf.set(call, entry)
    this.#entries.push(entry)
  }

  #addResult(message: Result): void {
    const call = this.#ids.answer(message.tool_call_id)
    const id = call === undefined ? this.#ids.fit(message.tool_call_id) : call.id
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
    this.#isAssistants = message.role === "assistant"
  }

  /** All messages: hosts want each call's result directly after it. */
  messages(): ReadonlyArray<Message> {
    return this.#entries.flatMap(({ calls, message, results }) => [
      message,
      ...results,
      ...calls
        .filter(({ result }) => result === undefined)
        .map(({ id }): Message => ({ role: "tool", content: noResult, tool_call_id: id }))
    ])
  }
}

/** Fits names, ids and arguments of earlier calls. Each call keeps its last result, directly after its turn. */
export const fitCalls = (
  messages: ReadonlyArray<Message>,
  rules: WireRules,
  names: ReadonlyMap<string, string> | undefined
): ReadonlyArray<Message> => {
  if (!messages.some((message) => message.role === "tool" || callsOf(message).length > 0)) return messages
  const history = new CallHistory(rules, names)
  for (const message of messages) history.add(message)
  const fitted = history.messages()
  const isSame = fitted.length === messages.length && fitted.every((message, at) => message === messages[at])
  return isSame ? messages : fitted
}
