import { Predicate } from "effect"
import { unsigned } from "../../domain/CallId.ts"
import { stringify } from "../../domain/JsonSource.ts"
import { parseArguments } from "../chat/Messages.ts"
import { CallIds, noResult, type SentCall } from "../chat/ToolCalls.ts"
import { fitName } from "../chat/ToolNames.ts"
import { closing, isBlank, placeholder } from "../chat/Turns.ts"
import type { WireRules } from "../chat/WireRules.ts"
import { asFields, asList, asRecords, asText, type Fields, without } from "../client/Json.ts"

/** Tools that run at the client, or cost nothing but their tokens. */
const clientTool = /^(custom$|(bash|text_editor|computer|computer_toolset|browser_toolset|memory|tool_search_tool)_)/
const thoughts: ReadonlySet<unknown> = new Set(["thinking", "redacted_thinking"])

export const isClientTool = ({ type }: Fields): boolean => clientTool.test(asText(type) || "custom")

/** A source that no host of this API named cannot be sent back to one. */
const isSigned = ({ encrypted_index }: Fields): boolean => encrypted_index !== unsigned

const encodeText = (block: Fields): ReadonlyArray<Fields> => {
  const { citations, text, type } = block
  const named = type === "text" ? block : { ...block, type: "text" }
  const all = asRecords(citations)
  const signed = all.filter(isSigned)
  if (signed.length === all.length) return [named]
  // The gateway's own block for sources without a text: an empty one is refused.
  if (text === "") return []
  return [signed.length === 0 ? without(named, ["citations"]) : { ...named, citations: signed }]
}

const textTypes: ReadonlySet<unknown> = new Set(["text", "input_text", "output_text"])

/** Blocks within a result, or of the system prompt. */
export const encodeTexts = (blocks: ReadonlyArray<unknown>): ReadonlyArray<unknown> =>
  blocks.flatMap(
    (block): ReadonlyArray<unknown> =>
      Predicate.isRecord(block) && textTypes.has(block.type) ? encodeText(block) : [block]
  )

/** The position of a result. */
interface Place {
  readonly blocks: Array<unknown>
  readonly at: number
}

/** An assistant's turn with the calls of its messages. */
interface Turn {
  /** The position of its last message. */
  end: number
  readonly calls: Array<SentCall<Place>>
  /** Results that the client gave later than in the next message. */
  readonly late: Array<unknown>
}

const missingResult = ({ id }: SentCall<Place>): Fields => {
  return { type: "tool_result", tool_use_id: id, content: noResult, is_error: true }
}

