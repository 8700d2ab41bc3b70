import { callIdOnWire, unsigned } from "../../domain/CallId.ts"
import type { ChatAnswer, ChatRequest, Citation, FinishReason, ToolCall, Usage } from "../../domain/Chat.ts"
import type { ReasonCode } from "../../domain/Failure.ts"
import { keepSource } from "../../domain/JsonSource.ts"
import { isArray, isObject, type JsonObject } from "../body/Guards.ts"
import { cacheUseJson, citationFields, reportedUsage, toolUseJson } from "../chat/ChatCompletionsDialect.ts"
import type { AnswerName } from "../chat/ChatDialect.ts"
import { customInput } from "../chat/ChatTools.ts"
import { type ClientTool, toolNamesOf } from "../chat/ClientTools.ts"
import type { Envelope, WireError } from "../errors/ErrorMessages.ts"
import { type FieldNames, renameField } from "../errors/FieldNames.ts"
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

/** A stream sends it three times: of a large request it shows the metadata alone. */
const shownOf = (request: ChatRequest): JsonObject => {
  const body = bodyOf(request)
  return request.isLarge === true ? { metadata: body.metadata } : body
}

/** What stays the same from the first event to the last. */
export const responseHead = ({ created, id, model }: AnswerName, request: ChatRequest) => {
  const body = shownOf(request)
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

/** Why an answer is cut short; undefined: it is not. */
export const cutBy = (finish: FinishReason | undefined): "max_output_tokens" | "content_filter" | undefined => {
  if (finish === "length") return "max_output_tokens"
  return finish === "content_filter" ? finish : undefined
}

type Kind = "msg" | "rs" | "fc" | "ctc"

/** Derived from the response's id, which saves further randomness. */
export const itemId = ({ id }: AnswerName, kind: Kind, index: number): string =>
  `${kind}_${id.slice(id.indexOf("_") + 1)}_${index}`

/** A client that asks for it expects a reasoning item in every answer. */
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
  ...(isEncrypted ? { encrypted_content: unsigned } : undefined)
})

interface CallItem extends ClientTool {
  readonly id: string
  readonly callId: string
  readonly status: string
  /** A JSON text, or the plain input of a custom tool. */
  readonly given: string
}

export const callItem = ({ callId: call_id, given, id, isCustom, name, namespace, status }: CallItem) => ({
  id,
  type: isCustom ? ("custom_tool_call" as const) : ("function_call" as const),
  status,
  call_id,
  name,
  ...(namespace === undefined ? undefined : { namespace }),
  ...(isCustom ? { input: given } : { arguments: given })
})

export const callKind = ({ isCustom }: ClientTool): Kind => (isCustom ? "ctc" : "fc")

const outputOf = (name: AnswerName, request: ChatRequest, answer: ChatAnswer, status: string) => {
  const { citations = [], content, reasoning = "", toolCalls } = answer
  const isEncrypted = wantsEncrypted(request)
  const items: Array<object> = []
  if (reasoning !== "" || isEncrypted) items.push(reasoningItem(itemId(name, "rs", 0), reasoning, isEncrypted))
  if ((content ?? "") !== "" || citations.length > 0 || toolCalls.length === 0) {
    const annotations = citations.map(annotationJson)
    items.push(messageItem(itemId(name, "msg", items.length), status, content ?? "", annotations))
  }
  if (toolCalls.length === 0) return items
  const names = toolNamesOf(bodyOf(request))
  const item = ({ function: called, id, signature }: ToolCall, index: number) => {
    const tool = names.clientTool(called.name)
    return callItem({
      ...tool,
      id: itemId(name, callKind(tool), items.length + index),
      callId: callIdOnWire(id, signature),
      status,
      given: tool.isCustom ? customInput(called.arguments) : called.arguments
    })
  }
  return [...items, ...toolCalls.map(item)]
}

/** A host's own answer, under our names, with what is billed. */
export const nativeResponse = (answer: JsonObject, { id, model }: AnswerName, usage?: Usage): JsonObject =>
  keepSource(answer, {
    ...answer,
    id,
    model,
    ...(isObject(answer.usage) || usage !== undefined
      ? { usage: { ...reportedUsage(answer.usage), ...(usage && usageJson(usage)) } }
      : undefined)
  })

export const responseJson = (name: AnswerName, request: ChatRequest, answer: ChatAnswer, usage: Usage): JsonObject => {
  if (answer.native !== undefined) return nativeResponse(answer.native, name, usage)
  const reason = cutBy(answer.finish)
  const status = reason === undefined ? "completed" : "incomplete"
  return {
    ...responseHead(name, request),
    status,
    error: null,
    incomplete_details: reason === undefined ? null : { reason },
    output: outputOf(name, request, answer, status),
    usage: usageJson(usage)
  }
}

export const responsesFields: FieldNames = {
  messages: "input",
  max_tokens: "max_output_tokens",
  reasoning_effort: "reasoning",
  response_format: "text.format"
}

/** Says why the provider refused a request: agents recover by it. */
export const responsesError = ({ body: { error }, reason, reasonCode }: Omit<WireError, "status">): Envelope => {
  const { message, ...shown } = renameField(error, responsesFields, reason)
  return { error: { message, type: error.type, ...shown, code: reasonCode ?? error.code } }
}

/** The codes by which clients of this dialect decide: all others are repeated. */
const failureCode = ({ error: { code, type } }: Envelope): string => {
  if (type === "insufficient_quota" || type === "rate_limit_error") return code ?? type
  if (type === "invalid_request_error") return code ?? "invalid_prompt"
  return type === "content_policy_violation" ? "invalid_prompt" : "server_error"
}

/** The `error` of a response that failed. */
export const failureOf = (body: Envelope, reason?: string, reasonCode?: ReasonCode) => {
  const refusal = responsesError({ body, reason, reasonCode })
  const { hint, message } = refusal.error
  return { code: failureCode(refusal), message, ...(hint === undefined ? undefined : { hint }) }
}
