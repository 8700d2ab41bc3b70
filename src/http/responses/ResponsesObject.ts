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
import type { ReasonCode } from "../../domain/Failure.ts"
import { keepSource } from "../../domain/JsonSource.ts"
import { isArray, isObject, type JsonObject } from "../body/Guards.ts"
import { cacheUseJson, citationFields, removeCosts, toolUseJson } from "../chat/ChatCompletionsDialect.ts"
import type { AnswerHead } from "../chat/ChatDialect.ts"
import { readCustomInput } from "../chat/ChatTools.ts"
import { type ClientTool, makeToolNames } from "../chat/ClientTools.ts"
import { type Envelope, type FieldNames, renameField, type WireError } from "../errors/ErrorMessages.ts"
import type { ResponsesUsage } from "./ResponsesSchema.ts"

export const bodyOf = ({ native }: ChatRequest): JsonObject => native?.body ?? {}

export const usageJson = (usage: Usage): ResponsesUsage => ({
  input_tokens: usage.prompt,
  input_tokens_details: cacheUseJson(usage),
  output_tokens: usage.completion,
  output_tokens_details: { reasoning_tokens: usage.reasoning },
  total_tokens: usage.prompt + usage.completion,
  ...toolUseJson(usage)
})

const objectIn = (value: unknown): JsonObject => (isObject(value) ? value : {})

/** Returns the request's fields that the response repeats. For a large request only metadata, because a stream repeats them. */
const fieldsToReturn = (request: ChatRequest): JsonObject => {
  const body = bodyOf(request)
  return request.isLarge === true ? { metadata: body.metadata } : body
}

/** The fields that are the same in every event of a response. */
export const responseHead = ({ created, id, model }: AnswerHead, request: ChatRequest) => {
  const body = fieldsToReturn(request)
  return {
    id,
    object: "response" as const,
    created_at: created,
    model,
    background: false,
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    metadata: objectIn(body.metadata),
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    previous_response_id: null,
    prompt_cache_key: body.prompt_cache_key ?? null,
    reasoning: { effort: request.reasoningEffort ?? null, summary: objectIn(body.reasoning).summary ?? null },
    service_tier: "default",
    store: false as const,
    temperature: body.temperature ?? null,
    text: { format: { type: "text" }, ...objectIn(body.text) },
    tool_choice: body.tool_choice ?? "auto",
    tools: body.tools ?? [],
    top_p: body.top_p ?? null,
    truncation: body.truncation ?? "disabled"
  }
}

/** Returns why a response is incomplete, or undefined if it is complete. */
export const toIncompleteReason = (
  finish: FinishReason | undefined
): "max_output_tokens" | "content_filter" | undefined => {
  if (finish === "length") return "max_output_tokens"
  return finish === "content_filter" ? finish : undefined
}

type Kind = "msg" | "rs" | "fc" | "ctc"

/** Derives an item's id from the response's id, which is cheaper than a new random id. */
export const makeItemId = ({ id }: AnswerHead, kind: Kind, index: number): string =>
  `${kind}_${id.slice(id.indexOf("_") + 1)}_${index}`

/** Returns whether the client requests encrypted reasoning. Then it expects a reasoning item in every response. */
export const wantsEncrypted = (request: ChatRequest): boolean => {
  const { include } = bodyOf(request)
  return isArray(include) && include.includes("reasoning.encrypted_content")
}

export const annotationJson = (citation: Citation) => ({ type: "url_citation" as const, ...citationFields(citation) })

export const messageItem = (id: string, status: string, text: string, annotations: ReadonlyArray<object> = []) => ({
  id,
  type: "message" as const,
  status,
  role: "assistant" as const,
  content: [{ type: "output_text" as const, text, annotations, logprobs: [] }]
})

export const reasoningItem = (id: string, text: string, isEncrypted: boolean) => ({
  id,
  type: "reasoning" as const,
  summary: text === "" ? [] : [{ type: "summary_text" as const, text }],
  ...(isEncrypted ? { encrypted_content: unsignedMark } : undefined)
})

interface CallItem extends ClientTool {
  readonly id: string
  readonly callId: string
  readonly status: string
  /** The arguments as JSON, or the plain input of a custom tool. */
  readonly input: string
}

