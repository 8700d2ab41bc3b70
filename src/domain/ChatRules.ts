import { Either } from "effect"
import type { ChatRequest, NativeRequest } from "./Chat.ts"
import { InvalidRequest } from "./Failure.ts"
import { canBeObject } from "./JsonSchema.ts"
import type { Capability, ChatModel, ReasoningEffort } from "./Model.ts"
import { quoteModel, reasoningEfforts } from "./Model.ts"
import { oneOfWords } from "./Wording.ts"

export const hasImage = ({ messages }: ChatRequest): boolean =>
  messages.some(
    ({ content, role }) =>
      role === "user" && typeof content !== "string" && content.some((part) => part.type === "image_url")
  )

/** Returns the capabilities that a model needs for the request. Hints, which may be ignored, need none. */
export const requiredCapabilities = (request: ChatRequest): ReadonlySet<Capability> => {
  const capabilities = new Set<Capability>()
  if (request.tools.length > 0) capabilities.add("tools")
  if (hasImage(request)) capabilities.add("vision")
  if (request.responseFormat !== undefined && request.native?.nativeOnly === undefined)
    capabilities.add("response_format")
  if (request.webSearch && request.isWebSearchHint !== true) capabilities.add("web_search")
  if (request.reasoningEffort !== undefined && request.isEffortHint !== true) capabilities.add("reasoning")
  return capabilities
}

const imageInput = "Image input"

type Refusal = { readonly param: string; readonly message: string }

const availabilityRefusal = (param: string, { id }: ChatModel, what = `\`${param}\``): Refusal => ({
  param,
  message: `${what} is not available for ${quoteModel(id)}.`
})

const effortRefusal = (model: ChatModel, { isEffortHint, reasoningEffort }: ChatRequest): Refusal | undefined => {
  const param = "reasoning_effort"
  if (reasoningEffort === undefined || isEffortHint === true || model.reasoning === "binary") return undefined
  if (model.reasoning === "none") return availabilityRefusal(param, model)
  if (model.reasoning.includes(reasoningEffort)) return undefined
  return { param, message: `\`${param}\` must be ${oneOfWords(model.reasoning)} for ${quoteModel(model.id)}.` }
}

const capRefusal = (
  { id, maxOutput, maxOutputPolicy }: ChatModel,
  { maxTokens, maxTokensField: param = "max_tokens", hasDefaultMaxTokens }: ChatRequest
): Refusal | undefined =>
  maxOutputPolicy === "reject" && hasDefaultMaxTokens !== true && maxTokens > maxOutput
    ? { param, message: `\`${param}\` must be at most ${maxOutput} for ${quoteModel(id)}.` }
    : undefined

const refusalOf = (model: ChatModel, request: ChatRequest): Refusal | undefined => {
  for (const capability of requiredCapabilities(request)) {
    if (capability === "reasoning" || model.capabilities.has(capability)) continue
    return capability === "vision"
      ? availabilityRefusal("messages", model, imageInput)
      : availabilityRefusal(capability, model)
  }
  return effortRefusal(model, request) ?? capRefusal(model, request)
}

/** Returns the supported effort nearest to the requested one; the lower one on a tie. */
const nearestEffort = (
  efforts: ReadonlyArray<ReasoningEffort>,
  requested: ReasoningEffort
): ReasoningEffort | undefined => {
  const distance = (effort: ReasoningEffort) =>
    Math.abs(reasoningEfforts.indexOf(effort) - reasoningEfforts.indexOf(requested))
  return reasoningEfforts
    .filter((effort) => efforts.includes(effort))
    .reduce<ReasoningEffort | undefined>(
      (best, effort) => (best !== undefined && distance(best) <= distance(effort) ? best : effort),
      undefined
    )
}

const effortOf = ({ reasoning }: ChatModel, { reasoningEffort }: ChatRequest) => {
  if (reasoningEffort === undefined || reasoning === "none") return undefined
  return reasoning === "binary" ? reasoningEffort : nearestEffort(reasoning, reasoningEffort)
}

export const dropUnsupportedHints = (request: ChatRequest, has: (capability: Capability) => boolean): ChatRequest => {
  const dropsEffort = request.isEffortHint === true && request.reasoningEffort !== undefined && !has("reasoning")
  const dropsSearch = request.isWebSearchHint === true && request.webSearch && !has("web_search")
  if (!dropsEffort && !dropsSearch) return request
  return {
    ...request,
    ...(dropsEffort ? { reasoningEffort: undefined } : undefined),
    ...(dropsSearch ? { webSearch: false } : undefined)
  }
}

const withoutSampling = {
  temperature: undefined,
  topP: undefined,
  seed: undefined,
  frequencyPenalty: undefined,
  presencePenalty: undefined
}

