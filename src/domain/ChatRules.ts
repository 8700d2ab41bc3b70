import { Either } from "effect"
import type { ChatRequest, NativeRequest } from "./Chat.ts"
import { InvalidRequest } from "./Failure.ts"
import { canBeObject } from "./JsonSchema.ts"
import type { Capability, ChatModel, ReasoningEffort } from "./Model.ts"
import { quoteModel, reasoningEfforts } from "./Model.ts"

export const hasImage = ({ messages }: ChatRequest): boolean =>
  messages.some(
    ({ content, role }) =>
      role === "user" && typeof content !== "string" && content.some((part) => part.type === "image_url")
  )

/** Hints are left out. */
export const needs = (request: ChatRequest): ReadonlySet<Capability> => {
  const capabilities = new Set<Capability>()
  if (request.tools.length > 0) capabilities.add("tools")
  if (hasImage(request)) capabilities.add("vision")
  if (request.responseFormat !== undefined && request.native?.only === undefined) capabilities.add("response_format")
  if (request.webSearch && request.webSearchIsHint !== true) capabilities.add("web_search")
  if (request.reasoningEffort !== undefined && request.effortIsHint !== true) capabilities.add("reasoning")
  return capabilities
}

const imageInput = "Image input"

type Refusal = { readonly param: string; readonly message: string }

const availabilityRefusal = (param: string, { id }: ChatModel, what = `\`${param}\``): Refusal => ({
  param,
  message: `${what} is not available for ${quoteModel(id)}.`
})

const effortRefusal = (model: ChatModel, { effortIsHint, reasoningEffort }: ChatRequest): Refusal | undefined => {
  const param = "reasoning_effort"
  if (reasoningEffort === undefined || effortIsHint === true || model.reasoning === "binary") return undefined
  if (model.reasoning === "none") return availabilityRefusal(param, model)
  if (model.reasoning.includes(reasoningEffort)) return undefined
  return { param, message: `\`${param}\` must be one of ${model.reasoning.join(", ")} for ${quoteModel(model.id)}.` }
}

const capRefusal = (
  { id, maxOutput, maxOutputPolicy }: ChatModel,
  { maxTokens, maxTokensField: param = "max_tokens", maxTokensOmitted }: ChatRequest
): Refusal | undefined =>
  maxOutputPolicy === "reject" && maxTokensOmitted !== true && maxTokens > maxOutput
    ? { param, message: `\`${param}\` must be at most ${maxOutput} for ${quoteModel(id)}.` }
    : undefined

const refusalOf = (model: ChatModel, request: ChatRequest): Refusal | undefined => {
  for (const need of needs(request)) {
    if (need === "reasoning" || model.capabilities.has(need)) continue
    return need === "vision" ? availabilityRefusal("messages", model, imageInput) : availabilityRefusal(need, model)
  }
  return effortRefusal(model, request) ?? capRefusal(model, request)
}

/** Picks the lower effort on a tie. */
const nearestEffort = (
  efforts: ReadonlyArray<ReasoningEffort>,
  wanted: ReasoningEffort
): ReasoningEffort | undefined => {
  const distance = (effort: ReasoningEffort) =>
    Math.abs(reasoningEfforts.indexOf(effort) - reasoningEfforts.indexOf(wanted))
  return reasoningEfforts
    .filter((effort) => efforts.includes(effort))
    .reduce<ReasoningEffort | undefined>(
      (best, effort) => (best !== undefined && distance(best) <= distance(effort) ? best : effort),
      undefined
    )
}

const effortOf = ({ reasoning }: ChatModel, { reasoningEffort: wanted }: ChatRequest) => {
  if (wanted === undefined || reasoning === "none") return undefined
  return reasoning === "binary" ? wanted : nearestEffort(reasoning, wanted)
}

/** Drops the hints whose capability `has` denies. */
export const keepHints = (request: ChatRequest, has: (capability: Capability) => boolean): ChatRequest => {
  const dropsEffort = request.effortIsHint === true && request.reasoningEffort !== undefined && !has("reasoning")
  const dropsSearch = request.webSearchIsHint === true && request.webSearch && !has("web_search")
  if (!dropsEffort && !dropsSearch) return request
  return {
    ...request,
    ...(dropsEffort ? { reasoningEffort: undefined } : undefined),
    ...(dropsSearch ? { webSearch: false } : undefined)
  }
}

