import { Either, Predicate } from "effect"
import type { ChatAnswer, FinishReason, ToolCall, Usage } from "../../domain/Chat.ts"
import { asCount, asFields, asList, asText, type Fields } from "../client/Json.ts"

export const textOf = (content: unknown): string =>
  typeof content === "string"
    ? content
    : asList(content)
        .map((part) => textOf(asFields(part).text))
        .join("")

/** Arguments are a JSON text on this wire; some hosts send the object itself. */
export const argumentsOf = (value: unknown): string =>
  Predicate.isRecord(value) ? JSON.stringify(value) : asText(value)

export const reasoningOf = (message: Fields): string => textOf(message.reasoning_content) || textOf(message.reasoning)

export const errorIn = (body: Fields): Fields | undefined => {
  if (Boolean(body.error) || body.object === "error") return body
  const { error } = asFields(asList(body.choices)[0])
  return error ? { error } : undefined
}

export const isBreak = (reason: unknown): boolean => reason === "error" || reason === "insufficient_system_resource"

const reasons: ReadonlyMap<unknown, FinishReason> = new Map([
  ["length", "length"],
  ["max_tokens", "length"],
  ["model_length", "length"],
  ["content_filter", "content_filter"]
])

/** Of the convention's four, by what the answer holds where the host's word says less. */
export const decodeFinish = (
  reason: unknown,
  holds: { readonly calls: boolean; readonly refusal: boolean }
): FinishReason => reasons.get(reason) ?? (holds.calls ? "tool_calls" : holds.refusal ? "content_filter" : "stop")

export const decodeUsage = (usage: unknown): Usage | undefined => {
  if (!Predicate.isRecord(usage)) return undefined
  const ofPrompt = asFields(usage.prompt_tokens_details)
  const prompt = asCount(usage.prompt_tokens)
  const reported = asCount(usage.completion_tokens)
  if (prompt === 0 && reported === 0) return undefined
  const thought = asCount(asFields(usage.completion_tokens_details).reasoning_tokens)
  // Some hosts leave reasoning out of the completion and count it in the total alone.
  const isApart = thought > 0 && asCount(usage.total_tokens) === prompt + reported + thought
  const completion = isApart ? reported + thought : reported
  const cachedTokens = ofPrompt.cached_tokens ?? usage.prompt_cache_hit_tokens ?? usage.cached_tokens
  const cached = Math.min(prompt, asCount(cachedTokens))
  return {
    prompt,
    completion,
    cached,
    cacheWrite: Math.min(prompt - cached, asCount(ofPrompt.cache_write_tokens)),
    reasoning: Math.min(completion, thought)
  }
}

const decodeToolCall = (call: unknown, newId: () => string): ToolCall | undefined => {
  const { function: called, id } = asFields(call)
  const { arguments: text, name } = asFields(called)
  if (asText(name) === "") return undefined
  return {
    id: asText(id) || newId(),
    type: "function",
    function: { name: asText(name), arguments: argumentsOf(text) || "{}" }
  }
}

export const decodeAnswer = (body: unknown, newId: () => string): Either.Either<ChatAnswer, string> => {
  const { choices, usage } = asFields(body)
  if (!Array.isArray(choices)) return Either.left("no choices in the answer")
  const choice = asFields(choices[0])
  const { finish_reason, message } = choice
  if (!Predicate.isRecord(message)) return Either.left("no message in the answer")
  if (isBreak(finish_reason)) return Either.left(`finish_reason ${String(finish_reason)}`)
  const calls = asList(message.tool_calls)
  const toolCalls = calls.map((call) => decodeToolCall(call, newId)).filter(Predicate.isNotUndefined)
  if (toolCalls.length < calls.length) return Either.left("a tool call without a name")
  const text = textOf(message.content)
  const refusal = text === "" ? textOf(message.refusal) : ""
  const content = text || refusal
  return Either.right({
    content: content === "" && toolCalls.length > 0 ? null : content,
    reasoning: reasoningOf(message) || undefined,
    toolCalls,
    finish: decodeFinish(finish_reason, { calls: toolCalls.length > 0, refusal: refusal !== "" }),
    usage: decodeUsage(usage ?? choice.usage)
  })
}