/** A user's message that opens with more results. */
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
  readonly #ids: CallIds<Place>
  readonly #messages: Array<unknown> = []
  readonly #turns: Array<Turn> = []
  readonly #turnOf = new Map<SentCall<Place>, Turn>()

  constructor(rules: WireRules, keepsThoughts: boolean) {
    this.#rules = rules
    this.#keepsThoughts = keepsThoughts
    this.#ids = new CallIds(rules.callId)
  }

  #claimId(given: string): string {
    const call = this.#ids.call(given)
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
    const shown = Array.isArray(content) ? { ...block, content: encodeTexts(content) } : block
    if (typeof id !== "string") return void blocks.push(shown)
    const call = this.#ids.answer(id)
    const result = { ...shown, tool_use_id: call === undefined ? this.#ids.fit(id) : call.id }
    if (call?.result !== undefined) {
      call.result.blocks[call.result.at] = result
      return
    }
    const turn = call && this.#turnOf.get(call)
    const place = turn === undefined || turn.end === this.#messages.length - 1 ? blocks : turn.late
    if (call !== undefined) call.result = { blocks: place, at: place.length }
    place.push(result)
  }

  #push(block: Fields, blocks: Array<unknown>): void {
    switch (block.type) {
      case "text":
      case "input_text":
      case "output_text":
        return void blocks.push(...encodeText(block))
      case "thinking":
        if (block.signature !== unsigned) blocks.push(block)
        return
      case "tool_use":
        return this.#pushCall(block, blocks)
      case "tool_result":
        return this.#pushResult(block, blocks)
      case "tool_addition": {
        const { definition, type } = asFields(block.tool)
        const isKept = type === "tool_reference" || (definition !== undefined && isClientTool(asFields(definition)))
        if (isKept) blocks.push(block)
        return
      }
      case "compaction":
        return void blocks.push(without(block, ["tool_changes"]))
      default:
        blocks.push(block)
    }
  }

  #pushMessage(message: unknown, isAssistants: boolean): void {
    const turn = this.#turns.at(-1)
    if (isAssistants && turn !== undefined) turn.end = this.#messages.length
    this.#messages.push(message)
  }

  add(message: unknown): void {
    const { content, role } = asFields(message)
    const isAssistants = role === "assistant"
    if (isAssistants && asFields(this.#messages.at(-1)).role !== "assistant") {
      this.#ids.beginTurn()
      this.#turns.push({ end: this.#messages.length, calls: [], late: [] })
    }
    if (!Array.isArray(content)) return this.#pushMessage(message, isAssistants)
    const blocks: Array<unknown> = []
    for (const block of content) {
      if (typeof block !== "object" || block === null) blocks.push(block)
      else if (this.#keepsThoughts || !thoughts.has(asFields(block).type)) this.#push(asFields(block), blocks)
    }
    if (blocks.length > 0 || content.length === 0) {
      this.#pushMessage({ ...asFields(message), content: blocks }, isAssistants)
    }
  }

  /** The results that a turn's next message lacks, by the position of the turn's end. */
  #lacking(): ReadonlyMap<number, ReadonlyArray<unknown>> {
    const lacking = new Map<number, ReadonlyArray<unknown>>()
    for (const { calls, end, late } of this.#turns) {
      const missing = calls.filter(({ result }) => result === undefined)
      if (late.length + missing.length > 0) lacking.set(end, [...late, ...missing.map(missingResult)])
    }
    return lacking
  }

  /** All messages: the host wants the results of a turn's calls at the beginning of the next message. */
  messages(): ReadonlyArray<unknown> {
    const lacking = this.#lacking()
    if (lacking.size === 0) return this.#messages
    const messages: Array<unknown> = []
    let results: ReadonlyArray<unknown> | undefined
    for (const [at, message] of this.#messages.entries()) {
      const isUsers = asFields(message).role === "user"
      if (results !== undefined && !isUsers) messages.push({ role: "user", content: results })
      messages.push(results !== undefined && isUsers ? withResults(message, results) : message)
      results = lacking.get(at)
    }
    return results === undefined ? messages : [...messages, { role: "user", content: results }]
  }
}

const isBlankBlock = (block: unknown): boolean => {
  const { text, type } = asFields(block)
  return thoughts.has(type) || (type === "text" && isBlank(asText(text)))
}

const isBlankTurn = (content: unknown): boolean =>
  typeof content === "string" ? isBlank(content) : asList(content).every(isBlankBlock)

/** Whether the turn ends in words: the host goes on by itself after a search of its own, and results answer calls. */
const endsInWords = (content: unknown): boolean => {
  if (typeof content === "string") return true
  const { type } = asFields(asList(content).findLast((block) => !isBlankBlock(block)))
  return type === "text"
}

const isBlankEnd = (message: unknown): boolean => {
  const { content, role } = asFields(message)
  return role === "assistant" && isBlankTurn(content)
}

const closeTurns = (messages: ReadonlyArray<unknown>): ReadonlyArray<unknown> => {
  const kept = messages.slice(0, messages.findLastIndex((message) => !isBlankEnd(message)) + 1)
  const { content, role } = asFields(kept.at(-1))
  if (role === "assistant" && endsInWords(content)) kept.push(closing)
  return kept.length === 0 ? [placeholder] : kept
}

/** The client's own turns, with ids, names, inputs, results and an end that the host takes. */
export const encodeNativeTurns = (given: unknown, rules: WireRules, keepsThoughts: boolean): ReadonlyArray<unknown> => {
  const turns = new NativeTurns(rules, keepsThoughts)
  for (const message of asList(given)) turns.add(message)
  const messages = turns.messages()
  return rules.prefill === "none" ? closeTurns(messages) : messages
}