const noSampling = {
  temperature: undefined,
  topP: undefined,
  seed: undefined,
  frequencyPenalty: undefined,
  presencePenalty: undefined
}

const unpricedMarks = ({ pricing: { cacheWrite, cacheWriteHour } }: ChatModel) => {
  if (cacheWrite === undefined) return "all"
  return cacheWriteHour === undefined ? "hour" : undefined
}

const onlyFormat = { param: "response_format", what: "`response_format`" }

/** A host may give its own dialect a format that its translation lacks. */
const askNatively = (model: ChatModel, request: ChatRequest): ChatRequest => {
  const { native, responseFormat } = request
  if (native === undefined || responseFormat === undefined || model.capabilities.has("response_format")) return request
  return { ...request, native: { ...native, only: native.only ?? onlyFormat } }
}

/** A model without a list of efforts gets the client's own. */
const fitNativeEffort = ({ reasoning }: ChatModel, native: NativeRequest): NativeRequest => {
  const { effort } = native
  if (effort === undefined || effort === "none") return native
  if (reasoning === "binary" || reasoning.includes(effort)) return { ...native, effort: undefined }
  return { ...native, effort: reasoning === "none" ? "none" : nearestEffort(reasoning, effort) }
}

/** The model's own where the request came in a dialect of agents. */
export const outputCap = ({ maxOutput, ownMaxOutput = maxOutput }: ChatModel, { native }: ChatRequest): number =>
  native === undefined ? maxOutput : ownMaxOutput

/** Refuses what would change the answer's meaning; drops or clamps what clients send out of habit. */
export const applyRules = (model: ChatModel, asked: ChatRequest): Either.Either<ChatRequest, InvalidRequest> => {
  const request = askNatively(model, asked)
  const refusal = refusalOf(model, request)
  if (refusal !== undefined) return Either.left(new InvalidRequest(refusal))
  const kept = keepHints(request, (capability) => capability === "reasoning" || model.capabilities.has(capability))
  return Either.right({
    ...kept,
    native: kept.native && fitNativeEffort(model, kept.native),
    ...(request.effortIsHint === true ? { reasoningEffort: effortOf(model, request) } : undefined),
    ...(model.sampling ? undefined : noSampling),
    unpricedMarks: unpricedMarks(model),
    ...(kept.webSearch ? { maxWebSearches: model.maxWebSearches } : undefined),
    contextLength: model.contextLength,
    maxTokens: Math.min(request.maxTokens, outputCap(model, request))
  })
}

/** The request with this field alone of those in which routes differ. */
export const reduceTo = (request: ChatRequest, param: string): ChatRequest => {
  const { messages, native, reasoningEffort, responseFormat, toolChoice, tools, webSearch } = request
  const only = native?.only?.param === param ? native.only : undefined
  return {
    ...request,
    messages: param === "messages" ? messages : [],
    tools: param === "tools" || param === "tool_choice" ? tools : [],
    toolChoice: param === "tool_choice" ? toolChoice : undefined,
    webSearch: param === "web_search" && webSearch,
    responseFormat: param === "response_format" ? responseFormat : undefined,
    reasoningEffort: param === "reasoning_effort" ? reasoningEffort : undefined,
    native: native && { ...native, only }
  }
}

const objectHint = "The schema of the answer must be an object: make the value one of its properties."

const isOfObjects = (format: ChatRequest["responseFormat"]): boolean =>
  format?.type !== "json_schema" || format.json_schema.schema === undefined || canBeObject(format.json_schema.schema)

/** No route serves the field, whatever else the request asks for. */
export const unsupportedField = (
  model: ChatModel,
  param: string,
  { native, responseFormat }: ChatRequest
): InvalidRequest => {
  const only = native?.only?.param === param ? native.only.what : undefined
  const refusal = availabilityRefusal(param, model, only ?? (param === "messages" ? imageInput : undefined))
  const isNoObject = param === "response_format" && !isOfObjects(responseFormat)
  return new InvalidRequest(isNoObject ? { ...refusal, hint: objectHint } : refusal)
}

/** `param` is one field too many of a combination that no route serves. */
export const unsupportedCombination = ({ id }: ChatModel, param: string | null): InvalidRequest =>
  new InvalidRequest({
    message: `No provider of ${quoteModel(id)} can do all that the request asks for at once.`,
    param
  })
