import { identity, Schema } from "effect"
import type { ChatRequest, Message, Part, TextPart } from "../../domain/Chat.ts"
import type { Feature } from "../../domain/Model.ts"
import {
  addToLastBlock,
  cacheBreakpoints,
  cacheControlField,
  type FindBreakpoint,
  noBreakpoints,
  type WithCacheControl
} from "../chat/CacheMarks.ts"
import type { ChatCall } from "../chat/ChatClient.ts"
import { parseArguments } from "../chat/Messages.ts"
import { isBlank } from "../chat/TurnMerging.ts"
import { makeRules, type WireRules, wireRuleOptions } from "../chat/WireRules.ts"
import { withoutUndefined } from "../client/JsonFields.ts"
import { makeOptions, oneOf, optional, withDefault } from "../client/RouteOptions.ts"

export const Options = Schema.Struct({
  auth: withDefault(oneOf("x-api-key", "bearer"), "x-api-key"),
  version: withDefault(Schema.String.pipe(Schema.pattern(/^\d{4}-\d{2}-\d{2}$/)), "2023-06-01"),
  thinking: withDefault(oneOf("adaptive", "budget", "always"), "adaptive"),
  thinking_off: optional(oneOf("disabled", "between_tools")),
  forced_tools: withDefault(Schema.Boolean, true),
  inline_images: optional(Schema.Boolean),
  native: optional(Schema.Boolean),
  /** The vendor bills refusals of these categories although they have no output. `none`: refusals without a category. */
  billed_refusals: optional(Schema.Array(Schema.NonEmptyString)),
  cache: withDefault(oneOf("manual", "auto"), "manual"),
  ...wireRuleOptions
})
export type Options = typeof Options.Type

export const features = (): ReadonlySet<Feature> => new Set(["tools", "vision", "web_search", "reasoning"])

export const options = makeOptions(Options, identity)

export const rules: WireRules = {
  toolName: { characters: "a-zA-Z0-9_-", minLength: 1, maxLength: 128 },
  searchName: "web_search",
  callId: { characters: "a-zA-Z0-9_-", minLength: 1, maxLength: 64 },
  callArguments: "object",
  toolRoot: "object",
  answerRoot: "any",
  requiresItems: false,
  strict: "anthropic",
  system: "separate",
  content: "parts",
  acceptsBlankUser: false,
  requiresUserFirst: true,
  prefill: "trimmed"
}

export const rulesOf = makeRules<Options>(rules)

export interface Quirks {
  readonly thinking: boolean
}

type MediaType = "image/jpeg" | "image/png" | "image/gif" | "image/webp"
type TextBlock = { type: "text"; text: string } & Partial<WithCacheControl>
type ImageBlock = Partial<WithCacheControl> & {
  type: "image"
  source: { type: "url"; url: string } | { type: "base64"; media_type: MediaType; data: string }
}
type Block =
  | TextBlock
  | ImageBlock
  | (Partial<WithCacheControl> &
      (
        | { type: "tool_use"; id: string; name: string; input: Readonly<Record<string, unknown>> }
        | { type: "tool_result"; tool_use_id: string; content?: Array<TextBlock> }
      ))

interface Turn {
  readonly role: "user" | "assistant"
  readonly content: Array<Block>
}

const encodeTexts = (
  content: string | ReadonlyArray<TextPart> | null,
  breakpointOf: FindBreakpoint = noBreakpoints
): Array<TextBlock> => {
  const parts: ReadonlyArray<TextPart> =
    typeof content === "string" ? [{ type: "text", text: content }] : (content ?? [])
  return parts
    .filter(({ text }) => !isBlank(text))
    .map((part) => ({ type: "text", text: part.text, ...cacheControlField(breakpointOf(part)) }))
}

const signatures: ReadonlyArray<readonly [string, MediaType]> = [
  ["/9j/", "image/jpeg"],
  ["iVBORw0KGgo", "image/png"],
  ["R0lGOD", "image/gif"],
  ["UklGR", "image/webp"]
]

