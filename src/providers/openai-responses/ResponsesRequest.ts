import { identity, Predicate, Schema } from "effect"
import type { ChatRequest, Message, Part, ResponseFormat, TextPart, Tool, ToolChoice } from "../../domain/Chat.ts"
import type { Feature } from "../../domain/Model.ts"
import {
  cacheBreakpoints,
  type FindBreakpoint,
  fitCacheKey,
  noBreakpoints,
  partBreakpoints
} from "../chat/CacheMarks.ts"
import type { ChatCall } from "../chat/ChatClient.ts"
import { joinTexts } from "../chat/Messages.ts"
import { emptyParameters } from "../chat/ToolSchemas.ts"
import { makeRules, openAiRules, wireRuleOptions } from "../chat/WireRules.ts"
import { withoutUndefined } from "../client/JsonFields.ts"
import { makeOptions, oneOf, optional, statedCostOption } from "../client/RouteOptions.ts"

export const Options = Schema.Struct({
  reasoning_summary: optional(oneOf("auto", "concise", "detailed", "none")),
  web_search: optional(Schema.Struct({ type: Schema.String }, { key: Schema.String, value: Schema.Unknown })),
  inline_images: optional(Schema.Boolean),
  native: optional(Schema.Boolean),
  cache: optional(oneOf("none", "breakpoints")),
  ...wireRuleOptions,
  ...statedCostOption
})
export type Options = typeof Options.Type

export const features = (): ReadonlySet<Feature> =>
  new Set(["tools", "vision", "response_format", "web_search", "reasoning"])

export const options = makeOptions(Options, identity)

export const rulesOf = makeRules<Options>(openAiRules)

/** What the provider supports for this account and model. A refusal sets a field to false. */
export interface Quirks {
  readonly summary: boolean
  readonly stream: boolean
  /** False if the provider cannot decrypt the reasoning of another account. */
  readonly encrypted: boolean
  /** Undefined until the provider has refused it. */
  readonly cacheKey?: boolean
  readonly cacheRetention?: boolean
  readonly callLimit?: boolean
  /** False if the model cannot switch reasoning off. */
  readonly noEffort?: boolean
}

/** The minimum of `max_output_tokens` that the provider accepts. */
export const minOutput = 16

/** The provider adds another breakpoint at the end itself. */
const breakpoint = { prompt_cache_breakpoint: { mode: "explicit" } } as const

type PartBreakpoints = ReturnType<typeof partBreakpoints>

const encodeText = ({ text }: TextPart, control: PartBreakpoints[number]) =>
  ({ type: "input_text", text, ...(control && breakpoint) }) as const

const encodePart = (part: Part, control: PartBreakpoints[number]) => {
  if (part.type === "text") return encodeText(part, control)
  const { detail: requestedDetail, url: image_url } = part.image_url
  const detail = requestedDetail === "low" || requestedDetail === "high" ? requestedDetail : "auto"
  return { type: "input_image", image_url, detail, ...(control && breakpoint) } as const
}

const encodeString = (text: string, control: PartBreakpoints[number]) =>
  control === undefined ? text : [encodeText({ type: "text", text }, control)]

/** Items have no id, because the provider would require the reasoning item before the call. */
const encodeAssistant = (message: Extract<Message, { role: "assistant" }>) => {
  const text = joinTexts(message.content, message.role)
  const calls = (message.tool_calls ?? []).map(({ id, function: { arguments: text, name } }) => {
    return { type: "function_call", call_id: id, name, arguments: text } as const
  })
  return text === "" && calls.length > 0 ? calls : [{ role: "assistant", content: text } as const, ...calls]
}

/** System messages stay in the input, where the provider requires the word JSON. It ignores `instructions` for that. */
const encodeItems = (message: Message, breakpointOf: FindBreakpoint) => {
  const controls = partBreakpoints(message, breakpointOf)
  switch (message.role) {
    case "system":
    case "user": {
      const { content, role } = message
      const parts =
        typeof content === "string"
          ? encodeString(content, controls[0])
          : content.map((part: Part, at) => encodePart(part, controls[at]))
      return [{ role: role === "system" ? ("developer" as const) : role, content: parts }]
    }
    case "tool": {
      const { content, role, tool_call_id: call_id } = message
      const output = encodeString(joinTexts(content, role), controls.findLast(Predicate.isNotUndefined))
      return [{ type: "function_call_output" as const, call_id, output }]
    }
    default:
      return encodeAssistant(message)
  }
}

/** In this wire format, `strict` defaults to true, unlike in chat completions. */
const encodeFunction = ({ function: { description, name, parameters, strict } }: Tool) => ({
  type: "function" as const,
  name,
  ...withoutUndefined({ description }),
  parameters: parameters ?? emptyParameters,
  strict: strict ?? false
})

const encodeChoice = (choice: ToolChoice) =>
  typeof choice === "string" ? choice : { type: "function" as const, name: choice.function.name }

const toolFields = (request: ChatRequest, search: Options["web_search"]) => {
  const { parallelToolCalls, toolChoice, tools } = request
  const functions = tools.map(encodeFunction)
  // The choice `none` would forbid the search as well.
  if (search !== undefined && (functions.length === 0 || toolChoice === "none")) return { tools: [search] }
  if (functions.length === 0) return undefined
  return {
    tools: search === undefined ? functions : [...functions, search],
    ...withoutUndefined({ tool_choice: toolChoice && encodeChoice(toolChoice), parallel_tool_calls: parallelToolCalls })
  }
}

const encodeFormat = (format: ResponseFormat) => {
  if (format.type === "json_object") return { type: "json_object" } as const
  const { description, name, schema = {}, strict } = format.json_schema
  return { type: "json_schema" as const, name, ...withoutUndefined({ description }), schema, strict: strict ?? false }
}

/** Requests a summary, because reasoning has no other text. This wire format has no sampling parameters. */
export const encodeRequest = ({ isStream, options, quirks, request, route }: ChatCall<Options, Quirks>) => {
  const { reasoning_summary = "auto", web_search = { type: "web_search" } } = options
  const { promptCacheKey, promptCacheRetention, reasoningEffort: effort, responseFormat } = request
  const breakpointOf = options.cache === "breakpoints" ? cacheBreakpoints(request, false) : noBreakpoints
  const summary = quirks.summary && reasoning_summary !== "none" ? reasoning_summary : undefined
  return {
    model: route.model,
    input: request.messages.flatMap(
      (message): ReadonlyArray<ReturnType<typeof encodeItems>[number]> => encodeItems(message, breakpointOf)
    ),
    store: false,
    max_output_tokens: Math.max(minOutput, request.maxTokens),
    ...toolFields(request, request.webSearch ? web_search : undefined),
    ...withoutUndefined({
      max_tool_calls: request.webSearch && quirks.callLimit !== false ? request.maxWebSearches : undefined,
      stream: isStream && quirks.stream ? true : undefined,
      reasoning: effort === undefined && summary === undefined ? undefined : withoutUndefined({ effort, summary }),
      text: responseFormat && { format: encodeFormat(responseFormat) },
      prompt_cache_key: quirks.cacheKey === false ? undefined : promptCacheKey && fitCacheKey(promptCacheKey),
      prompt_cache_retention: quirks.cacheRetention === false ? undefined : promptCacheRetention
    })
  }
}
