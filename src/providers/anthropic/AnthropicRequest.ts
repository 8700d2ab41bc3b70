import { identity, Schema } from "effect"
import type { ChatRequest, Message, Part, TextPart } from "../../domain/Chat.ts"
import type { Feature } from "../../domain/Model.ts"
import { cacheMarks, type FindMark, type Marked, markField, markLast, noMarks } from "../chat/CacheMarks.ts"
import type { ChatCall } from "../chat/ChatClient.ts"
import { parseArguments } from "../chat/Messages.ts"
import { isBlank } from "../chat/Turns.ts"
import { fitOptions, makeRules, type WireRules } from "../chat/WireRules.ts"
import { withoutUndefined } from "../client/Json.ts"
import { makeOptions, oneOf, optional, withDefault } from "../client/RouteOptions.ts"

export const Options = Schema.Struct({
  auth: withDefault(oneOf("x-api-key", "bearer"), "x-api-key"),
  version: withDefault(Schema.String.pipe(Schema.pattern(/^\d{4}-\d{2}-\d{2}$/)), "2023-06-01"),
  thinking: withDefault(oneOf("adaptive", "budget", "always"), "adaptive"),
  thinking_off: optional(oneOf("disabled", "between_tools")),
  forced_tools: withDefault(Schema.Boolean, true),
  inline_images: optional(Schema.Boolean),
  native: optional(Schema.Boolean),
  /** The categories of refusals before any output that the vendor charges for; `none` is that of one without a category. */
  billed_refusals: optional(Schema.Array(Schema.NonEmptyString)),
  cache: withDefault(oneOf("manual", "auto"), "manual"),
  ...fitOptions
})
export type Options = typeof Options.Type

export const features = (): ReadonlySet<Feature> => new Set(["tools", "vision", "web_search", "reasoning"])

export const options = makeOptions(Options, identity)

export const rules: WireRules = {
  toolName: { characters: "a-zA-Z0-9_-", shortest: 1, longest: 128 },
  searchName: "web_search",
  callId: { characters: "a-zA-Z0-9_-", shortest: 1, longest: 64 },
  callArguments: "object",
  toolRoot: "object",
  answerRoot: "any",
  needsItems: false,
  strict: "anthropic",
  system: "apart",
  content: "parts",
  blankUser: false,
  opensWithUser: true,
  prefill: "trimmed"
}

export const rulesOf = makeRules<Options>(rules)

export interface Quirks {
  readonly thinking: boolean
}

type MediaType = "image/jpeg" | "image/png" | "image/gif" | "image/webp"
type TextBlock = { type: "text"; text: string } & Partial<Marked>
type ImageBlock = Partial<Marked> & {
  type: "image"
  source: { type: "url"; url: string } | { type: "base64"; media_type: MediaType; data: string }
}
type Block =
  | TextBlock
  | ImageBlock
  | (Partial<Marked> &
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
  markOf: FindMark = noMarks
): Array<TextBlock> => {
  const parts: ReadonlyArray<TextPart> =
    typeof content === "string" ? [{ type: "text", text: content }] : (content ?? [])
  return parts
    .filter(({ text }) => !isBlank(text))
    .map((part) => ({ type: "text", text: part.text, ...markField(markOf(part)) }))
}

const signatures: ReadonlyArray<readonly [string, MediaType]> = [
  ["/9j/", "image/jpeg"],
  ["iVBORw0KGgo", "image/png"],
  ["R0lGOD", "image/gif"],
  ["UklGR", "image/webp"]
]

/** The host refuses a type that the bytes contradict. */
const encodeImage = (url: string): ImageBlock => {
  if (!/^data:/i.test(url.slice(0, 5))) return { type: "image", source: { type: "url", url } }
  const given = url.slice(url.indexOf(",") + 1)
  const data = /[^A-Za-z0-9+/=]/.test(given) ? Buffer.from(given, "base64").toString("base64") : given
  const [, media_type] = signatures.find(([start]) => data.startsWith(start)) ?? ["", "image/png"]
  return { type: "image", source: { type: "base64", media_type, data } }
}

