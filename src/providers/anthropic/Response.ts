import { Either, Predicate } from "effect"
import type { ChatAnswer, FinishReason, ToolCall, Usage } from "../../domain/Chat.ts"
import { asCount, asFields, asList, asRecords, asText, type Fields } from "../client/Json.ts"

const reasons: ReadonlyMap<unknown, FinishReason> = new Map([
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["refusal", "content_filter"]
])

/** Of the convention's four: a turn that ends in calls is theirs, whatever else the host calls its end. */
export const decodeFinish = (reason: unknown, hasCalls: boolean): FinishReason =>
  reasons.get(reason) ?? (hasCalls ? "tool_calls" : "stop")

export const errorIn = (body: Fields): Fields | undefined =>
  body.type === "error" || Predicate.isRecord(body.error) ? body : undefined

/** The three counts of the prompt are disjoint on this wire. Undefined where the host counted nothing. */
export const decodeUsage = (usage: unknown): Usage | undefined => {
  const counts = asFields(usage)
  const cached = asCount(counts.cache_read_input_tokens)
  const cacheWrite = asCount(counts.cache_creation_input_tokens)
  const prompt = asCount(counts.input_tokens) + cached + cacheWrite
  const completion = asCount(counts.output_tokens)
  if (prompt === 0 && completion === 0) return undefined
  const thought = asCount(asFields(counts.output_tokens_details).thinking_tokens)
  return { prompt, completion, cached, cacheWrite, reasoning: Math.min(completion, thought) }
}

export const decodeCallHead = (block: Fields, newId: () => string) => {
  const name = asText(block.name)
  return name === "" ? undefined : { id: asText(block.id) || newId(), name }
}

export const inputText = (input: unknown): string => {
  const fields = asFields(input)
  return Object.keys(fields).length > 0 ? JSON.stringify(fields) : ""
}

export const decodeAnswer = (body: unknown, newId: () => string): Either.Either<ChatAnswer, string> => {
  const { content, stop_reason, usage } = asFields(body)
  if (!Array.isArray(content)) return Either.left("no content")
  const blocks = asRecords(asList(content))
  const joined = (type: "text" | "thinking") =>
    blocks.map((block) => (block.type === type ? asText(block[type]) : "")).join("")
  const toolCalls: Array<ToolCall> = []
  for (const block of blocks) {
    if (block.type !== "tool_use") continue
    const call = decodeCallHead(block, newId)
    if (call === undefined) return Either.left("a tool call without a name")
    const called = { name: call.name, arguments: inputText(block.input) || "{}" }
    toolCalls.push({ id: call.id, type: "function", function: called })
  }
  const text = joined("text")
  return Either.right({
    content: text === "" && toolCalls.length > 0 ? null : text,
    reasoning: joined("thinking") || undefined,
    toolCalls,
    finish: decodeFinish(stop_reason, toolCalls.length > 0),
    usage: decodeUsage(usage)
  })
}
