import { Predicate } from "effect"
import type { ChatRequest, Message, Part, ResponseFormat, TextPart, ToolChoice } from "../../domain/Chat.ts"
import type { ReasoningEffort } from "../../domain/Model.ts"
import { fitCallId } from "../chat/CallIds.ts"
import type { ChatCall } from "../chat/ChatClient.ts"
import { sentinel } from "../chat/ThoughtSignatures.ts"
import { defined } from "../client/Defined.ts"
import type { Options } from "./Options.ts"

export interface Quirks {
  readonly maxTokensField: "max_tokens" | "max_completion_tokens"
  readonly streamOptions: boolean
}

type WireText = { type: "text"; text: string }
type WirePart = WireText | { type: "image_url"; image_url: { url: string; detail?: "auto" | "low" | "high" } }
type WireCall = {
  id: string
  type: "function"
  function: { name: string; arguments: string }
  extra_content?: { google: { thought_signature: string } }
}

export type WireMessage =
  | { role: "system"; content: string | Array<WireText>; name?: string }
  | { role: "user"; content: string | Array<WirePart>; name?: string }
  | {
      role: "assistant"
      content: string | Array<WireText> | null
      name?: string
      reasoning_content?: string
      tool_calls?: Array<WireCall>
    }
  | { role: "tool"; content: string | Array<WireText>; tool_call_id: string }

export interface WireTool {
  type: "function"
  function: {
    name: string
    description?: string
    parameters?: Readonly<Record<string, unknown>>
    strict?: boolean | null
  }
}

export interface WireRequest {
  model: string
  messages: Array<WireMessage>
  stream?: boolean
  stream_options?: { include_usage: true }
  max_tokens?: number
  max_completion_tokens?: number
  temperature?: number
  top_p?: number
  seed?: number
  frequency_penalty?: number
  presence_penalty?: number
  stop?: Array<string>
  tools?: Array<WireTool>
  tool_choice?: ToolChoice
  parallel_tool_calls?: boolean
  reasoning_effort?: ReasoningEffort
  response_format?: WireFormat
}

export type WireFormat =
  | { type: "json_object" }
  | {
      type: "json_schema"
      json_schema: {
        name: string
        description?: string
        schema?: Readonly<Record<string, unknown>>
        strict?: boolean | null
      }
    }

/** Of OpenAI's own hosts, which refuse longer ones. */
const longestCallId = 40

const encodeText = (part: TextPart): WireText => ({ type: "text", text: part.text })

/** One text part is a plain string: some hosts know nothing else outside of user messages. */
const encodeTexts = (content: string | ReadonlyArray<TextPart>): string | Array<WireText> => {
  if (typeof content === "string") return content
  const [first] = content
  return content.length === 1 && first !== undefined ? first.text : content.map(encodeText)
}

const encodePart = (part: Part): WirePart => {
  if (part.type === "text") return encodeText(part)
  const { detail, url } = part.image_url
  const known = detail === "auto" || detail === "low" || detail === "high"
  return { type: "image_url", image_url: known ? { url, detail } : { url } }
}

interface History {
  readonly reasoning: boolean
  /** Whether the first of its calls says that nobody has its signature. */
  readonly unsigned: boolean
}

const encodeAssistant = (
  message: Extract<Message, { role: "assistant" }>,
  { reasoning, unsigned }: History
): WireMessage => {
  const calls = (message.tool_calls ?? []).map(({ id, function: { name, arguments: text } }, index): WireCall => {
    const call: WireCall = { id: fitCallId(id, longestCallId), type: "function", function: { name, arguments: text } }
    return unsigned && index === 0 ? { ...call, extra_content: { google: { thought_signature: sentinel } } } : call
  })
  return {
    role: "assistant",
    // Hosts take null beside calls only.
    content: message.content === null && calls.length > 0 ? null : encodeTexts(message.content ?? ""),
    ...defined({
      name: message.name,
      reasoning_content: reasoning ? message.reasoning_content : undefined,
      tool_calls: calls.length === 0 ? undefined : calls
    })
  }
}

const encodeMessage = (message: Message, history: History): WireMessage => {
  switch (message.role) {
    case "system":
      return { role: "system", content: encodeTexts(message.content), ...defined({ name: message.name }) }
    case "user": {
      const content = typeof message.content === "string" ? message.content : message.content.map(encodePart)
      return { role: "user", content, ...defined({ name: message.name }) }
    }
    case "tool":
      return {
        role: "tool",
        content: encodeTexts(message.content),
        tool_call_id: fitCallId(message.tool_call_id, longestCallId)
      }
    default:
      return encodeAssistant(message, history)
  }
}

const encodeMessages = (options: Options, messages: ReadonlyArray<Message>): Array<WireMessage> => {
  const turn = messages.findLastIndex(({ role }) => role === "user")
  const { reasoning_history: reasoning = false, thought_signatures: unsigned = false } = options
  return messages.map((message, at) => encodeMessage(message, { reasoning, unsigned: unsigned && at > turn }))
}

const encodeFormat = (format: ResponseFormat): WireFormat => {
  if (format.type === "json_object") return { type: "json_object" }
  const { description, name, schema, strict } = format.json_schema
  return { type: "json_schema", json_schema: { name, ...defined({ description, schema, strict }) } }
}

const toolFields = (request: ChatRequest) => {
  if (request.tools.length === 0) return undefined
  const tools = request.tools.map(({ function: { description, name, parameters, strict } }): WireTool => {
    return { type: "function", function: { name, ...defined({ description, parameters, strict }) } }
  })
  return { tools, ...defined({ tool_choice: request.toolChoice, parallel_tool_calls: request.parallelToolCalls }) }
}

export const ownStops = ({ stop }: ChatRequest, options: Options): ReadonlyArray<string> =>
  options.stop === "cut" ? stop : []

type Encodable = Pick<ChatCall<Options, Quirks>, "route" | "request" | "options" | "isStream" | "quirks">

const encodeConvention = ({ isStream, options, quirks, request, route }: Encodable): WireRequest => ({
  model: route.model,
  messages: encodeMessages(options, request.messages),
  [quirks.maxTokensField]: request.maxTokens,
  ...(isStream ? { stream: true } : undefined),
  ...(isStream && quirks.streamOptions ? { stream_options: { include_usage: true } } : undefined),
  ...(request.stop.length === 0 || options.stop === "cut" ? undefined : { stop: [...request.stop] }),
  ...toolFields(request),
  ...defined({
    temperature: request.temperature,
    top_p: request.topP,
    seed: request.seed,
    frequency_penalty: request.frequencyPenalty,
    presence_penalty: request.presencePenalty,
    reasoning_effort: request.reasoningEffort,
    response_format: request.responseFormat === undefined ? undefined : encodeFormat(request.responseFormat)
  })
})

/** A web search is whatever the route's options say it is on this host, beside the client's tools. */
export const encodeRequest = (call: Encodable): WireRequest => {
  const body = encodeConvention(call)
  const search = call.options.web_search
  if (!call.request.webSearch || !Predicate.isRecord(search)) return body
  const tools = Array.isArray(search.tools) ? [...(body.tools ?? []), ...search.tools] : body.tools
  return { ...body, ...search, ...defined({ tools }) }
}
