import {
  type ChatAnswer,
  type ChatRequest,
  type Citation,
  encodeCallId,
  type FinishReason,
  type ToolCall,
  type Usage,
  unsignedMark
} from "../../domain/Chat.ts"
import { keepSource } from "../../domain/JsonSource.ts"
import { parseExact } from "../../domain/JsonText.ts"
import type { AnswerHeader } from "../AnswerHeaders.ts"
import { isObject, type JsonObject } from "../body/Guards.ts"
import { removeCosts } from "../chat/ChatCompletionsDialect.ts"
import type { AnswerHead } from "../chat/ChatDialect.ts"
import { type Envelope, type FieldNames, renameField } from "../errors/ErrorMessages.ts"
import type { ErrorType } from "../errors/ErrorRow.ts"
import type { EncodeError } from "../HttpAnswer.ts"
import { listModels } from "../models/ModelSchema.ts"
import { servedPath } from "../schema/Endpoints.ts"
import { createMessage, type Message, type MessagesError, type MessagesUsage } from "./MessagesSchema.ts"

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

/** Returns a provider's reported usage in which the billed counts replace its own. */
export const billedUsage = (reported: unknown, usage: Usage): JsonObject => {
  const providerUsage = removeCosts(reported)
  const { server_tool_use: billedToolUse, ...billedCounts } = usageJson(usage)
  const toolUse = providerUsage.server_tool_use
  const { webSearches = 0 } = usage
  return {
    ...providerUsage,
    ...billedCounts,
    server_tool_use: isObject(toolUse) ? { ...toolUse, web_search_requests: webSearches } : billedToolUse
  }
}

const stopReasons: Readonly<Record<FinishReason, string>> = {
  stop: "end_turn",
  length: "max_tokens",
  tool_calls: "tool_use",
  content_filter: "refusal"
}

/** Encodes why the model stopped. `stopSequence`: the client's stop sequence that it wrote, if any. */
export const encodeStop = (finish: FinishReason, stopSequence?: string) =>
  finish === "stop" && stopSequence !== undefined
    ? { stop_reason: "stop_sequence", stop_sequence: stopSequence }
    : { stop_reason: stopReasons[finish], stop_sequence: null }

/** Encodes a source. `unsignedMark` stands in for the encrypted index that only Anthropic could create. */
export const citationJson = ({ quote = "", title, url }: Citation) => ({
  type: "web_search_result_location" as const,
  cited_text: quote,
  url,
  title: title ?? url,
  encrypted_index: unsignedMark
})

/** Returns whether to send thinking blocks. Clients that do not request reasoning expect none, even if the model reasons. */
export const showsThinking = ({ reasoningEffort }: ChatRequest): boolean => reasoningEffort !== undefined

/** The maximum nesting of arguments. It limits the recursion when the response is encoded. */
const maxLevels = 1_000

/** Parses the arguments of a call. Returns an empty object if they are incomplete, because the model was cut off. */
const parseInput = (text: string): JsonObject => {
  try {
    const input = parseExact(text, maxLevels)
    return isObject(input) ? input : {}
  } catch {
    return {}
  }
}

const encodeCall = ({ function: { arguments: args, name }, id, signature }: ToolCall) => ({
  type: "tool_use" as const,
  id: encodeCallId(id, signature),
  name,
  input: parseInput(args)
})

const encodeText = ({ citations = [], content }: ChatAnswer) => {
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

const translate = ({ id, model }: AnswerHead, request: ChatRequest, answer: ChatAnswer, usage: Usage): Message => {
  const { finish, reasoning, stopSequence, toolCalls } = answer
  return {
    id,
    type: "message",
    role: "assistant",
    model,
    content: [
      ...(reasoning === undefined || !showsThinking(request)
        ? []
        : [{ type: "thinking" as const, thinking: reasoning, signature: unsignedMark }]),
      ...encodeText(answer),
      ...toolCalls.map(encodeCall)
    ],
    ...encodeStop(finish, stopSequence),
    stop_details: null,
    container: null,
    usage: usageJson(usage)
  }
}

/** Encodes the response. A provider's native response gets the gateway's id, model and usage. */
export const messageJson = (answerHead: AnswerHead, request: ChatRequest, answer: ChatAnswer, usage: Usage): object => {
  const { native } = answer
  if (native === undefined) return translate(answerHead, request, answer, usage)
  const { id, model } = answerHead
  return keepSource(native, { ...native, id, model, usage: billedUsage(native.usage, usage) })
}

type MessagesErrorType = MessagesError["error"]["type"]

const errorTypes: Readonly<Record<ErrorType, MessagesErrorType>> = {
  invalid_request_error: "invalid_request_error",
  authentication_error: "authentication_error",
  permission_error: "permission_error",
  not_found_error: "not_found_error",
  rate_limit_error: "rate_limit_error",
  insufficient_quota: "billing_error",
  content_policy_violation: "invalid_request_error",
  api_error: "api_error",
  service_unavailable: "overloaded_error"
}

const toErrorType = ({ error: { code, type } }: Envelope): MessagesErrorType => {
  if (code === "request_too_large") return "request_too_large"
  return code === "timeout" ? "timeout_error" : errorTypes[type]
}

export const messagesFieldNames: FieldNames = {
  reasoning_effort: "thinking",
  response_format: "output_config.format"
}

export const messagesError = (body: Envelope, reason: string | undefined, requestId?: string): MessagesError => {
  const { param: _, ...rest } = renameField(body.error, messagesFieldNames, reason)
  return {
    type: "error",
    error: { type: toErrorType(body), ...rest },
    ...(requestId === undefined ? undefined : { request_id: requestId })
  }
}

/** Encodes an error with the provider's own message, because clients parse it to recover, such as from a long prompt. */
export const encodeMessagesError: EncodeError = ({ body, reason }, requestId) => messagesError(body, reason, requestId)

const messagesPath = servedPath(createMessage)
const modelsPath = servedPath(listModels)

const isBelow = (path: string, parent: string): boolean => path === parent || path.startsWith(`${parent}/`)

/** Returns whether a client of the Messages API sent the request. Such clients also list models. */
export const isOfMessages = (path: string, headers: Readonly<Record<string, unknown>>): boolean =>
  isBelow(path, messagesPath) || (headers["anthropic-version"] !== undefined && isBelow(path, modelsPath))

/** Clients of the Messages API read the request id from this header. */
export const messagesIdHeader = "request-id" satisfies AnswerHeader
