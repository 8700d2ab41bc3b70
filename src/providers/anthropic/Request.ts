import type { ChatRequest, Tool } from "../../domain/Chat.ts"
import type { ChatCall } from "../chat/ChatClient.ts"
import { isBlank, systemOf, turnsOf, type WireMessage, type WireText } from "./Messages.ts"
import type { Options } from "./Options.ts"
import { type ThinkingFields, thinkingFields } from "./Thinking.ts"

export interface WireTool {
  name: string
  description?: string
  input_schema: { [name: string]: unknown; type: "object" }
}

type Parallel = { disable_parallel_tool_use?: true }
export type WireToolChoice =
  | ({ type: "auto" } & Parallel)
  | ({ type: "any" } & Parallel)
  | ({ type: "tool"; name: string } & Parallel)
  | { type: "none" }

export interface WireRequest extends ThinkingFields {
  model: string
  max_tokens: number
  messages: Array<WireMessage>
  system?: string | Array<WireText>
  stream?: boolean
  stop_sequences?: Array<string>
  tools?: Array<WireTool>
  tool_choice?: WireToolChoice
}

const wireTool = ({ function: { description, name, parameters } }: Tool): WireTool => ({
  name,
  ...(description === undefined ? undefined : { description }),
  input_schema: { ...parameters, type: "object" }
})

const wireChoice = ({ parallelToolCalls, toolChoice }: ChatRequest): WireToolChoice | undefined => {
  const parallel: Parallel = parallelToolCalls === false ? { disable_parallel_tool_use: true } : {}
  if (toolChoice === "none") return { type: "none" }
  if (toolChoice === "required") return { type: "any", ...parallel }
  if (toolChoice !== undefined && toolChoice !== "auto") {
    return { type: "tool", name: toolChoice.function.name, ...parallel }
  }
  return toolChoice === undefined && parallelToolCalls !== false ? undefined : { type: "auto", ...parallel }
}

/** Calls of earlier turns need their tools defined, even where none may be called any more. */
const formerTools = (turns: ReadonlyArray<WireMessage>): Array<WireTool> => {
  const names = turns.flatMap(({ content }) => content.flatMap((block) => ("name" in block ? [block.name] : [])))
  return [...new Set(names)].map((name) => ({ name, input_schema: { type: "object" } }))
}

const toolFields = (request: ChatRequest, turns: ReadonlyArray<WireMessage>): Partial<WireRequest> => {
  if (request.tools.length > 0) {
    const choice = wireChoice(request)
    return { tools: request.tools.map(wireTool), ...(choice === undefined ? undefined : { tool_choice: choice }) }
  }
  const tools = formerTools(turns)
  return tools.length === 0 ? {} : { tools, tool_choice: { type: "none" } }
}

/** Stop sequences of white space alone, which this wire refuses: the gateway cuts at them itself. */
export const ownStops = ({ stop }: ChatRequest): ReadonlyArray<string> => stop.filter(isBlank)

const wireSystem = (parts: Array<WireText>): string | Array<WireText> => {
  const [first] = parts
  return parts.length === 1 && first !== undefined ? first.text : parts
}

export interface Quirks {
  readonly thinking: boolean
}

type Encodable = Pick<ChatCall<Options, Quirks>, "route" | "request" | "options" | "isStream" | "quirks">

export const encodeRequest = ({ isStream, options, quirks, request, route }: Encodable): WireRequest => {
  const system = systemOf(request.messages)
  const turns = turnsOf(request.messages)
  const stops = request.stop.filter((stop) => !isBlank(stop))
  const { thinking, ...others } = thinkingFields(options, request)
  return {
    model: route.model,
    max_tokens: request.maxTokens,
    // At least one turn is wanted: the system's text is then the user's.
    ...(turns.length === 0
      ? { messages: [{ role: "user", content: system }] }
      : { ...(system.length === 0 ? undefined : { system: wireSystem(system) }), messages: turns }),
    ...(isStream ? { stream: true } : undefined),
    ...(stops.length === 0 ? undefined : { stop_sequences: stops }),
    ...toolFields(request, turns),
    ...others,
    ...(quirks.thinking && thinking !== undefined ? { thinking } : undefined)
  }
}
