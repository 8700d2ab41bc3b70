import type { ChatRequest, Message, Part, ResponseFormat, TextPart, Tool, ToolChoice } from "../../domain/Chat.ts"
import type { ReasoningEffort } from "../../domain/Model.ts"
import { fitCallId } from "../chat/CallIds.ts"
import type { ChatCall } from "../chat/ChatClient.ts"
import { defined } from "../client/Defined.ts"
import type { Options } from "./Options.ts"

/** What this account may ask for: the gateway adds both itself. */
export interface Quirks {
  readonly summary: boolean
  readonly stream: boolean
}

type WireText = { type: "input_text"; text: string }
type WirePart = WireText | { type: "input_image"; image_url: string; detail: "auto" | "low" | "high" }
type Summary = Exclude<Options["reasoning_summary"], "none" | undefined>

/** Calls go without their item id: with it the host demands the reasoning item that came before them. */
export type WireItem =
  | { role: "developer"; content: string | Array<WireText> }
  | { role: "user"; content: string | Array<WirePart> }
  | { role: "assistant"; content: string }
  | { type: "function_call"; call_id: string; name: string; arguments: string }
  | { type: "function_call_output"; call_id: string; output: string }

export interface WireFunction {
  type: "function"
  name: string
  description?: string
  parameters: Readonly<Record<string, unknown>>
  strict: boolean
}

export type WireSearch = NonNullable<Options["web_search"]>

export type WireFormat =
  | { type: "json_object" }
  | {
      type: "json_schema"
      name: string
      description?: string
      schema: Readonly<Record<string, unknown>>
      strict: boolean
    }

export interface WireRequest {
  model: string
  input: Array<WireItem>
  store: false
  max_output_tokens: number
  stream?: boolean
  tools?: Array<WireFunction | WireSearch>
  tool_choice?: "auto" | "none" | "required" | { type: "function"; name: string }
  parallel_tool_calls?: boolean
  reasoning?: { effort?: ReasoningEffort; summary?: Summary }
  text?: { format: WireFormat }
}

/** The host refuses a smaller cap. */
const leastOutput = 16
const longestCallId = 64

const callId = (id: string): string => fitCallId(id, longestCallId)

const textOf = (content: string | ReadonlyArray<TextPart> | null): string =>
  typeof content === "string" ? content : (content ?? []).map(({ text }) => text).join("")

const encodeText = ({ text }: TextPart): WireText => ({ type: "input_text", text })

const encodePart = (part: Part): WirePart => {
  if (part.type === "text") return encodeText(part)
  const { detail, url } = part.image_url
  return { type: "input_image", image_url: url, detail: detail === "low" || detail === "high" ? detail : "auto" }
}

const encodeAssistant = (message: Extract<Message, { role: "assistant" }>): Array<WireItem> => {
  const text = textOf(message.content)
  const calls = (message.tool_calls ?? []).map(({ id, function: called }): WireItem => {
    return { type: "function_call", call_id: callId(id), name: called.name, arguments: called.arguments || "{}" }
  })
  return text === "" && calls.length > 0 ? calls : [{ role: "assistant", content: text }, ...calls]
}

/** System messages stay where they are: the host looks for the word JSON in the input, never in `instructions`. */
const encodeItems = (message: Message): Array<WireItem> => {
  switch (message.role) {
    case "system": {
      const content = typeof message.content === "string" ? message.content : message.content.map(encodeText)
      return [{ role: "developer", content }]
    }
    case "user": {
      const content = typeof message.content === "string" ? message.content : message.content.map(encodePart)
      return [{ role: "user", content }]
    }
    case "tool":
      return [{ type: "function_call_output", call_id: callId(message.tool_call_id), output: textOf(message.content) }]
    default:
      return encodeAssistant(message)
  }
}

const noParameters = { type: "object", properties: {} }

/** `strict` is said aloud: this host's default is the opposite of the convention's. */
const encodeFunction = ({ function: { description, name, parameters, strict } }: Tool): WireFunction => ({
  type: "function",
  name,
  ...defined({ description }),
  parameters: parameters ?? noParameters,
  strict: strict ?? false
})

const encodeChoice = (choice: ToolChoice): NonNullable<WireRequest["tool_choice"]> =>
  typeof choice === "string" ? choice : { type: "function", name: choice.function.name }

const toolFields = (request: ChatRequest, search: WireSearch | undefined): Partial<WireRequest> => {
  const { parallelToolCalls, toolChoice, tools } = request
  const functions = tools.map(encodeFunction)
  // `none` would forbid the search as well.
  if (search !== undefined && (functions.length === 0 || toolChoice === "none")) return { tools: [search] }
  if (functions.length === 0) return {}
  return {
    tools: search === undefined ? functions : [...functions, search],
    ...(toolChoice === undefined ? undefined : { tool_choice: encodeChoice(toolChoice) }),
    ...defined({ parallel_tool_calls: parallelToolCalls })
  }
}

const encodeFormat = (format: ResponseFormat): WireFormat => {
  if (format.type === "json_object") return { type: "json_object" }
  const { description, name, schema, strict } = format.json_schema
  return { type: "json_schema", name, ...defined({ description }), schema: schema ?? {}, strict: strict ?? false }
}

const reasoningFields = (effort: ReasoningEffort | undefined, summary: Summary | undefined): Partial<WireRequest> =>
  effort === undefined && summary === undefined ? {} : { reasoning: defined({ effort, summary }) }

type Encodable = Pick<ChatCall<Options, Quirks>, "route" | "request" | "options" | "isStream" | "quirks">

/** Without a summary asked for, the host's reasoning has no text at all. Sampling does not exist on this wire. */
export const encodeRequest = ({ isStream, options, quirks, request, route }: Encodable): WireRequest => {
  const { reasoning_summary = "auto", web_search = { type: "web_search" } } = options
  const summary = quirks.summary && reasoning_summary !== "none" ? reasoning_summary : undefined
  return {
    model: route.model,
    input: request.messages.flatMap(encodeItems),
    store: false,
    max_output_tokens: Math.max(leastOutput, request.maxTokens),
    ...(isStream && quirks.stream ? { stream: true } : undefined),
    ...toolFields(request, request.webSearch ? web_search : undefined),
    ...reasoningFields(request.reasoningEffort, summary),
    ...(request.responseFormat === undefined ? undefined : { text: { format: encodeFormat(request.responseFormat) } })
  }
}
