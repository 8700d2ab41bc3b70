import { identity, Schema } from "effect"
import type { ChatRequest, Message, Part, TextPart, ToolCall } from "../../domain/Chat.ts"
import type { Feature, ReasoningEffort, RouteBase, RouteOptions } from "../../domain/Model.ts"
import type { ChatCall } from "../chat/ChatClient.ts"
import { joinTexts, parseArguments, signaturePlaceholder, textsOf, verifySignature } from "../chat/Messages.ts"
import { makeRules, type WireRules, wireRuleOptions } from "../chat/WireRules.ts"
import { withoutUndefined } from "../client/JsonFields.ts"
import { makeOptions, oneOf, optional, searchFee } from "../client/RouteOptions.ts"

export const Options = Schema.Struct({
  thinking: optional(oneOf("level", "budget", "none")),
  call_signatures: optional(Schema.Boolean),
  search_fee: searchFee,
  any_schema: wireRuleOptions.any_schema,
  call_id_length: wireRuleOptions.call_id_length,
  tool_name_length: wireRuleOptions.tool_name_length,
  api: optional(oneOf("generate", "predict")),
  image_size: optional(Schema.Boolean),
  aspect_ratio: optional(
    Schema.String.pipe(Schema.pattern(/^\d+:\d+$/, { message: () => "must be a ratio such as 16:9" }))
  )
})
export type Options = typeof Options.Type

const commonChatFeatures: ReadonlyArray<Feature> = ["tools", "vision", "response_format", "web_search", "sampling"]

export const chatFeatures = ({ thinking }: RouteOptions): ReadonlySet<Feature> =>
  new Set(thinking === "none" ? commonChatFeatures : [...commonChatFeatures, "reasoning"])

export const imageFeatures = ({ api, image_size }: RouteOptions): ReadonlySet<Feature> => {
  const resolutions: ReadonlyArray<Feature> = image_size === false ? [] : ["1K", "2K", "4K"]
  const edit: ReadonlyArray<Feature> = api === "predict" ? [] : ["edit"]
  return new Set([...resolutions, ...edit, "size", "aspect_ratio"])
}

export const options = makeOptions(Options, identity)

/** Google's documents differ on names. All of them allow these. */
export const rules: WireRules = {
  toolName: { characters: "a-zA-Z0-9_-", first: "a-zA-Z_", minLength: 1, maxLength: 64 },
  searchName: undefined,
  callId: { characters: "!-~", minLength: 1, maxLength: 128 },
  callArguments: "object",
  toolRoot: "object",
  answerRoot: "any",
  requiresItems: false,
  strict: "none",
  system: "separate",
  content: "parts",
  acceptsBlankUser: false,
  requiresUserFirst: true,
  prefill: "none"
}

export const rulesOf = makeRules<Options>(rules)

/** How earlier calls are sent: `required` adds a placeholder for a missing signature, `sentinel` replaces all by it. */
export type SignaturePolicy = "required" | "optional" | "sentinel"

export interface Quirks {
  readonly signatures: SignaturePolicy
  readonly penalties: boolean
  readonly sampling: boolean
}

interface WirePart {
  text?: string
  inlineData?: { mimeType: string; data: string }
  functionCall?: { id: string; name: string; args: Record<string, unknown> }
  functionResponse?: { id: string; name: string; response: Record<string, unknown> }
  thoughtSignature?: string
}

interface WireContent {
  role: "user" | "model"
  parts: Array<WirePart>
}

const dataUrl = /^data:([^;,]+)[^,]*;base64,/i

const inlineData = (url: string): WirePart["inlineData"] => {
  const head = dataUrl.exec(url.slice(0, 200))
  if (head === null) return undefined
  const [start, type = ""] = head
  const mimeType = type.toLowerCase()
  return { mimeType: mimeType === "image/jpg" ? "image/jpeg" : mimeType, data: url.slice(start.length) }
}

const encodeTexts = (content: string | ReadonlyArray<TextPart> | null): Array<WirePart> =>
  textsOf(content)
    .filter((text) => text !== "")
    .map((text) => ({ text }))

