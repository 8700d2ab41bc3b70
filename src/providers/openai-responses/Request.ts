import type { ChatRequest, Message, Part, ResponseFormat, TextPart, Tool, ToolChoice } from "../../domain/Chat.ts"
import type { ChatCall } from "../chat/ChatClient.ts"
import { fitCallId, textsOf } from "../chat/Messages.ts"
import { defined } from "../client/Json.ts"
import type { Options } from "./Options.ts"

/** What this account may request; the gateway adds both itself. */
export interface Quirks {
  readonly summary: boolean
  readonly stream: boolean
  /** False where the host cannot read what another account has encrypted. */
  readonly encrypted: boolean
}

/** The host refuses a smaller cap. */
export const leastOutput = 16
export const longestCallId = 64

const joinTexts = (content: string | ReadonlyArray<TextPart> | null): string => textsOf(content).join("")

const encodeText = ({ text }: TextPart) => ({ type: "input_text", text }) as const

const encodePart = (part: Part) => {
  if (part.type === "text") return encodeText(part)
  const { detail, url: image_url } = part.image_url
  return { type: "input_image", image_url, detail: detail === "low" || detail === "high" ? detail : "auto" } as const
}

/** With an item id the host demands the reasoning item before the call. */
const encodeAssistant = (message: Extract<Message, { role: "assistant" }>) => {
  const text = joinTexts(message.content)
  const calls = (message.tool_calls ?? []).map(({ id, function: { arguments: given, name } }) => {
    return { type: "function_call", call_id: fitCallId(id, longestCallId), name, arguments: given || "{}" } as const
  })
  return text === "" && calls.length > 0 ? calls : [{ role: "assistant", content: text } as const, ...calls]
}

/** The host looks for the word JSON in the input, never in `instructions`. */
const encodeItems = (message: Message) => {
  switch (message.role) {
    case "system": {
      const content = typeof message.content === "string" ? message.content : message.content.map(encodeText)
      return [{ role: "developer" as const, content }]
    }
    case "user": {
      const content = typeof message.content === "string" ? message.content : message.content.map(encodePart)
      return [{ role: "user" as const, content }]
    }
    case "tool": {
      const call_id = fitCallId(message.tool_call_id, longestCallId)
      return [{ type: "function_call_output" as const, call_id, output: joinTexts(message.content) }]
    }
    default:
      return encodeAssistant(message)
  }
}

const noParameters = { type: "object", properties: {} }

/** This host's default for `strict` is the opposite of the convention's. */
const encodeFunction = ({ function: { description, name, parameters, strict } }: Tool) => ({
  type: "function" as const,
  name,
  ...defined({ description }),
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
    ...defined({ tool_choice: toolChoice && encodeChoice(toolChoice), parallel_tool_calls: parallelToolCalls })
  }
}

const encodeFormat = (format: ResponseFormat) => {
  if (format.type === "json_object") return { type: "json_object" } as const
  const { description, name, schema = {}, strict } = format.json_schema
  return { type: "json_schema" as const, name, ...defined({ description }), schema, strict: strict ?? false }
}

/** Reasoning has no text without a summary; this wire has no sampling. */
export const encodeRequest = ({ isStream, options, quirks, request, route }: ChatCall<Options, Quirks>) => {
  const { reasoning_summary = "auto", web_search = { type: "web_search" } } = options
  const { reasoningEffort: effort, responseFormat } = request
  const summary = quirks.summary && reasoning_summary !== "none" ? reasoning_summary : undefined
  return {
    model: route.model,
    input: request.messages.flatMap(
      (message): ReadonlyArray<ReturnType<typeof encodeItems>[number]> => encodeItems(message)
    ),
    store: false,
    max_output_tokens: Math.max(leastOutput, request.maxTokens),
    ...toolFields(request, request.webSearch ? web_search : undefined),
    ...defined({
      stream: isStream && quirks.stream ? true : undefined,
      reasoning: effort === undefined && summary === undefined ? undefined : defined({ effort, summary }),
      text: responseFormat && { format: encodeFormat(responseFormat) }
    })
  }
}
