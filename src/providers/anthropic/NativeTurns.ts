import { Predicate } from "effect"
import { unsignedMark } from "../../domain/Chat.ts"
import { stringify } from "../../domain/JsonSource.ts"
import { parseArguments } from "../chat/Messages.ts"
import { CallIds, missingResultText, type SentCall } from "../chat/ToolCalls.ts"
import { fitName } from "../chat/ToolNames.ts"
import { continueTurn, isBlank, placeholderTurn } from "../chat/TurnMerging.ts"
import type { WireRules } from "../chat/WireRules.ts"
import { asFields, asList, asRecords, asText, type Fields, without } from "../client/JsonFields.ts"

/** Types of tools that run at the client, or cost nothing beyond their tokens. */
const clientTool = /^(custom$|(bash|text_editor|computer|computer_toolset|browser_toolset|memory|tool_search_tool)_)/
const thinkingTypes: ReadonlySet<unknown> = new Set(["thinking", "redacted_thinking"])

export const isClientTool = ({ type }: Fields): boolean => clientTool.test(asText(type) || "custom")

/** The provider accepts only citations that it has signed itself. */
const isSigned = ({ encrypted_index }: Fields): boolean => encrypted_index !== unsignedMark

const encodeText = (block: Fields): ReadonlyArray<Fields> => {
  const { citations, text, type } = block
  const textBlock = type === "text" ? block : { ...block, type: "text" }
  const all = asRecords(citations)
  const signedCitations = all.filter(isSigned)
  if (signedCitations.length === all.length) return [textBlock]
  // The gateway adds an empty block for citations without text. Providers refuse it.
  if (text === "") return []
  return [
    signedCitations.length === 0 ? without(textBlock, ["citations"]) : { ...textBlock, citations: signedCitations }
  ]
}

const textTypes: ReadonlySet<unknown> = new Set(["text", "input_text", "output_text"])

/** Encodes the blocks of a result or of the system prompt. */
export const encodeTexts = (blocks: ReadonlyArray<unknown>): ReadonlyArray<unknown> =>
  blocks.flatMap(
    (block): ReadonlyArray<unknown> =>
      Predicate.isRecord(block) && textTypes.has(block.type) ? encodeText(block) : [block]
  )

interface ResultPosition {
  readonly blocks: Array<unknown>
  readonly at: number
}

interface Turn {
  /** The position of the turn's last message. */
  end: number
  readonly calls: Array<SentCall<ResultPosition>>
  /** Results that the client sent later than in the message after the turn. */
  readonly lateResults: Array<unknown>
}

const missingResult = ({ id }: SentCall<ResultPosition>): Fields => {
  return { type: "tool_result", tool_use_id: id, content: missingResultText, is_error: true }
}

/** Puts results at the start of a user message. */
const withResults = (message: unknown, results: ReadonlyArray<unknown>): Fields => {
  const { content } = asFields(message)
  const text = asText(content)
  const blocks = isBlank(text) ? asList(content) : [{ type: "text", text }]
  return { ...asFields(message), content: [...results, ...blocks] }
}

const inputOf = (input: unknown): Fields => {
  if (Predicate.isRecord(input)) return input
  return parseArguments(typeof input === "string" ? input : stringify(input ?? null))
}

class NativeTurns {
  readonly #rules: WireRules
  readonly #keepsThoughts: boolean
  readonly #ids: CallIds<ResultPosition>
  readonly #messages: Array<unknown> = []
  readonly #turns: Array<Turn> = []
  readonly #turnOf = new Map<SentCall<ResultPosition>, Turn>()

  constructor(rules: WireRules, keepsThoughts: boolean) {
    this.#rules = rules
    this.#keepsThoughts = keepsThoughts
    this.#ids = new CallIds(rules.callId)
  }

