import type { Message, ToolCall } from "../../domain/Chat.ts"
import { CallIds } from "./CallIds.ts"
import { objectText } from "./Messages.ts"
import type { WireRules } from "./WireRules.ts"

type Assistant = Extract<Message, { role: "assistant" }>
type Result = Extract<Message, { role: "tool" }>

const callsOf = (message: Message): ReadonlyArray<ToolCall> =>
  message.role === "assistant" ? (message.tool_calls ?? []) : []

class CallHistory {
  readonly messages: Array<Message> = []
  isChanged = false
  readonly #rules: WireRules
  readonly #names: ReadonlyMap<string, string> | undefined
  readonly #ids: CallIds<number>
  /** Messages between calls and their results, which hosts want side by side. */
  #held: Array<Message> = []

  constructor(rules: WireRules, names: ReadonlyMap<string, string> | undefined) {
    this.#rules = rules
    this.#names = names
    this.#ids = new CallIds(rules.callId)
  }

  #fitCall(call: ToolCall): ToolCall {
    const { function: given, id } = call
    const own = this.#ids.call(id)
    const name = this.#names?.get(given.name) ?? given.name
    const text = this.#rules.callArguments === "text" ? objectText(given.arguments) : given.arguments
    if (own === id && name === given.name && text === given.arguments) return call
    return { ...call, id: own, function: { ...given, name, arguments: text } }
  }

  #addAssistant(message: Assistant): void {
    this.release()
    if (this.messages.at(-1)?.role !== "assistant") this.#ids.beginTurn()
    const given = callsOf(message)
    const calls = given.map((call) => this.#fitCall(call))
    const isSame = calls.every((call, at) => call === given[at])
    this.isChanged ||= !isSame
    this.messages.push(isSame ? message : { ...message, tool_calls: calls })
  }

  #addResult(message: Result): void {
    const call = this.#ids.answer(message.tool_call_id)
    const id = call === undefined ? this.#ids.fit(message.tool_call_id) : call.id
    const result = id === message.tool_call_id ? message : { ...message, tool_call_id: id }
    this.isChanged ||= result !== message || this.#held.length > 0 || call?.result !== undefined
    if (call?.result !== undefined) {
      this.messages[call.result] = result
      return
    }
    if (call !== undefined) call.result = this.messages.length
    this.messages.push(result)
    if (!this.#ids.isWaiting) this.release()
  }

  add(message: Message): void {
    if (message.role === "tool") this.#addResult(message)
    else if (message.role === "assistant") this.#addAssistant(message)
    else (this.#ids.isWaiting ? this.#held : this.messages).push(message)
  }

  release(): void {
    this.messages.push(...this.#held)
    this.#held = []
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
  history.release()
  return history.isChanged ? history.messages : messages
}
