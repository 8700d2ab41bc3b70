import { Predicate } from "effect"
import type { ChatAnswer, FinishReason, ToolCall, Usage } from "../../domain/Chat.ts"

export type NewId = () => string

/** Text that comes as a string or as a list of text parts. */
export const textOf = (content: unknown): string => {
  if (typeof content === "string") return content
  if (!Array.isArray(content)) return ""
  return content.map((part: unknown) => (Predicate.isRecord(part) ? textOf(part.text) : "")).join("")
}

/** Arguments are a JSON text on this wire; some hosts send the object itself. */
export const argumentsOf = (value: unknown): string => {
  if (typeof value === "string") return value
  return Predicate.isRecord(value) ? JSON.stringify(value) : ""
}

export const reasoningOf = (message: Record<string, unknown>): string =>
  textOf(message.reasoning_content) || textOf(message.reasoning)

/** The error inside a 200, of the whole or of its choice. */
export const errorIn = (body: Record<string, unknown>): Record<string, unknown> | undefined => {
  if (Boolean(body.error) || body.object === "error") return body
  const choice: unknown = Array.isArray(body.choices) ? body.choices[0] : undefined
  return Predicate.isRecord(choice) && Boolean(choice.error) ? { error: choice.error } : undefined
}

/** Reasons by which a host says that it did not finish. */
export const isBreak = (reason: unknown): boolean => reason === "error" || reason === "insufficient_system_resource"

const reasons: ReadonlyMap<unknown, FinishReason> = new Map([
  ["length", "length"],
  ["max_tokens", "length"],
  ["model_length", "length"],
  ["content_filter", "content_filter"]
])

/** Of the convention's four, by what the answer holds where the host's word says less. */
export const finishOf = (
  reason: unknown,
  holds: { readonly calls: boolean; readonly refusal: boolean }
): FinishReason => reasons.get(reason) ?? (holds.calls ? "tool_calls" : holds.refusal ? "content_filter" : "stop")

const count = (value: unknown): number =>
  typeof value === "number" && Number.isFinite(value) && value > 0 ? Math.floor(value) : 0

/** Undefined where the host counted nothing. */
export const usageOf = (usage: unknown): Usage | undefined => {
  if (!Predicate.isRecord(usage)) return undefined
  const ofPrompt = Predicate.isRecord(usage.prompt_tokens_details) ? usage.prompt_tokens_details : {}
  const ofCompletion = Predicate.isRecord(usage.completion_tokens_details) ? usage.completion_tokens_details : {}
  const prompt = count(usage.prompt_tokens)
  const reported = count(usage.completion_tokens)
  if (prompt === 0 && reported === 0) return undefined
  const thought = count(ofCompletion.reasoning_tokens)
  // Some hosts leave reasoning out of the completion and count it in the total alone.
  const apart = thought > 0 && count(usage.total_tokens) === prompt + reported + thought
  const completion = apart ? reported + thought : reported
  const cached = Math.min(prompt, count(ofPrompt.cached_tokens ?? usage.prompt_cache_hit_tokens ?? usage.cached_tokens))
  return {
    prompt,
    completion,
    cached,
    cacheWrite: Math.min(prompt - cached, count(ofPrompt.cache_write_tokens)),
    reasoning: Math.min(completion, thought)
  }
}

const toolCallOf = (call: unknown, newId: NewId): ToolCall | undefined => {
  if (!Predicate.isRecord(call) || !Predicate.isRecord(call.function)) return undefined
  const { name } = call.function
  if (typeof name !== "string" || name === "") return undefined
  const id = typeof call.id === "string" && call.id !== "" ? call.id : newId()
  return { id, type: "function", function: { name, arguments: argumentsOf(call.function.arguments) || "{}" } }
}

/** Reads a whole answer; a string says what is wrong with it. */
export const answerOf = (body: unknown, newId: NewId): ChatAnswer | string => {
  if (!Predicate.isRecord(body) || errorIn(body) !== undefined || !Array.isArray(body.choices))
    return "no choices in the answer"
  const choice: unknown = body.choices[0]
  if (!Predicate.isRecord(choice) || !Predicate.isRecord(choice.message)) return "no message in the answer"
  if (isBreak(choice.finish_reason)) return `finish_reason ${String(choice.finish_reason)}`
  const { message } = choice
  const listed: ReadonlyArray<unknown> = Array.isArray(message.tool_calls) ? message.tool_calls : []
  const toolCalls = listed.map((call) => toolCallOf(call, newId)).filter(Predicate.isNotUndefined)
  if (toolCalls.length < listed.length) return "a tool call without a name"
  const text = textOf(message.content)
  const refusal = text === "" ? textOf(message.refusal) : ""
  const content = text || refusal
  return {
    content: content === "" && toolCalls.length > 0 ? null : content,
    reasoning: reasoningOf(message) || undefined,
    toolCalls,
    finish: finishOf(choice.finish_reason, { calls: toolCalls.length > 0, refusal: refusal !== "" }),
    usage: usageOf(body.usage ?? choice.usage)
  }
}