  #claimId(id: string): string {
    const call = this.#ids.addCall(id)
    const turn = this.#turns.at(-1)
    turn?.calls.push(call)
    if (turn !== undefined) this.#turnOf.set(call, turn)
    return call.id
  }

  #pushCall(block: Fields, blocks: Array<unknown>): void {
    const { id, name } = block
    blocks.push({
      ...block,
      ...(typeof id === "string" && { id: this.#claimId(id) }),
      ...(typeof name === "string" && { name: fitName(name, this.#rules.toolName) }),
      input: inputOf(block.input)
    })
  }

  #pushResult(block: Fields, blocks: Array<unknown>): void {
    const { content, tool_use_id: id } = block
    const encoded = Array.isArray(content) ? { ...block, content: encodeTexts(content) } : block
    if (typeof id !== "string") return void blocks.push(encoded)
    const call = this.#ids.findCall(id)
    const result = { ...encoded, tool_use_id: call === undefined ? this.#ids.fitUnmatched(id) : call.id }
    if (call?.result !== undefined) {
      call.result.blocks[call.result.at] = result
      return
    }
    const turn = call && this.#turnOf.get(call)
    const target = turn === undefined || turn.end === this.#messages.length - 1 ? blocks : turn.lateResults
    if (call !== undefined) call.result = { blocks: target, at: target.length }
    target.push(result)
  }

  #push(block: Fields, blocks: Array<unknown>): void {
    switch (block.type) {
      case "text":
      case "input_text":
      case "output_text":
        return void blocks.push(...encodeText(block))
      case "thinking":
        if (block.signature !== unsignedMark) blocks.push(block)
        return
      case "tool_use":
        return this.#pushCall(block, blocks)
      case "tool_result":
        return this.#pushResult(block, blocks)
      case "tool_addition": {
        const { definition, type } = asFields(block.tool)
        const isAllowed = type === "tool_reference" || (definition !== undefined && isClientTool(asFields(definition)))
        if (isAllowed) blocks.push(block)
        return
      }
      case "compaction":
        return void blocks.push(without(block, ["tool_changes"]))
      default:
        blocks.push(block)
    }
  }

  #pushMessage(message: unknown, isAssistantMessage: boolean): void {
    const turn = this.#turns.at(-1)
    if (isAssistantMessage && turn !== undefined) turn.end = this.#messages.length
    this.#messages.push(message)
  }

  add(message: unknown): void {
    const { content, role } = asFields(message)
    const isAssistantMessage = role === "assistant"
    if (isAssistantMessage && asFields(this.#messages.at(-1)).role !== "assistant") {
      this.#ids.beginTurn()
      this.#turns.push({ end: this.#messages.length, calls: [], lateResults: [] })
    }
    if (!Array.isArray(content)) return this.#pushMessage(message, isAssistantMessage)
    const blocks: Array<unknown> = []
    for (const block of content) {
      if (typeof block !== "object" || block === null) blocks.push(block)
      else if (this.#keepsThoughts || !thinkingTypes.has(asFields(block).type)) this.#push(asFields(block), blocks)
    }
    if (blocks.length > 0 || content.length === 0) {
      this.#pushMessage({ ...asFields(message), content: blocks }, isAssistantMessage)
    }
  }

  /** Returns the results missing from the message after each turn, by the position of the turn's end. */
  #missingResults(): ReadonlyMap<number, ReadonlyArray<unknown>> {
    const missingByTurn = new Map<number, ReadonlyArray<unknown>>()
    for (const { calls, end, lateResults } of this.#turns) {
      const unansweredCalls = calls.filter(({ result }) => result === undefined)
      if (lateResults.length + unansweredCalls.length > 0)
        missingByTurn.set(end, [...lateResults, ...unansweredCalls.map(missingResult)])
    }
    return missingByTurn
  }

  /** Returns all messages. The provider requires the results of a turn's calls at the start of the next message. */
  messages(): ReadonlyArray<unknown> {
    const missingByTurn = this.#missingResults()
    if (missingByTurn.size === 0) return this.#messages
    const messages: Array<unknown> = []
    let results: ReadonlyArray<unknown> | undefined
    for (const [at, message] of this.#messages.entries()) {
      const isUserMessage = asFields(message).role === "user"
      if (results !== undefined && !isUserMessage) messages.push({ role: "user", content: results })
      messages.push(results !== undefined && isUserMessage ? withResults(message, results) : message)
      results = missingByTurn.get(at)
    }
    return results === undefined ? messages : [...messages, { role: "user", content: results }]
  }
}

const isBlankBlock = (block: unknown): boolean => {
  const { text, type } = asFields(block)
  return thinkingTypes.has(type) || (type === "text" && isBlank(asText(text)))
}

const isBlankTurn = (content: unknown): boolean =>
  typeof content === "string" ? isBlank(content) : asList(content).every(isBlankBlock)

/**
 * Whether the turn ends with text, so that a user turn must follow. After its own search, the provider continues
 * without one, and calls are followed by their results.
 */
const endsWithText = (content: unknown): boolean => {
  if (typeof content === "string") return true
  const { type } = asFields(asList(content).findLast((block) => !isBlankBlock(block)))
  return type === "text"
}

const isBlankEnd = (message: unknown): boolean => {
  const { content, role } = asFields(message)
  return role === "assistant" && isBlankTurn(content)
}

const closeTurns = (messages: ReadonlyArray<unknown>): ReadonlyArray<unknown> => {
  const closedMessages = messages.slice(0, messages.findLastIndex((message) => !isBlankEnd(message)) + 1)
  const { content, role } = asFields(closedMessages.at(-1))
  if (role === "assistant" && endsWithText(content)) closedMessages.push(continueTurn)
  return closedMessages.length === 0 ? [placeholderTurn] : closedMessages
}

/** Changes ids, names, inputs, results and the last turn of native messages to what the provider accepts. */
export const encodeNativeTurns = (
  messages: unknown,
  rules: WireRules,
  keepsThoughts: boolean
): ReadonlyArray<unknown> => {
  const turns = new NativeTurns(rules, keepsThoughts)
  for (const message of asList(messages)) turns.add(message)
  const encoded = turns.messages()
  return rules.prefill === "none" ? closeTurns(encoded) : encoded
}