const unpricedBreakpoints = ({ pricing: { cacheWrite, cacheWriteHour } }: ChatModel) => {
  if (cacheWrite === undefined) return "all"
  return cacheWriteHour === undefined ? "hour" : undefined
}

const formatOnly = { param: "response_format", what: "`response_format`" }

/**
 * A provider may support a response format only in its own dialect. Then only routes of that dialect can serve the request.
 */
const requireNativeFormat = (model: ChatModel, request: ChatRequest): ChatRequest => {
  const { native, responseFormat } = request
  if (native === undefined || responseFormat === undefined || model.capabilities.has("response_format")) return request
  return { ...request, native: { ...native, nativeOnly: native.nativeOnly ?? formatOnly } }
}

/**
 * Sets `effort` to the nearest one the model supports. Undefined: the body's effort is sent unchanged, as for supported efforts
 * and `binary` models.
 */
const fitNativeEffort = ({ reasoning }: ChatModel, native: NativeRequest): NativeRequest => {
  const { effort } = native
  if (effort === undefined || effort === "none") return native
  if (reasoning === "binary" || reasoning.includes(effort)) return { ...native, effort: undefined }
  return { ...native, effort: reasoning === "none" ? "none" : nearestEffort(reasoning, effort) }
}

/** Returns the maximum output in tokens. Requests in the Responses and Messages dialects ignore the family's cap. */
export const outputCap = ({ maxOutput, ownMaxOutput = maxOutput }: ChatModel, { native }: ChatRequest): number =>
  native === undefined ? maxOutput : ownMaxOutput

/**
 * Drops or clamps unsupported fields that clients send by default. Fails for other unsupported fields: without them the
 * answer would mean something else.
 */
export const applyRules = (model: ChatModel, original: ChatRequest): Either.Either<ChatRequest, InvalidRequest> => {
  const request = requireNativeFormat(model, original)
  const refusal = refusalOf(model, request)
  if (refusal !== undefined) return Either.left(new InvalidRequest(refusal))
  const adaptedRequest = dropUnsupportedHints(
    request,
    (capability) => capability === "reasoning" || model.capabilities.has(capability)
  )
  return Either.right({
    ...adaptedRequest,
    native: adaptedRequest.native && fitNativeEffort(model, adaptedRequest.native),
    ...(request.isEffortHint === true ? { reasoningEffort: effortOf(model, request) } : undefined),
    ...(model.sampling ? undefined : withoutSampling),
    unpricedBreakpoints: unpricedBreakpoints(model),
    ...(adaptedRequest.webSearch ? { maxWebSearches: model.maxWebSearches } : undefined),
    contextLength: model.contextLength,
    maxTokens: Math.min(request.maxTokens, outputCap(model, request))
  })
}

/** Removes all fields that only some routes support, except `param`. */
export const isolateField = (request: ChatRequest, param: string): ChatRequest => {
  const { messages, native, reasoningEffort, responseFormat, toolChoice, tools, webSearch } = request
  const nativeOnly = native?.nativeOnly?.param === param ? native.nativeOnly : undefined
  return {
    ...request,
    messages: param === "messages" ? messages : [],
    tools: param === "tools" || param === "tool_choice" ? tools : [],
    toolChoice: param === "tool_choice" ? toolChoice : undefined,
    webSearch: param === "web_search" && webSearch,
    responseFormat: param === "response_format" ? responseFormat : undefined,
    reasoningEffort: param === "reasoning_effort" ? reasoningEffort : undefined,
    native: native && { ...native, nativeOnly }
  }
}

const objectHint = "The schema of the answer must be an object: make the value one of its properties."

const canAnswerObject = (format: ChatRequest["responseFormat"]): boolean =>
  format?.type !== "json_schema" || format.json_schema.schema === undefined || canBeObject(format.json_schema.schema)

/** Returns the failure for a field that no route supports. */
export const unsupportedField = (
  model: ChatModel,
  param: string,
  { native, responseFormat }: ChatRequest
): InvalidRequest => {
  const featureName = native?.nativeOnly?.param === param ? native.nativeOnly.what : undefined
  const refusal = availabilityRefusal(param, model, featureName ?? (param === "messages" ? imageInput : undefined))
  const needsObject = param === "response_format" && !canAnswerObject(responseFormat)
  return new InvalidRequest(needsObject ? { ...refusal, hint: objectHint } : refusal)
}

/** Returns the failure for supported fields that no route supports together. */
export const unsupportedCombination = ({ id }: ChatModel, param: string | null): InvalidRequest =>
  new InvalidRequest({
    message: `No provider of ${quoteModel(id)} supports all features of the request together.`,
    param
  })
