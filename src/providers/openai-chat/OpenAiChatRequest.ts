import { identity, Predicate, Schema } from "effect"
import type { CacheControl, ChatRequest, Message, Part, ResponseFormat, TextPart } from "../../domain/Chat.ts"
import { setSource } from "../../domain/JsonSource.ts"
import type { Feature, RouteOptions } from "../../domain/Model.ts"
import {
  cacheBreakpoints,
  cacheControlField,
  type FindBreakpoint,
  fitCacheKey,
  isOneHourCache,
  noBreakpoints,
  partBreakpoints,
  type WithCacheControl
} from "../chat/CacheMarks.ts"
import type { ChatCall } from "../chat/ChatClient.ts"
import { signaturePlaceholder } from "../chat/Messages.ts"
import { makeRules, openAiRules, type WireRules, wireRuleOptions } from "../chat/WireRules.ts"
import { withoutUndefined } from "../client/JsonFields.ts"
import { makeOptions, oneOf, optional, searchFee, statedCostOption } from "../client/RouteOptions.ts"

export const Options = Schema.Struct({
  max_tokens_field: optional(oneOf("max_tokens", "max_completion_tokens")),
  reasoning_history: optional(Schema.Boolean),
  thought_signatures: optional(Schema.Boolean),
  inline_images: optional(Schema.Boolean),
  stop: optional(oneOf("cut")),
  /** The provider counts reasoning only in `total_tokens`. */
  hidden_reasoning: optional(Schema.Boolean),
  system: optional(oneOf("anywhere", "joined", "first")),
  content: optional(oneOf("parts", "text")),
  blank_user: optional(Schema.Boolean),
  /** The format of cache breakpoints. `none` overrides the provider's option. */
  cache: optional(oneOf("none", "manual", "auto", "breakpoints")),
  cache_key: optional(oneOf("none", "prompt_cache_key", "x-grok-conv-id")),
  /** Any value except an object overrides the provider's option. */
  web_search: optional(Schema.Unknown),
  search_fee: searchFee,
  ...wireRuleOptions,
  ...statedCostOption
})
export type Options = typeof Options.Type

export const options = makeOptions(Options, identity)

const commonFeatures: ReadonlyArray<Feature> = ["tools", "vision", "response_format", "sampling", "reasoning"]

/** Providers differ in how they search. Without the option, search is not supported. */
export const features = ({ web_search }: RouteOptions): ReadonlySet<Feature> =>
  new Set(Predicate.isRecord(web_search) ? [...commonFeatures, "web_search"] : commonFeatures)

/** Every provider of this wire format accepts requests that follow these rules. */
export const rules: WireRules = {
  ...openAiRules,
  callId: { characters: "!-~", minLength: 1, maxLength: 40 },
  system: "joined",
  content: "text"
}

/** A provider that accepts cache breakpoints accepts the parts that contain them. */
export const rulesOf = makeRules(rules, ({ blank_user, cache = "none", content, system = "joined" }: Options) => ({
  system,
  acceptsBlankUser: blank_user ?? rules.acceptsBlankUser,
  content: content ?? (cache === "none" ? rules.content : "breakpoints")
}))

export interface Quirks {
  readonly maxTokensField: "max_tokens" | "max_completion_tokens"
  readonly streamOptions: boolean
  /** Undefined until the provider has refused it. */
  readonly cacheRetention?: boolean
}

const breakpoint = { prompt_cache_breakpoint: { mode: "explicit" } } as const

interface BreakpointEncoding {
  readonly breakpointOf: FindBreakpoint
  readonly forTool: (control: CacheControl | undefined) => WithCacheControl | undefined
  readonly forPart: (control: CacheControl | undefined) => WithCacheControl | typeof breakpoint | undefined
}

const encodeBreakpoints = ({ cache = "none" }: Options, request: ChatRequest): BreakpointEncoding => {
  const breakpointOf = cache === "none" ? noBreakpoints : cacheBreakpoints(request, cache === "auto")
  const isForAnHour = isOneHourCache(request)
  // Providers of this format don't report one-hour cache writes separately, so all breakpoints of a request get one
  // lifetime: an hour only if all of them ask for it.
  const encodeControl = (control: CacheControl | undefined) =>
    control && cacheControlField(isForAnHour ? control : { type: control.type })
  return cache === "breakpoints"
    ? { breakpointOf, forTool: () => undefined, forPart: (control) => control && breakpoint }
    : { breakpointOf, forTool: encodeControl, forPart: encodeControl }
}

type PartBreakpoints = ReadonlyArray<ReturnType<BreakpointEncoding["forPart"]>>

const encodeText = ({ text }: TextPart, breakpointFields: PartBreakpoints[number]) =>
  ({ type: "text", text, ...breakpointFields }) as const

const encodeTexts = (content: string | ReadonlyArray<TextPart>, breakpoints: PartBreakpoints) => {
  if (typeof content === "string" && breakpoints[0] === undefined) return content
  const parts = typeof content === "string" ? [{ type: "text" as const, text: content }] : content
  return parts.map((part, at) => encodeText(part, breakpoints[at]))
}

const encodePart = (part: Part, breakpointFields: PartBreakpoints[number]) => {
  if (part.type === "text") return encodeText(part, breakpointFields)
  const { detail, url } = part.image_url
  const isKnown = detail === "auto" || detail === "low" || detail === "high"
  return { type: "image_url" as const, image_url: isKnown ? ({ url, detail } as const) : { url }, ...breakpointFields }
}

interface HistoryRules {
  readonly sendsReasoning: boolean
  /** Whether the message's first call gets the placeholder for a missing signature. */
  readonly needsSignature: boolean
}