const encodePart = (part: Part): Array<WirePart> => {
  if (part.type === "text") return encodeTexts(part.text)
  const data = inlineData(part.image_url.url)
  return data === undefined ? [] : [{ inlineData: data }]
}

const encodeUser = (content: string | ReadonlyArray<Part>): Array<WirePart> => {
  const parts = typeof content === "string" ? encodeTexts(content) : content.flatMap(encodePart)
  return parts.length === 0 ? [{ text: "" }] : parts
}

export const hasInlineImages = (messages: ReadonlyArray<Message>): boolean =>
  messages.every(
    ({ content, role }) =>
      role !== "user" ||
      typeof content === "string" ||
      content.every((part) => part.type === "text" || inlineData(part.image_url.url) !== undefined)
  )

/** System texts are sent separately. If there is nothing else, they become the user's turn. */
export const encodeContents = (route: RouteBase, messages: ReadonlyArray<Message>, policy: SignaturePolicy) => {
  const system: Array<WirePart> = []
  const contents: Array<WireContent> = []
  const names = new Map<string, string>()
  const lastUserIndex = messages.findLastIndex(({ role }) => role === "user")

  const signatureOf = (call: ToolCall, isFirst: boolean, isCurrent: boolean): string | undefined => {
    const verifiedSignature = policy === "sentinel" ? undefined : verifySignature(route, call.signature)
    return verifiedSignature ?? (isFirst && isCurrent && policy !== "optional" ? signaturePlaceholder : undefined)
  }
  /** Calls and results must alternate, so several messages become one turn. */
  const partsOf = (role: WireContent["role"], isSameTurn: (last: WireContent) => boolean): Array<WirePart> => {
    const last = contents.at(-1)
    if (last !== undefined && isSameTurn(last)) return last.parts
    const parts: Array<WirePart> = []
    contents.push({ role, parts })
    return parts
  }

  for (const [at, message] of messages.entries()) {
    switch (message.role) {
      case "system":
        system.push(...encodeTexts(message.content))
        break
      case "user":
        contents.push({ role: "user", parts: encodeUser(message.content) })
        break
      case "tool": {
        const { content, role, tool_call_id: id } = message
        const response = { output: joinTexts(content, role) }
        partsOf("user", ({ parts }) => parts.some(({ functionResponse }) => functionResponse !== undefined)).push({
          functionResponse: { id, name: names.get(id) ?? id, response }
        })
        break
      }
      default: {
        const texts = encodeTexts(message.content)
        const calls = message.tool_calls ?? []
        if (texts.length + calls.length === 0) break
        const parts = partsOf("model", ({ role }) => role === "model")
        parts.push(...texts)
        for (const call of calls) {
          const { arguments: text, name } = call.function
          names.set(call.id, name)
          const isFirst = parts.every(({ functionCall }) => functionCall === undefined)
          const functionCall = { id: call.id, name, args: parseArguments(text) }
          parts.push({
            functionCall,
            ...withoutUndefined({ thoughtSignature: signatureOf(call, isFirst, at > lastUserIndex) })
          })
        }
      }
    }
  }
  return contents.length > 0
    ? { system, contents }
    : { system: [], contents: [{ role: "user" as const, parts: system }] }
}

const levels = { low: "LOW", medium: "MEDIUM", high: "HIGH", xhigh: "HIGH" } as const

/** Budgets in tokens, the same as on Google's OpenAI endpoint. */
const budgets: Readonly<Record<ReasoningEffort, number>> = { low: 1_024, medium: 8_192, high: 24_576, xhigh: 24_576 }
const minBudget = 512

/** Thoughts count as output, so half is reserved for the answer. */
const budgetOf = (effort: ReasoningEffort, maxTokens: number): number => {
  const budget = Math.min(budgets[effort], Math.floor(maxTokens / 2))
  return budget < minBudget ? 0 : budget
}

/** Gemini 3 has levels and Gemini 2.5 has budgets. Providers refuse both in one request. */
export const encodeThinking = (request: ChatRequest, { thinking = "level" }: Options) => {
  const effort = request.reasoningEffort
  if (thinking === "none") return undefined
  if (thinking === "level") {
    return { includeThoughts: true, ...withoutUndefined({ thinkingLevel: effort && levels[effort] }) }
  }
  if (effort === undefined) return undefined
  const thinkingBudget = budgetOf(effort, request.maxTokens)
  return thinkingBudget === 0 ? { thinkingBudget } : { includeThoughts: true, thinkingBudget }
}