export const callItem = ({ callId: call_id, input, id, isCustom, name, namespace, status }: CallItem) => ({
  id,
  type: isCustom ? ("custom_tool_call" as const) : ("function_call" as const),
  status,
  call_id,
  name,
  ...(namespace === undefined ? undefined : { namespace }),
  ...(isCustom ? { input } : { arguments: input })
})

export const callKind = ({ isCustom }: ClientTool): Kind => (isCustom ? "ctc" : "fc")

const encodeOutput = (answerHead: AnswerHead, request: ChatRequest, answer: ChatAnswer, status: string) => {
  const { citations = [], content, reasoning = "", toolCalls } = answer
  const isEncrypted = wantsEncrypted(request)
  const items: Array<object> = []
  if (reasoning !== "" || isEncrypted)
    items.push(reasoningItem(makeItemId(answerHead, "rs", 0), reasoning, isEncrypted))
  if ((content ?? "") !== "" || citations.length > 0 || toolCalls.length === 0) {
    const annotations = citations.map(annotationJson)
    items.push(messageItem(makeItemId(answerHead, "msg", items.length), status, content ?? "", annotations))
  }
  if (toolCalls.length === 0) return items
  const names = makeToolNames(bodyOf(request))
  const encodeCall = (
    { function: { arguments: args, name: functionName }, id, signature }: ToolCall,
    index: number
  ) => {
    const tool = names.findClientTool(functionName)
    return callItem({
      ...tool,
      id: makeItemId(answerHead, callKind(tool), items.length + index),
      callId: encodeCallId(id, signature),
      status,
      input: tool.isCustom ? readCustomInput(args) : args
    })
  }
  return [...items, ...toolCalls.map(encodeCall)]
}

/** Replaces the id, model and usage in a provider's native response by the gateway's. */
export const nativeResponse = (answer: JsonObject, { id, model }: AnswerHead, usage?: Usage): JsonObject =>
  keepSource(answer, {
    ...answer,
    id,
    model,
    ...(isObject(answer.usage) || usage !== undefined
      ? { usage: { ...removeCosts(answer.usage), ...(usage && usageJson(usage)) } }
      : undefined)
  })

export const responseJson = (
  answerHead: AnswerHead,
  request: ChatRequest,
  answer: ChatAnswer,
  usage: Usage
): JsonObject => {
  if (answer.native !== undefined) return nativeResponse(answer.native, answerHead, usage)
  const reason = toIncompleteReason(answer.finish)
  const status = reason === undefined ? "completed" : "incomplete"
  return {
    ...responseHead(answerHead, request),
    status,
    error: null,
    incomplete_details: reason === undefined ? null : { reason },
    output: encodeOutput(answerHead, request, answer, status),
    usage: usageJson(usage)
  }
}

export const responsesFieldNames: FieldNames = {
  messages: "input",
  max_tokens: "max_output_tokens",
  reasoning_effort: "reasoning",
  response_format: "text.format"
}

/** Encodes an error with the provider's message and code, because agents use them to recover. */
export const responsesError = ({ body: { error }, reason, reasonCode }: Omit<WireError, "status">): Envelope => {
  const { message, ...rest } = renameField(error, responsesFieldNames, reason)
  return { error: { message, type: error.type, ...rest, code: reasonCode ?? error.code } }
}

/** Returns an error's code that clients of this dialect handle. After any other code, they retry the request. */
const toFailureCode = ({ error: { code, type } }: Envelope): string => {
  if (type === "insufficient_quota" || type === "rate_limit_error") return code ?? type
  if (type === "invalid_request_error") return code ?? "invalid_prompt"
  return type === "content_policy_violation" ? "invalid_prompt" : "server_error"
}

/** Returns the `error` of a failed response. */
export const encodeFailure = (body: Envelope, reason?: string, reasonCode?: ReasonCode) => {
  const refusal = responsesError({ body, reason, reasonCode })
  const { hint, message } = refusal.error
  return { code: toFailureCode(refusal), message, ...(hint === undefined ? undefined : { hint }) }
}
