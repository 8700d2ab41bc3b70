import { callIdOnWire, unsigned } from "../../domain/CallId.ts"
import type { ChatAnswer, ChatRequest, Citation, FinishReason, ToolCall, Usage } from "../../domain/Chat.ts"
import { keepSource } from "../../domain/JsonSource.ts"
import { parseExact } from "../../domain/JsonText.ts"
import { isObject, type JsonObject } from "../body/Guards.ts"
import { reportedUsage } from "../chat/ChatCompletionsDialect.ts"
import type { AnswerName } from "../chat/ChatDialect.ts"
import type { Message, MessagesUsage } from "./MessagesSchema.ts"

export const usageJson = ({
  cached,
  cacheWrite,
  cacheWriteHour = 0,
  completion,
  prompt,
  reasoning,
  webSearches = 0
}: Usage): MessagesUsage => ({
  input_tokens: prompt - cached - cacheWrite,
  cache_creation_input_tokens: cacheWrite,
  cache_read_input_tokens: cached,
  cache_creation: {
    ephemeral_5m_input_tokens: cacheWrite - cacheWriteHour,
    ephemeral_1h_input_tokens: cacheWriteHour
  },
  output_tokens: completion,
  output_tokens_details: { thinking_tokens: reasoning },
  server_tool_use: webSearches === 0 ? null : { web_search_requests: webSearches }
})

/** What a host reports, with the counts that are billed. */
export const billedUsage = (reported: unknown, usage: Usage): JsonObject => {
  const theirs = reportedUsage(reported)
  const { server_tool_use: searches, ...counts } = usageJson(usage)
  const tools = theirs.server_tool_use
  const { webSearches = 0 } = usage
  return {
    ...theirs,
    ...counts,
    server_tool_use: isObject(tools) ? { ...tools, web_search_requests: webSearches } : searches
  }
}

const stopReasons: Readonly<Record<FinishReason, string>> = {
  stop: "end_turn",
  length: "max_tokens",
  tool_calls: "tool_use",
  content_filter: "refusal"
}

/** How an answer ends; `stopSequence` is the client's sequence that ended it, if any did. */
export const endOf = (finish: FinishReason, stopSequence?: string) =>
  finish === "stop" && stopSequence !== undefined
    ? { stop_reason: "stop_sequence", stop_sequence: stopSequence }
    : { stop_reason: stopReasons[finish], stop_sequence: null }

/** The mark stands for a text that only the host of a search can read. */
export const citationJson = ({ quote = "", title, url }: Citation) => ({
  type: "web_search_result_location" as const,
  cited_text: quote,
  url,
  title: title ?? url,
  encrypted_index: unsigned
})

/** A model may reason without being asked, and clients that did not ask expect no such block. */
export const showsThinking = ({ reasoningEffort }: ChatRequest): boolean => reasoningEffort !== undefined

/** Writing the answer recurses. */
const maxLevels = 1_000

/** A call that was cut short has no whole arguments. */
const inputOf = (text: string): JsonObject => {
  try {
    const input = parseExact(text, maxLevels)
    return isObject(input) ? input : {}
  } catch {
    return {}
  }
}

const callBlock = ({ function: called, id, signature }: ToolCall) => ({
  type: "tool_use" as const,
  id: callIdOnWire(id, signature),
  name: called.name,
  input: inputOf(called.arguments)
})

const textBlocks = ({ citations = [], content }: ChatAnswer) => {
  const text = content ?? ""
  if (text === "" && citations.length === 0) return []
  return [
    {
      type: "text" as const,
      text,
      ...(citations.length === 0 ? undefined : { citations: citations.map(citationJson) })
    }
  ]
}

const translate = ({ id, model }: AnswerName, request: ChatRequest, answer: ChatAnswer, usage: Usage): Message => {
  const { finish, reasoning, stopSequence, toolCalls } = answer
  return {
    id,
    type: "message",
    role: "assistant",
    model,
    content: [
      ...(reasoning === undefined || !showsThinking(request)
        ? []
        : [{ type: "thinking" as const, thinking: reasoning, signature: unsigned }]),
      ...textBlocks(answer),
      ...toolCalls.map(callBlock)
    ],
    ...endOf(finish, stopSequence),
    stop_details: null,
    container: null,
    usage: usageJson(usage)
  }
}

/** A host's own answer stays as it is but for our names, and for the counts that are billed. */
export const messageJson = (name: AnswerName, request: ChatRequest, answer: ChatAnswer, usage: Usage): object => {
  const { native } = answer
  if (native === undefined) return translate(name, request, answer, usage)
  const { id, model } = name
  return keepSource(native, { ...native, id, model, usage: billedUsage(native.usage, usage) })
}
