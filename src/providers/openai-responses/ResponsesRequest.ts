import { identity, Predicate, Schema } from "effect"
import type { ChatRequest, Message, Part, ResponseFormat, TextPart, Tool, ToolChoice } from "../../domain/Chat.ts"
import type { Feature } from "../../domain/Model.ts"
import { cacheMarks, type FindMark, fitCacheKey, noMarks, partMarks } from "../chat/CacheMarks.ts"
import type { ChatCall } from "../chat/ChatClient.ts"
import { joinTexts } from "../chat/Messages.ts"
import { noParameters } from "../chat/ToolSchemas.ts"
import { fitOptions, makeRules, openAiRules } from "../chat/WireRules.ts"
import { withoutUndefined } from "../client/Json.ts"
import { makeOptions, oneOf, optional, statedCostOption } from "../client/RouteOptions.ts"

export const Options = Schema.Struct({
  reasoning_summary: optional(oneOf("auto", "concise", "detailed", "none")),
  web_search: optional(Schema.Struct({ type: Schema.String }, { key: Schema.String, value: Schema.Unknown })),
  inline_images: optional(Schema.Boolean),
  native: optional(Schema.Boolean),
  cache: optional(oneOf("none", "breakpoints")),
  ...fitOptions,
  ...statedCostOption
})
export type Options = typeof Options.Type

export const features = (): ReadonlySet<Feature> =>
  new Set(["tools", "vision", "response_format", "web_search", "reasoning"])

export const options = makeOptions(Options, identity)

export const rulesOf = makeRules<Options>(openAiRules)

/** What this account may request; the gateway adds all of it itself. */
export interface Quirks {
  readonly summary: boolean
  readonly stream: boolean
  /** False where the host cannot read what another account has encrypted. */
  readonly encrypted: boolean
  /** Undefined: not refused so far. */
  readonly cacheKey?: boolean
  readonly cacheRetention?: boolean
  readonly callLimit?: boolean
  /** False where the model cannot do without reasoning. */
  readonly noEffort?: boolean
}

/** The host refuses a smaller cap. */
export const minOutput = 16

/** The host sets another one at the end by itself. */
const breakpoint = { prompt_cache_breakpoint: { mode: "explicit" } } as const

type PartMarks = ReturnType<typeof partMarks>

const encodeText = ({ text }: TextPart, mark: PartMarks[number]) =>
  ({ type: "input_text", text, ...(mark && breakpoint) }) as const

const encodePart = (part: Part, mark: PartMarks[number]) => {
  if (part.type === "text") return encodeText(part, mark)
  const { detail: given, url: image_url } = part.image_url
  const detail = given === "low" || given === "high" ? given : "auto"
  return { type: "input_image", image_url, detail, ...(mark && breakpoint) } as const
}

const encodeString = (text: string, mark: PartMarks[number]) =>
  mark === undefined ? text : [encodeText({ type: "text", text }, mark)]

/** With an item id the host demands the reasoning item before the call. */
const encodeAssistant = (message: Extract<Message, { role: "assistant" }>) => {
  const text = joinTexts(message.content, message.role)
  const calls = (message.tool_calls ?? []).map(({ id, function: called }) => {
    return { type: "function_call", call_id: id, name: called.name, arguments: called.arguments } as const
  })
  return text === "" && calls.length > 0 ? calls : [{ role: "assistant", content: text } as const, ...calls]
}

/** The host looks for the word JSON in the input, never in `instructions`. */
const encodeItems = (message: Message, markOf: FindMark) => {
  const marks = partMarks(message, markOf)
  switch (message.role) {
    case "system":
    case "user": {
      const { content, role } = message
      const parts =
        typeof content === "string"
          ? encodeString(content, marks[0])
          : content.map((part: Part, at) => encodePart(part, marks[at]))
      return [{ role: role === "system" ? ("developer" as const) : role, content: parts }]
    }
    case "tool": {
      const { content, role, tool_call_id: call_id } = message
      const output = encodeString(joinTexts(content, role), marks.findLast(Predicate.isNotUndefined))
      return [{ type: "function_call_output" as const, call_id, output }]
    }
    default:
      return encodeAssistant(message)
  }
}

/** This host's default for `strict` is the opposite of the convention's. */
const encodeFunction = ({ function: { description, name, parameters, strict } }: Tool) => ({
  type: "function" as const,
  name,
  ...withoutUndefined({ description }),
  parameters: parameters ?? noParameters,
  strict: strict ?? false
})

const encodeChoice = (choice: ToolChoice) =>
  typeof choice === "string" ? choice : { type: "function" as const, name: choice.function.name }

const toolFields = (request: ChatRequest, search: Options["web_search"]) => {
  const { parallelToolCalls, toolChoice, tools } = request
  const functions = tools.map(encodeFunction)
  // `none` would forbid the search as well.
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

/** Reasoning has no text without a summary; this wire has no sampling. */
export const encodeRequest = ({ isStream, options, quirks, request, route }: ChatCall<Options, Quirks>) => {
  const { reasoning_summary = "auto", web_search = { type: "web_search" } } = options
  const { promptCacheKey, promptCacheRetention, reasoningEffort: effort, responseFormat } = request
  const markOf = options.cache === "breakpoints" ? cacheMarks(request, false) : noMarks
  const summary = quirks.summary && reasoning_summary !== "none" ? reasoning_summary : undefined
  return {
    model: route.model,
    input: request.messages.flatMap(
      (message): ReadonlyArray<ReturnType<typeof encodeItems>[number]> => encodeItems(message, markOf)
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