/** Detects the media type from the bytes, because the provider refuses a wrong one. */
const encodeImage = (url: string): ImageBlock => {
  if (!/^data:/i.test(url.slice(0, 5))) return { type: "image", source: { type: "url", url } }
  const encoded = url.slice(url.indexOf(",") + 1)
  const data = /[^A-Za-z0-9+/=]/.test(encoded) ? Buffer.from(encoded, "base64").toString("base64") : encoded
  const [, media_type] = signatures.find(([start]) => data.startsWith(start)) ?? ["", "image/png"]
  return { type: "image", source: { type: "base64", media_type, data } }
}

const encodePart = (part: Part, breakpointOf: FindBreakpoint): Array<TextBlock | ImageBlock> =>
  part.type === "text"
    ? encodeTexts([part], breakpointOf)
    : [{ ...encodeImage(part.image_url.url), ...cacheControlField(breakpointOf(part)) }]

const encodeBlocks = (message: Message, breakpointOf: FindBreakpoint): Array<Block> => {
  switch (message.role) {
    case "system":
      return []
    case "user":
      return typeof message.content === "string"
        ? encodeTexts(message.content)
        : message.content.flatMap((part) => encodePart(part, breakpointOf))
    case "tool": {
      const content = encodeTexts(message.content)
      const partControls =
        typeof message.content === "string" ? undefined : message.content.flatMap((part) => breakpointOf(part) ?? [])
      const fields = { ...(content.length === 0 ? undefined : { content }), ...cacheControlField(partControls?.at(-1)) }
      return [{ type: "tool_result", tool_use_id: message.tool_call_id, ...fields }]
    }
    default: {
      const calls = (message.tool_calls ?? []).map(({ id, function: { arguments: text, name } }): Block => {
        return { type: "tool_use", id, name, input: parseArguments(text) }
      })
      return [...encodeTexts(message.content, breakpointOf), ...calls]
    }
  }
}

const isResult = ({ type }: Block): boolean => type === "tool_result"

/** Puts tool results first, because they must start the turn after their calls. */
const orderResults = (content: Array<Block>): Array<Block> =>
  content.some(isResult) ? [...content.filter(isResult), ...content.filter((block) => !isResult(block))] : content

const encodeTurns = (messages: ReadonlyArray<Message>, breakpointOf: FindBreakpoint): Array<Turn> => {
  const turns: Array<Turn> = []
  for (const message of messages) {
    const content = addToLastBlock(encodeBlocks(message, breakpointOf), breakpointOf(message))
    if (content.length === 0) continue
    const role = message.role === "assistant" ? "assistant" : "user"
    const last = turns.at(-1)
    if (last?.role === role) last.content.push(...content)
    else turns.push({ role, content })
  }
  return turns.map(({ content, role }) => ({ role, content: role === "user" ? orderResults(content) : content }))
}

/** At least one turn is required. Without any, the system text becomes the user's turn. */
const conversationFields = (system: Array<TextBlock>, turns: Array<Turn>) => {
  const [first, ...others] = system
  if (turns.length === 0) return { messages: [{ role: "user" as const, content: system }] }
  if (first === undefined) return { messages: turns }
  return { system: others.length === 0 && first.cache_control === undefined ? first.text : system, messages: turns }
}

const searchTool = { type: "web_search_20250305", name: "web_search" } as const

const encodeChoice = ({ parallelToolCalls, toolChoice }: ChatRequest) => {
  const parallelField = parallelToolCalls === false ? ({ disable_parallel_tool_use: true } as const) : {}
  if (toolChoice === "none") return { type: "none" as const }
  if (toolChoice === "required") return { type: "any" as const, ...parallelField }
  if (typeof toolChoice === "object") return { type: "tool" as const, name: toolChoice.function.name, ...parallelField }
  return toolChoice === "auto" || parallelToolCalls === false ? { type: "auto" as const, ...parallelField } : undefined
}

type ObjectRoot = { readonly type: "object" } & Readonly<Record<string, unknown>>

const isObjectRoot = (schema: Readonly<Record<string, unknown>>): schema is ObjectRoot => schema.type === "object"

const encodeSchema = (schema: Readonly<Record<string, unknown>> = {}): ObjectRoot =>
  isObjectRoot(schema) ? schema : { ...schema, type: "object" }

