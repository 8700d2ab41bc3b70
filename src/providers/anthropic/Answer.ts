import { Predicate } from "effect"
import type { ChatAnswer, FinishReason, ToolCall, Usage } from "../../domain/Chat.ts"

export type NewId = () => string

const reasons: ReadonlyMap<unknown, FinishReason> = new Map([
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["refusal", "content_filter"]
])

/** Of the convention's four: a turn that ends in calls is theirs, whatever else the host calls its end. */
export const finishOf = (reason: unknown, calls: boolean): FinishReason =>
  reasons.get(reason) ?? (calls ? "tool_calls" : "stop")

const count = (value: unknown): number =>
  typeof value === "number" && Number.isFinite(value) && value > 0 ? Math.floor(value) : 0

/** The three counts of the prompt are disjoint on this wire. Undefined where the host counted nothing. */
export const usageOf = (usage: unknown): Usage | undefined => {
  if (!Predicate.isRecord(usage)) return undefined
  const details = Predicate.isRecord(usage.output_tokens_details) ? usage.output_tokens_details : {}
  const cached = count(usage.cache_read_input_tokens)
  const cacheWrite = count(usage.cache_creation_input_tokens)
  const prompt = count(usage.input_tokens) + cached + cacheWrite
  const completion = count(usage.output_tokens)
  if (prompt === 0 && completion === 0) return undefined
  const reasoning = Math.min(completion, count(details.thinking_tokens))
  return { prompt, completion, cached, cacheWrite, reasoning }
}

export const textIn = (value: unknown): string => (typeof value === "string" ? value : "")

/** An id and a name, or undefined where the call has no name. */
export const opened = (block: Record<string, unknown>, newId: NewId) => {
  const name = textIn(block.name)
  return name === "" ? undefined : { id: textIn(block.id) || newId(), name }
}

/** What a block brought along as its input, as a JSON text; empty where that is nothing. */
export const inputText = (input: unknown): string => {
  const given = Predicate.isRecord(input) && Object.keys(input).length > 0
  return given ? JSON.stringify(input) : ""
}

/** Reads a whole answer; a string says what is wrong with it. */
export const answerOf = (body: unknown, newId: NewId): ChatAnswer | string => {
  if (!Predicate.isRecord(body) || body.type === "error" || !Array.isArray(body.content)) return "no content"
  const blocks: ReadonlyArray<unknown> = body.content
  const joined = (type: "text" | "thinking") =>
    blocks.map((block) => (Predicate.isRecord(block) && block.type === type ? textIn(block[type]) : "")).join("")
  const toolCalls: Array<ToolCall> = []
  for (const block of blocks) {
    if (!Predicate.isRecord(block) || block.type !== "tool_use") continue
    const call = opened(block, newId)
    if (call === undefined) return "a tool call without a name"
    const called = { name: call.name, arguments: inputText(block.input) || "{}" }
    toolCalls.push({ id: call.id, type: "function", function: called })
  }
  const text = joined("text")
  return {
    content: text === "" && toolCalls.length > 0 ? null : text,
    reasoning: joined("thinking") || undefined,
    toolCalls,
    finish: finishOf(body.stop_reason, toolCalls.length > 0),
    usage: usageOf(body.usage)
  }
}