const encodeAssistant = (
  message: Extract<Message, { role: "assistant" }>,
  { needsSignature, sendsReasoning }: HistoryRules,
  breakpoints: PartBreakpoints
) => {
  const calls = (message.tool_calls ?? []).map(({ id, function: { name, arguments: text } }, index) => ({
    id,
    type: "function" as const,
    function: { name, arguments: text },
    ...(needsSignature && index === 0
      ? { extra_content: { google: { thought_signature: signaturePlaceholder } } }
      : undefined)
  }))
  return {
    role: "assistant" as const,
    // Providers accept null only beside calls.
    content: message.content === null && calls.length > 0 ? null : encodeTexts(message.content ?? "", breakpoints),
    ...withoutUndefined({
      name: message.name,
      // Providers that require earlier reasoning refuse calls without it.
      reasoning_content: sendsReasoning
        ? (message.reasoning_content ?? (calls.length > 0 ? "" : undefined))
        : undefined,
      tool_calls: calls.length === 0 ? undefined : calls
    })
  }
}

const encodeMessage = (message: Message, rules: HistoryRules, breakpoints: PartBreakpoints) => {
  switch (message.role) {
    case "system":
      return {
        role: message.role,
        content: encodeTexts(message.content, breakpoints),
        ...withoutUndefined({ name: message.name })
      }
    case "user": {
      const content =
        typeof message.content === "string"
          ? encodeTexts(message.content, breakpoints)
          : message.content.map((part, at) => encodePart(part, breakpoints[at]))
      return { role: message.role, content, ...withoutUndefined({ name: message.name }) }
    }
    case "tool": {
      const { role, tool_call_id } = message
      return { role, content: encodeTexts(message.content, breakpoints), tool_call_id }
    }
    default:
      return encodeAssistant(message, rules, breakpoints)
  }
}

const encodeMessages = (options: Options, messages: ReadonlyArray<Message>, breakpoints: BreakpointEncoding) => {
  const lastUserIndex = messages.findLastIndex(({ role }) => role === "user")
  const { reasoning_history: sendsReasoning = false, thought_signatures: needsSignatures = false } = options
  return messages.map((message, at) =>
    encodeMessage(
      message,
      { sendsReasoning, needsSignature: needsSignatures && at > lastUserIndex },
      partBreakpoints(message, breakpoints.breakpointOf).map(breakpoints.forPart)
    )
  )
}

const encodeFormat = (format: ResponseFormat) => {
  if (format.type === "json_object") return { type: "json_object" } as const
  const { description, name, schema, strict } = format.json_schema
  return { type: "json_schema" as const, json_schema: { name, ...withoutUndefined({ description, schema, strict }) } }
}

const encodeTools = ({ tools }: ChatRequest, { breakpointOf, forTool }: BreakpointEncoding) =>
  tools.map((tool) => {
    const { description, name, parameters, strict } = tool.function
    const definition = { name, ...withoutUndefined({ description, parameters, strict }) }
    return { type: "function" as const, function: definition, ...forTool(breakpointOf(tool)) }
  })

/** Some providers take the cache key in a header. */
export const cacheKeyHeader = ({ cache_key }: Options, { promptCacheKey }: ChatRequest) =>
  cache_key === "x-grok-conv-id" && promptCacheKey !== undefined ? { [cache_key]: fitCacheKey(promptCacheKey) } : {}

/** OpenAI accepts at most four stop sequences. */
const maxStops = 4

export const localStops = ({ stop }: ChatRequest, options: Options): ReadonlyArray<string> =>
  options.stop === "cut" || stop.length > maxStops ? stop : []

/** Keeps all digits of a large seed. */
const keepSeed = <A extends object>(body: A, { seed }: ChatRequest): A =>
  typeof seed === "bigint" ? setSource(body, { numbers: new Map([["seed", String(seed)]]), names: undefined }) : body

export const encodeRequest = ({ isStream, options, quirks, request, route }: ChatCall<Options, Quirks>) => {
  const hasTools = request.tools.length > 0
  const breakpoints = encodeBreakpoints(options, request)
  const body = {
    model: route.model,
    messages: encodeMessages(options, request.messages, breakpoints),
    [quirks.maxTokensField]: request.maxTokens,
    ...withoutUndefined({
      stream: isStream ? true : undefined,
      stream_options: isStream && quirks.streamOptions ? { include_usage: true } : undefined,
      stop: request.stop.length === 0 || options.stop === "cut" ? undefined : request.stop.slice(0, maxStops),
      tools: hasTools ? encodeTools(request, breakpoints) : undefined,
      tool_choice: hasTools ? request.toolChoice : undefined,
      parallel_tool_calls: hasTools ? request.parallelToolCalls : undefined,
      temperature: request.temperature,
      top_p: request.topP,
      seed: request.seed === undefined ? undefined : Number(request.seed),
      frequency_penalty: request.frequencyPenalty,
      presence_penalty: request.presencePenalty,
      reasoning_effort: request.reasoningEffort,
      response_format: request.responseFormat && encodeFormat(request.responseFormat),
      ...(options.cache_key === "prompt_cache_key" && {
        prompt_cache_key: request.promptCacheKey && fitCacheKey(request.promptCacheKey),
        prompt_cache_retention: quirks.cacheRetention === false ? undefined : request.promptCacheRetention
      })
    })
  }
  const search = options.web_search
  if (!request.webSearch || !Predicate.isRecord(search)) return keepSeed(body, request)
  const tools = Array.isArray(search.tools) ? [...(body.tools ?? []), ...search.tools] : body.tools
  return keepSeed({ ...body, ...search, ...withoutUndefined({ tools }) }, request)
}
