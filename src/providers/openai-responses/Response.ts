import { Either, Predicate } from "effect"
import type { ChatAnswer, FinishReason, ToolCall, Usage } from "../../domain/Chat.ts"
import { asCount, asFields, asRecords, asText, type Fields } from "../client/Json.ts"

export const paragraph = "\n\n"

export const decodeUsage = (usage: unknown): Usage | undefined => {
  const { input_tokens, input_tokens_details, output_tokens, output_tokens_details } = asFields(usage)
  const prompt = asCount(input_tokens)
  const completion = asCount(output_tokens)
  if (prompt === 0 && completion === 0) return undefined
  const { cache_write_tokens, cached_tokens } = asFields(input_tokens_details)
  const cached = Math.min(prompt, asCount(cached_tokens))
  return {
    prompt,
    completion,
    cached,
    cacheWrite: Math.min(prompt - cached, asCount(cache_write_tokens)),
    reasoning: Math.min(completion, asCount(asFields(output_tokens_details).reasoning_tokens))
  }
}

/** The error of a response that failed; some hosts answer 200 with an error alone. */
export const errorIn = (body: Fields): Fields | undefined =>
  Predicate.isRecord(body.error) || body.status === "failed" || body.object === "error" ? body : undefined

export const isOver = ({ status }: Fields): boolean =>
  status === "completed" || status === "incomplete" || status === undefined || status === null

export const decodeFinish = (
  response: Fields,
  holds: { readonly calls: boolean; readonly refusal: boolean }
): FinishReason => {
  if (response.status !== "incomplete") return holds.calls ? "tool_calls" : holds.refusal ? "content_filter" : "stop"
  return asFields(response.incomplete_details).reason === "content_filter" ? "content_filter" : "length"
}

/** A call is known to the client by its `call_id`: the item's own `id` is the host's business. */
export const decodeCall = (item: Fields, newId: () => string): ToolCall | undefined => {
  const name = asText(item.name)
  if (name === "") return undefined
  const id = asText(item.call_id) || asText(item.id) || newId()
  return { id, type: "function", function: { name, arguments: asText(item.arguments) } }
}

const reasoningTexts = (item: Fields): ReadonlyArray<string> =>
  [...asRecords(item.summary), ...asRecords(item.content)].map(({ text }) => asText(text)).filter((text) => text !== "")

export const decodeAnswer = (body: unknown, newId: () => string): Either.Either<ChatAnswer, string> => {
  const response = asFields(body)
  if (!Array.isArray(response.output)) return Either.left("no output in the answer")
  if (!isOver(response)) return Either.left(`a response that is ${asText(response.status)}`)
  const items = asRecords(response.output)
  const parts = items.filter(({ type }) => type === "message").flatMap(({ content }) => asRecords(content))
  const text = parts.map((part) => (part.type === "output_text" ? asText(part.text) : "")).join("")
  const refusal = text === "" ? parts.map((part) => asText(part.refusal)).join("") : ""
  const reasoning = items.filter(({ type }) => type === "reasoning").flatMap(reasoningTexts)
  const calls = items.filter(({ type }) => type === "function_call")
  const toolCalls = calls.map((item) => decodeCall(item, newId)).filter(Predicate.isNotUndefined)
  if (toolCalls.length < calls.length) return Either.left("a function call without a name")
  const content = text || refusal
  return Either.right({
    content: content === "" && toolCalls.length > 0 ? null : content,
    reasoning: reasoning.join(paragraph) || undefined,
    toolCalls: toolCalls.map(({ function: called, ...call }) => {
      return { ...call, function: { ...called, arguments: called.arguments || "{}" } }
    }),
    finish: decodeFinish(response, { calls: toolCalls.length > 0, refusal: refusal !== "" }),
    usage: decodeUsage(response.usage)
  })
}
