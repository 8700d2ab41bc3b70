import { Predicate } from "effect"
import type { ChatAnswer, FinishReason, ToolCall, Usage } from "../../domain/Chat.ts"

export type NewId = () => string
export type Fields = Readonly<Record<PropertyKey, unknown>>

export const textOf = (value: unknown): string => (typeof value === "string" ? value : "")

/** What comes between the paragraphs of a reasoning. */
export const paragraph = "\n\n"

const count = (value: unknown): number =>
  typeof value === "number" && Number.isFinite(value) && value > 0 ? Math.floor(value) : 0

/** Undefined where the host counted nothing. */
export const usageOf = (usage: unknown): Usage | undefined => {
  if (!Predicate.isRecord(usage)) return undefined
  const prompt = count(usage.input_tokens)
  const completion = count(usage.output_tokens)
  if (prompt === 0 && completion === 0) return undefined
  const ofPrompt = Predicate.isRecord(usage.input_tokens_details) ? usage.input_tokens_details : {}
  const ofCompletion = Predicate.isRecord(usage.output_tokens_details) ? usage.output_tokens_details : {}
  const cached = Math.min(prompt, count(ofPrompt.cached_tokens))
  return {
    prompt,
    completion,
    cached,
    cacheWrite: Math.min(prompt - cached, count(ofPrompt.cache_write_tokens)),
    reasoning: Math.min(completion, count(ofCompletion.reasoning_tokens))
  }
}

/** The error of a response that failed; some hosts answer 200 with an error alone. */
export const errorIn = (body: Fields): Fields | undefined => {
  if (Predicate.isRecord(body.error)) return { error: body.error }
  return body.status === "failed" || body.object === "error" ? body : undefined
}

/** Whether a response ended; hosts that know no `incomplete` say nothing. */
export const isOver = ({ status }: Fields): boolean =>
  status === "completed" || status === "incomplete" || status === undefined || status === null

export const finishOf = (
  response: Fields,
  holds: { readonly calls: boolean; readonly refusal: boolean }
): FinishReason => {
  if (response.status === "incomplete") {
    const { reason } = Predicate.isRecord(response.incomplete_details) ? response.incomplete_details : {}
    return reason === "content_filter" ? "content_filter" : "length"
  }
  return holds.calls ? "tool_calls" : holds.refusal ? "content_filter" : "stop"
}

/** A call is known to the client by its `call_id`: the item's own `id` is the host's business. */
export const callOf = (item: Fields, newId: NewId): ToolCall | undefined => {
  const name = textOf(item.name)
  if (name === "") return undefined
  const id = textOf(item.call_id) || textOf(item.id) || newId()
  return { id, type: "function", function: { name, arguments: textOf(item.arguments) } }
}

const list = (value: unknown): ReadonlyArray<Fields> => (Array.isArray(value) ? value.filter(Predicate.isRecord) : [])

const reasoningOf = (item: Fields): ReadonlyArray<string> =>
  [...list(item.summary), ...list(item.content)].map(({ text }) => textOf(text)).filter((text) => text !== "")

/** Reads a whole response; a string says what is wrong with it. */
export const answerOf = (body: unknown, newId: NewId): ChatAnswer | string => {
  if (!Predicate.isRecord(body) || !Array.isArray(body.output)) return "no output in the answer"
  if (errorIn(body) !== undefined || !isOver(body)) return `a response that is ${textOf(body.status)}`
  const items = list(body.output)
  const parts = items.filter(({ type }) => type === "message").flatMap(({ content }) => list(content))
  const text = parts.map((part) => (part.type === "output_text" ? textOf(part.text) : "")).join("")
  const refusal = text === "" ? parts.map((part) => textOf(part.refusal)).join("") : ""
  const reasoning = items.filter(({ type }) => type === "reasoning").flatMap(reasoningOf)
  const calls = items.filter(({ type }) => type === "function_call")
  const toolCalls = calls.map((item) => callOf(item, newId)).filter(Predicate.isNotUndefined)
  if (toolCalls.length < calls.length) return "a function call without a name"
  const content = text || refusal
  return {
    content: content === "" && toolCalls.length > 0 ? null : content,
    reasoning: reasoning.join(paragraph) || undefined,
    toolCalls: toolCalls.map(({ function: called, ...call }) => {
      return { ...call, function: { ...called, arguments: called.arguments || "{}" } }
    }),
    finish: finishOf(body, { calls: toolCalls.length > 0, refusal: refusal !== "" }),
    usage: usageOf(body.usage)
  }
}