const encodePart = (part: Part, markOf: FindMark): Array<TextBlock | ImageBlock> =>
  part.type === "text"
    ? encodeTexts([part], markOf)
    : [{ ...encodeImage(part.image_url.url), ...markField(markOf(part)) }]

const encodeBlocks = (message: Message, markOf: FindMark): Array<Block> => {
  switch (message.role) {
    case "system":
      return []
    case "user":
      return typeof message.content === "string"
        ? encodeTexts(message.content)
        : message.content.flatMap((part) => encodePart(part, markOf))
    case "tool": {
      const content = encodeTexts(message.content)
      const ofParts =
        typeof message.content === "string" ? undefined : message.content.flatMap((part) => markOf(part) ?? [])
      const fields = { ...(content.length === 0 ? undefined : { content }), ...markField(ofParts?.at(-1)) }
      return [{ type: "tool_result", tool_use_id: message.tool_call_id, ...fields }]
    }
    default: {
      const calls = (message.tool_calls ?? []).map(({ id, function: { arguments: text, name } }): Block => {
        return { type: "tool_use", id, name, input: parseArguments(text) }
      })
      return [...encodeTexts(message.content, markOf), ...calls]
    }
  }
}

const isResult = ({ type }: Block): boolean => type === "tool_result"

/** Results have to open the turn that follows their calls. */
const orderResults = (content: Array<Block>): Array<Block> =>
  content.some(isResult) ? [...content.filter(isResult), ...content.filter((block) => !isResult(block))] : content

const encodeTurns = (messages: ReadonlyArray<Message>, markOf: FindMark): Array<Turn> => {
  const turns: Array<Turn> = []
  for (const message of messages) {
    const content = markLast(encodeBlocks(message, markOf), markOf(message))
    if (content.length === 0) continue
    const role = message.role === "assistant" ? "assistant" : "user"
    const last = turns.at(-1)
    if (last?.role === role) last.content.push(...content)
    else turns.push({ role, content })
  }
  return turns.map(({ content, role }) => ({ role, content: role === "user" ? orderResults(content) : content }))
}

/** At least one turn is required: without any, the system's text is the user's. */
const conversationFields = (system: Array<TextBlock>, turns: Array<Turn>) => {
  const [first, ...others] = system
  if (turns.length === 0) return { messages: [{ role: "user" as const, content: system }] }
  if (first === undefined) return { messages: turns }
  return { system: others.length === 0 && first.cache_control === undefined ? first.text : system, messages: turns }
}

const searchTool = { type: "web_search_20250305", name: "web_search" } as const

const choiceOf = ({ parallelToolCalls, toolChoice }: ChatRequest) => {
  const parallel = parallelToolCalls === false ? ({ disable_parallel_tool_use: true } as const) : {}
  if (toolChoice === "none") return { type: "none" as const }
  if (toolChoice === "required") return { type: "any" as const, ...parallel }
  if (typeof toolChoice === "object") return { type: "tool" as const, name: toolChoice.function.name, ...parallel }
  return toolChoice === "auto" || parallelToolCalls === false ? { type: "auto" as const, ...parallel } : undefined
}

type ObjectRoot = { readonly type: "object" } & Readonly<Record<string, unknown>>

const isObjectRoot = (schema: Readonly<Record<string, unknown>>): schema is ObjectRoot => schema.type === "object"

const encodeSchema = (schema: Readonly<Record<string, unknown>> = {}): ObjectRoot =>
  isObjectRoot(schema) ? schema : { ...schema, type: "object" }