/** Earlier calls need a definition of their tools, even if no tool may be called. */
const toolFields = (request: ChatRequest, turns: ReadonlyArray<Turn>, breakpointOf: FindBreakpoint) => {
  const search = request.webSearch ? [{ ...searchTool, ...withoutUndefined({ max_uses: request.maxWebSearches }) }] : []
  // The choice `none` would forbid the search as well.
  if (request.webSearch && (request.tools.length === 0 || request.toolChoice === "none")) return { tools: search }
  if (request.tools.length > 0) {
    const tools = request.tools.map((tool) => {
      const { description, name, parameters, strict } = tool.function
      const fields = withoutUndefined({ description, strict: strict === true ? true : undefined })
      return { name, ...fields, input_schema: encodeSchema(parameters), ...cacheControlField(breakpointOf(tool)) }
    })
    return { tools: [...tools, ...search], ...withoutUndefined({ tool_choice: encodeChoice(request) }) }
  }
  const names = turns.flatMap(({ content }) => content.flatMap((block) => ("name" in block ? [block.name] : [])))
  if (names.length === 0) return {}
  const tools = [...new Set(names)].map((name) => ({ name, input_schema: encodeSchema() }))
  return { tools, tool_choice: { type: "none" as const } }
}

/** Returns the stop sequences of only white space, which this wire format refuses. */
export const localStops = ({ stop }: ChatRequest): ReadonlyArray<string> => stop.filter(isBlank)

export const minBudget = 1_024
export const minAnswer = 512

/** Thinking counts against `max_tokens`, so it gets half of them, or none if too few would remain for an answer. */
const budgetOf = (maxTokens: number) => {
  if (maxTokens < minBudget + minAnswer) return undefined
  const tokens = Math.min(Math.max(Math.floor(maxTokens / 2), minBudget), maxTokens - minAnswer)
  return { type: "enabled", budget_tokens: tokens } as const
}

export const forcesTool = ({ toolChoice, tools }: ChatRequest): boolean =>
  tools.length > 0 && toolChoice !== undefined && toolChoice !== "auto" && toolChoice !== "none"

/**
 * Whether the request continues the assistant's turn. With a thinking budget, that turn must start with its signed
 * thinking, which translated requests don't contain.
 */
const continuesTurn = ({ messages }: ChatRequest): boolean => {
  const last = messages.findLast(({ role }) => role === "assistant")
  if (last === undefined) return false
  return last === messages.at(-1) || ("tool_calls" in last && (last.tool_calls ?? []).length > 0)
}

const adaptive = { type: "adaptive", display: "summarized" } as const

export const thinkingOf = (options: Options, request: ChatRequest) => {
  const isRequested = request.reasoningEffort !== undefined
  if (options.thinking === "always") return isRequested ? adaptive : undefined
  // Only some models can think before a forced tool call. All accept one without thinking.
  const isEnabled = isRequested && !forcesTool(request)
  if (isEnabled && options.thinking === "adaptive") return adaptive
  const budget = isEnabled && !continuesTurn(request) ? budgetOf(request.maxTokens) : undefined
  return budget ?? (options.thinking_off && { type: options.thinking_off })
}

/** Whether the visible text is the complete output, because the model neither thinks nor searches. */
export const isCountable = ({ options, quirks, request }: ChatCall<Options, Quirks>): boolean => {
  const type = quirks.thinking ? thinkingOf(options, request)?.type : undefined
  return !request.webSearch && options.thinking !== "always" && type !== "enabled" && type !== "adaptive"
}

export const encodeRequest = ({ isStream, options, quirks, request, route }: ChatCall<Options, Quirks>) => {
  const breakpointOf = cacheBreakpoints(request, options.cache === "auto")
  const turns = encodeTurns(request.messages, breakpointOf)
  const system = request.messages.flatMap((message) =>
    message.role === "system" ? addToLastBlock(encodeTexts(message.content, breakpointOf), breakpointOf(message)) : []
  )
  const stops = request.stop.filter((stop) => !isBlank(stop))
  const usesLowEffort = options.thinking === "always" && request.reasoningEffort === undefined
  return {
    model: route.model,
    max_tokens: request.maxTokens,
    ...conversationFields(system, turns),
    ...toolFields(request, turns, breakpointOf),
    ...withoutUndefined({
      stream: isStream ? true : undefined,
      stop_sequences: stops.length === 0 ? undefined : stops,
      output_config: usesLowEffort ? { effort: "low" as const } : undefined,
      thinking: quirks.thinking ? thinkingOf(options, request) : undefined
    })
  }
}
