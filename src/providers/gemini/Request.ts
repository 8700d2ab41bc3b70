import type { ChatRequest, Tool } from "../../domain/Chat.ts"
import type { ChatCall } from "../chat/ChatClient.ts"
import { defined } from "../client/Defined.ts"
import { encodeContents, type SignaturePolicy, type WireContent, type WirePart } from "./Contents.ts"
import type { Options } from "./Options.ts"
import { encodeThinking, type WireThinking } from "./Thinking.ts"

export interface WireFunction {
  name: string
  description?: string
  parametersJsonSchema?: unknown
}

export type WireTool = { functionDeclarations: Array<WireFunction> } | { googleSearch: Record<string, never> }

export interface WireToolConfig {
  functionCallingConfig?: { mode: "AUTO" | "ANY" | "NONE"; allowedFunctionNames?: Array<string> }
  includeServerSideToolInvocations?: boolean
}

export interface WireConfig {
  maxOutputTokens?: number
  stopSequences?: Array<string>
  temperature?: number
  topP?: number
  seed?: number
  frequencyPenalty?: number
  presencePenalty?: number
  responseMimeType?: string
  responseJsonSchema?: unknown
  thinkingConfig?: WireThinking
}

export interface WireRequest {
  contents: Array<WireContent>
  systemInstruction?: { parts: Array<WirePart> }
  tools?: Array<WireTool>
  toolConfig?: WireToolConfig
  generationConfig: WireConfig
}

export interface Quirks {
  readonly signatures: SignaturePolicy
  readonly penalties: boolean
  readonly sampling: boolean
}

const mostStops = 5

export const ownStops = ({ stop }: ChatRequest): ReadonlyArray<string> => (stop.length > mostStops ? stop : [])

/** The host's seeds have 32 bits: a longer one keeps its lower ones, so that the same seed stays the same. */
const encodeSeed = (seed: number | undefined): number | undefined =>
  seed === undefined ? undefined : Number(BigInt.asIntN(32, BigInt(seed)))

/** Zero is the default, and the one number that models take that know no penalties. */
const encodePenalty = (penalty: number | undefined): number | undefined => (penalty === 0 ? undefined : penalty)

const encodeDeclaration = ({ function: { description, name, parameters } }: Tool): WireFunction => ({
  name,
  ...defined({ description, parametersJsonSchema: parameters })
})

const encodeTools = ({ tools, webSearch }: ChatRequest): Array<WireTool> | undefined => {
  const encoded: Array<WireTool> = []
  if (tools.length > 0) encoded.push({ functionDeclarations: tools.map(encodeDeclaration) })
  if (webSearch) encoded.push({ googleSearch: {} })
  return encoded.length > 0 ? encoded : undefined
}

const encodeCalling = ({ toolChoice, tools }: ChatRequest): WireToolConfig["functionCallingConfig"] => {
  if (tools.length === 0 || toolChoice === undefined) return undefined
  if (typeof toolChoice === "object") return { mode: "ANY", allowedFunctionNames: [toolChoice.function.name] }
  return { mode: ({ auto: "AUTO", required: "ANY", none: "NONE" } as const)[toolChoice] }
}

const encodeToolConfig = (request: ChatRequest): WireToolConfig | undefined => {
  const functionCallingConfig = encodeCalling(request)
  const both = request.tools.length > 0 && request.webSearch
  if (functionCallingConfig === undefined && !both) return undefined
  return defined({ functionCallingConfig, includeServerSideToolInvocations: both ? true : undefined })
}

const encodeFormat = ({ responseFormat }: ChatRequest) => {
  if (responseFormat === undefined) return undefined
  const responseJsonSchema = responseFormat.type === "json_schema" ? responseFormat.json_schema.schema : undefined
  return { responseMimeType: "application/json", ...defined({ responseJsonSchema }) }
}

const encodeConfig = (request: ChatRequest, options: Options, { penalties, sampling }: Quirks): WireConfig => ({
  maxOutputTokens: request.maxTokens,
  ...encodeFormat(request),
  ...defined({
    stopSequences: request.stop.length === 0 ? undefined : request.stop.slice(0, mostStops),
    temperature: sampling ? request.temperature : undefined,
    topP: sampling ? request.topP : undefined,
    seed: encodeSeed(request.seed),
    frequencyPenalty: penalties ? encodePenalty(request.frequencyPenalty) : undefined,
    presencePenalty: penalties ? encodePenalty(request.presencePenalty) : undefined,
    thinkingConfig: encodeThinking(request, options)
  })
})

type Encodable = Pick<ChatCall<Options, Quirks>, "route" | "request" | "options" | "quirks">

export const encodeRequest = ({ options, quirks, request, route }: Encodable): WireRequest => {
  const { contents, system } = encodeContents(route, request.messages, quirks.signatures)
  return {
    contents,
    generationConfig: encodeConfig(request, options, quirks),
    ...defined({
      systemInstruction: system.length === 0 ? undefined : { parts: system },
      tools: encodeTools(request),
      toolConfig: encodeToolConfig(request)
    })
  }
}

/** Gemini 2.5 can search, call functions or answer in JSON, one at a time. */
export const declinedBy = ({ thinking }: Options, request: ChatRequest): string | undefined => {
  if (thinking !== "budget") return undefined
  const calls = request.tools.length > 0
  if (request.webSearch && (calls || request.responseFormat !== undefined)) return "web_search"
  return calls && request.responseFormat !== undefined ? "response_format" : undefined
}