/** Calls of earlier turns need their tools defined, even where none may be called. */
const toolFields = (request: ChatRequest, turns: ReadonlyArray<Turn>, markOf: FindMark) => {
  const search = request.webSearch ? [{ ...searchTool, ...withoutUndefined({ max_uses: request.maxWebSearches }) }] : []
  // `none` would forbid the search as well.
  if (request.webSearch && (request.tools.length === 0 || request.toolChoice === "none")) return { tools: search }
  if (request.tools.length > 0) {
    const tools = request.tools.map((tool) => {
      const { description, name, parameters, strict } = tool.function
      const fields = withoutUndefined({ description, strict: strict === true ? true : undefined })
      return { name, ...fields, input_schema: encodeSchema(parameters), ...markField(markOf(tool)) }
    })
    return { tools: [...tools, ...search], ...withoutUndefined({ tool_choice: choiceOf(request) }) }
  }
  const names = turns.flatMap(({ content }) => content.flatMap((block) => ("name" in block ? [block.name] : [])))
  if (names.length === 0) return {}
  const tools = [...new Set(names)].map((name) => ({ name, input_schema: encodeSchema() }))
  return { tools, tool_choice: { type: "none" as const } }
}

/** This wire refuses stop sequences of white space alone. */
export const ownStops = ({ stop }: ChatRequest): ReadonlyArray<string> => stop.filter(isBlank)

export const minBudget = 1_024
export const minAnswer = 512

/** Thinking comes out of `max_tokens`: half of it, if the rest can hold an answer. */
const budgetOf = (maxTokens: number) => {
  if (maxTokens < minBudget + minAnswer) return undefined
  const tokens = Math.min(Math.max(Math.floor(maxTokens / 2), minBudget), maxTokens - minAnswer)
  return { type: "enabled", budget_tokens: tokens } as const
}

export const forcesTool = ({ toolChoice, tools }: ChatRequest): boolean =>
  tools.length > 0 && toolChoice !== undefined && toolChoice !== "auto" && toolChoice !== "none"

/** With a budget such a turn must open with its signed thinking, which our wire does not carry. */
const continuesTurn = ({ messages }: ChatRequest): boolean => {
  const last = messages.findLast(({ role }) => role === "assistant")
  if (last === undefined) return false
  return last === messages.at(-1) || ("tool_calls" in last && (last.tool_calls ?? []).length > 0)
}

const adaptive = { type: "adaptive", display: "summarized" } as const

export const thinkingOf = (options: Options, request: ChatRequest) => {
  const isAsked = request.reasoningEffort !== undefined
  if (options.thinking === "always") return isAsked ? adaptive : undefined
  // Models differ in whether they think before a forced tool call; all accept one without thinking.
  const isOn = isAsked && !forcesTool(request)
  if (isOn && options.thinking === "adaptive") return adaptive
  const budget = isOn && !continuesTurn(request) ? budgetOf(request.maxTokens) : undefined
  return budget ?? (options.thinking_off && { type: options.thinking_off })
}

/** Without thinking and searches, the text is all there is to count. */
export const isCountable = ({ options, quirks, request }: ChatCall<Options, Quirks>): boolean => {
  const type = quirks.thinking ? thinkingOf(options, request)?.type : undefined
  return !request.webSearch && options.thinking !== "always" && type !== "enabled" && type !== "adaptive"
}

export const encodeRequest = ({ isStream, options, quirks, request, route }: ChatCall<Options, Quirks>) => {
  const markOf = cacheMarks(request, options.cache === "auto")
  const turns = encodeTurns(request.messages, markOf)
  const system = request.messages.flatMap((message) =>
    message.role === "system" ? markLast(encodeTexts(message.content, markOf), markOf(message)) : []
  )
  const stops = request.stop.filter((stop) => !isBlank(stop))
  const thinksLeast = options.thinking === "always" && request.reasoningEffort === undefined
  return {
    model: route.model,
    max_tokens: request.maxTokens,
    ...conversationFields(system, turns),
    ...toolFields(request, turns, markOf),
    ...withoutUndefined({
      stream: isStream ? true : undefined,
      stop_sequences: stops.length === 0 ? undefined : stops,
      output_config: thinksLeast ? { effort: "low" as const } : undefined,
      thinking: quirks.thinking ? thinkingOf(options, request) : undefined
    })
  }
}