const maxStops = 5

export const localStops = ({ stop }: ChatRequest): ReadonlyArray<string> => (stop.length > maxStops ? stop : [])

/** The provider accepts 32-bit seeds. */
const encodeSeed = (seed: number | bigint | undefined): number | undefined =>
  seed === undefined ? undefined : Number(BigInt.asIntN(32, BigInt(seed)))

/** Zero is the default. Models without penalties refuse it, so it is not sent. */
const encodePenalty = (penalty: number | undefined): number | undefined => (penalty === 0 ? undefined : penalty)

const encodeTools = ({ tools, webSearch }: ChatRequest) => {
  const functionDeclarations = tools.map(({ function: { description, name, parameters } }) => {
    return { name, ...withoutUndefined({ description, parametersJsonSchema: parameters }) }
  })
  const encoded = [
    ...(tools.length > 0 ? [{ functionDeclarations }] : []),
    ...(webSearch ? [{ googleSearch: {} }] : [])
  ]
  return encoded.length > 0 ? encoded : undefined
}

const callingModes = { auto: "AUTO", required: "ANY", none: "NONE" } as const

const encodeFunctionCalling = ({ toolChoice, tools }: ChatRequest) => {
  if (tools.length === 0 || toolChoice === undefined) return undefined
  if (typeof toolChoice === "string") return { mode: callingModes[toolChoice] }
  return { mode: callingModes.required, allowedFunctionNames: [toolChoice.function.name] }
}

const encodeToolConfig = (request: ChatRequest) => {
  const functionCallingConfig = encodeFunctionCalling(request)
  const includeServerSideToolInvocations = request.tools.length > 0 && request.webSearch ? true : undefined
  if (functionCallingConfig === undefined && includeServerSideToolInvocations === undefined) return undefined
  return withoutUndefined({ functionCallingConfig, includeServerSideToolInvocations })
}

const encodeConfig = (request: ChatRequest, options: Options, { penalties, sampling }: Quirks) => {
  const format = request.responseFormat
  return {
    maxOutputTokens: request.maxTokens,
    ...withoutUndefined({
      responseMimeType: format && "application/json",
      responseJsonSchema: format?.type === "json_schema" ? format.json_schema.schema : undefined,
      stopSequences: request.stop.length === 0 ? undefined : request.stop.slice(0, maxStops),
      temperature: sampling ? request.temperature : undefined,
      topP: sampling ? request.topP : undefined,
      seed: encodeSeed(request.seed),
      frequencyPenalty: penalties ? encodePenalty(request.frequencyPenalty) : undefined,
      presencePenalty: penalties ? encodePenalty(request.presencePenalty) : undefined,
      thinkingConfig: encodeThinking(request, options)
    })
  }
}

export const encodeRequest = ({ options, quirks, request, route }: ChatCall<Options, Quirks>) => {
  const { contents, system } = encodeContents(route, request.messages, quirks.signatures)
  return {
    contents,
    generationConfig: encodeConfig(request, options, quirks),
    ...withoutUndefined({
      systemInstruction: system.length === 0 ? undefined : { parts: system },
      tools: encodeTools(request),
      toolConfig: encodeToolConfig(request)
    })
  }
}

/** Gemini 2.5 cannot combine search, function calls and JSON answers. */
export const findDeclinedField = ({ thinking }: Options, request: ChatRequest): string | undefined => {
  if (thinking !== "budget") return undefined
  const hasTools = request.tools.length > 0
  if (request.webSearch && (hasTools || request.responseFormat !== undefined)) return "web_search"
  return hasTools && request.responseFormat !== undefined ? "response_format" : undefined
}

export const endpoint = (model: string, method: string) => ({
  path: `/v1beta/${model.includes("/") ? model : `models/${model}`}:${method}`,
  authorization: (secret: string) => ({ "x-goog-api-key": secret })
})
