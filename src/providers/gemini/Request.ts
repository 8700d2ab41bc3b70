import type { ChatRequest, Tool } from "../../domain/Chat.ts"
import type { Route } from "../../domain/Model.ts"
import { defined } from "../client/Defined.ts"
import { contentsOf, type SignaturePolicy, type WireContent, type WirePart } from "./Contents.ts"
import type { Options } from "./Options.ts"
import { thinkingOf, type WireThinking } from "./Thinking.ts"

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

/** The body of `generateContent` and `streamGenerateContent` for a chat. */
export interface WireRequest {
  contents: Array<WireContent>
  systemInstruction?: { parts: Array<WirePart> }
  tools?: Array<WireTool>
  toolConfig?: WireToolConfig
  generationConfig: WireConfig
}

/** How this request is said to this host. */
export interface Saying {
  readonly signatures: SignaturePolicy
  readonly penalties: boolean
  readonly sampling: boolean
}

/** The most stop sequences that the host takes. */
const mostStops = 5

/** The stop sequences that the gateway looks for itself. */
export const ownStops = ({ stop }: ChatRequest): ReadonlyArray<string> => (stop.length > mostStops ? stop : [])

/** The host's seeds have 32 bits: a longer one keeps its lower ones, so that the same seed stays the same. */
const seedOf = (seed: number | undefined): number | undefined =>
  seed === undefined ? undefined : Number(BigInt.asIntN(32, BigInt(seed)))

/** Zero is the default, and the one number that models take that know no penalties. */
const penaltyOf = (penalty: number | undefined): number | undefined => (penalty === 0 ? undefined : penalty)

const declarationOf = ({ function: { description, name, parameters } }: Tool): WireFunction => ({
  name,
  ...defined({ description, parametersJsonSchema: parameters })
})

const toolsOf = ({ tools, webSearch }: ChatRequest): Array<WireTool> | undefined => {
  const said: Array<WireTool> = []
  if (tools.length > 0) said.push({ functionDeclarations: tools.map(declarationOf) })
  if (webSearch) said.push({ googleSearch: {} })
  return said.length > 0 ? said : undefined
}

const callingOf = ({ toolChoice, tools }: ChatRequest): WireToolConfig["functionCallingConfig"] => {
  if (tools.length === 0 || toolChoice === undefined) return undefined
  if (typeof toolChoice === "object") return { mode: "ANY", allowedFunctionNames: [toolChoice.function.name] }
  return { mode: ({ auto: "AUTO", required: "ANY", none: "NONE" } as const)[toolChoice] }
}

const toolConfigOf = (request: ChatRequest): WireToolConfig | undefined => {
  const functionCallingConfig = callingOf(request)
  const both = request.tools.length > 0 && request.webSearch
  if (functionCallingConfig === undefined && !both) return undefined
  return defined({ functionCallingConfig, includeServerSideToolInvocations: both ? true : undefined })
}

const formatOf = ({ responseFormat }: ChatRequest) => {
  if (responseFormat === undefined) return undefined
  const responseJsonSchema = responseFormat.type === "json_schema" ? responseFormat.json_schema.schema : undefined
  return { responseMimeType: "application/json", ...defined({ responseJsonSchema }) }
}

const configOf = (request: ChatRequest, options: Options, { penalties, sampling }: Saying): WireConfig => ({
  maxOutputTokens: request.maxTokens,
  ...formatOf(request),
  ...defined({
    stopSequences: request.stop.length === 0 ? undefined : request.stop.slice(0, mostStops),
    temperature: sampling ? request.temperature : undefined,
    topP: sampling ? request.topP : undefined,
    seed: seedOf(request.seed),
    frequencyPenalty: penalties ? penaltyOf(request.frequencyPenalty) : undefined,
    presencePenalty: penalties ? penaltyOf(request.presencePenalty) : undefined,
    thinkingConfig: thinkingOf(request, options)
  })
})

/** A request with pictures has all of them inline. */
export const wireRequest = (route: Route, request: ChatRequest, options: Options, saying: Saying): WireRequest => {
  const { contents, system } = contentsOf(route, request.messages, saying.signatures)
  return {
    contents,
    generationConfig: configOf(request, options, saying),
    ...defined({
      systemInstruction: system.length === 0 ? undefined : { parts: system },
      tools: toolsOf(request),
      toolConfig: toolConfigOf(request)
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
