import { Predicate } from "effect"
import type { ChatRequest, Message, Part, ResponseFormat, TextPart } from "../../domain/Chat.ts"
import type { ChatCall } from "../chat/ChatClient.ts"
import { fitCallId } from "../chat/Messages.ts"
import { sentinel } from "../chat/ThoughtSignatures.ts"
import { defined } from "../client/Json.ts"
import type { Options } from "./Options.ts"

export interface Quirks {
  readonly maxTokensField: "max_tokens" | "max_completion_tokens"
  readonly streamOptions: boolean
}

/** OpenAI's own hosts refuse longer ones. */
const longestCallId = 40

const encodeText = ({ text }: TextPart) => ({ type: "text", text }) as const

/** Some hosts take only a plain string outside of user messages. */
const encodeTexts = (content: string | ReadonlyArray<TextPart>) => {
  if (typeof content === "string") return content
  const [first] = content
  return content.length === 1 && first !== undefined ? first.text : content.map(encodeText)
}

const encodePart = (part: Part) => {
  if (part.type === "text") return encodeText(part)
  const { detail, url } = part.image_url
  const isKnown = detail === "auto" || detail === "low" || detail === "high"
  return { type: "image_url" as const, image_url: isKnown ? ({ url, detail } as const) : { url } }
}

interface History {
  readonly hasReasoning: boolean
  /** Its first call carries the placeholder for a missing signature. */
  readonly isUnsigned: boolean
}

const encodeAssistant = (message: Extract<Message, { role: "assistant" }>, { hasReasoning, isUnsigned }: History) => {
  const calls = (message.tool_calls ?? []).map(({ id, function: { name, arguments: text } }, index) => ({
    id: fitCallId(id, longestCallId),
    type: "function" as const,
    function: { name, arguments: text },
    ...(isUnsigned && index === 0 ? { extra_content: { google: { thought_signature: sentinel } } } : undefined)
  }))
  return {
    role: "assistant" as const,
    // Hosts take null beside calls only.
    content: message.content === null && calls.length > 0 ? null : encodeTexts(message.content ?? ""),
    ...defined({
      name: message.name,
      reasoning_content: hasReasoning ? message.reasoning_content : undefined,
      tool_calls: calls.length === 0 ? undefined : calls
    })
  }
}

const encodeMessage = (message: Message, history: History) => {
  switch (message.role) {
    case "system":
      return { role: message.role, content: encodeTexts(message.content), ...defined({ name: message.name }) }
    case "user": {
      const content = typeof message.content === "string" ? message.content : message.content.map(encodePart)
      return { role: message.role, content, ...defined({ name: message.name }) }
    }
    case "tool": {
      const tool_call_id = fitCallId(message.tool_call_id, longestCallId)
      return { role: message.role, content: encodeTexts(message.content), tool_call_id }
    }
    default:
      return encodeAssistant(message, history)
  }
}

const encodeMessages = (options: Options, messages: ReadonlyArray<Message>) => {
  const turn = messages.findLastIndex(({ role }) => role === "user")
  const { reasoning_history: hasReasoning = false, thought_signatures: isUnsigned = false } = options
  return messages.map((message, at) => encodeMessage(message, { hasReasoning, isUnsigned: isUnsigned && at > turn }))
}

const encodeFormat = (format: ResponseFormat) => {
  if (format.type === "json_object") return { type: "json_object" } as const
  const { description, name, schema, strict } = format.json_schema
  return { type: "json_schema" as const, json_schema: { name, ...defined({ description, schema, strict }) } }
}

const encodeTools = ({ tools }: ChatRequest) =>
  tools.map(({ function: { description, name, parameters, strict } }) => {
    return { type: "function" as const, function: { name, ...defined({ description, parameters, strict }) } }
  })

export const ownStops = ({ stop }: ChatRequest, options: Options): ReadonlyArray<string> =>
  options.stop === "cut" ? stop : []

export const encodeRequest = ({ isStream, options, quirks, request, route }: ChatCall<Options, Quirks>) => {
  const hasTools = request.tools.length > 0
  const body = {
    model: route.model,
    messages: encodeMessages(options, request.messages),
    [quirks.maxTokensField]: request.maxTokens,
    ...defined({
      stream: isStream ? true : undefined,
      stream_options: isStream && quirks.streamOptions ? { include_usage: true } : undefined,
      stop: request.stop.length === 0 || options.stop === "cut" ? undefined : [...request.stop],
      tools: hasTools ? encodeTools(request) : undefined,
      tool_choice: hasTools ? request.toolChoice : undefined,
      parallel_tool_calls: hasTools ? request.parallelToolCalls : undefined,
      temperature: request.temperature,
      top_p: request.topP,
      seed: request.seed,
      frequency_penalty: request.frequencyPenalty,
      presence_penalty: request.presencePenalty,
      reasoning_effort: request.reasoningEffort,
      response_format: request.responseFormat && encodeFormat(request.responseFormat)
    })
  }
  const search = options.web_search
  if (!request.webSearch || !Predicate.isRecord(search)) return body
  const tools = Array.isArray(search.tools) ? [...(body.tools ?? []), ...search.tools] : body.tools
  return { ...body, ...search, ...defined({ tools }) }
}
