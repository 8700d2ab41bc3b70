import { Predicate, Redacted } from "effect"
import type { Route } from "../../../src/domain/Model.ts"
import type { Answer, Turn, Understood } from "../../contracts/ChatHarness.ts"

export const secret = "AIza-upstream-secret"

export const routeTo = (baseUrl: string, options: Route["options"] = {}): Route => ({
  id: "ours@fake",
  provider: { name: "fake", adapter: "gemini", baseUrl, credential: Redacted.make(secret), headers: {} },
  model: "gemini-3-test",
  preference: 1,
  weight: 1,
  capabilities: undefined,
  cost: undefined,
  options
})

export const record = (value: unknown): Record<PropertyKey, unknown> => (Predicate.isRecord(value) ? value : {})
export const list = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])
const string = (value: unknown): string => (typeof value === "string" ? value : "")

const textOf = (parts: ReadonlyArray<Record<PropertyKey, unknown>>): string =>
  parts.map(({ text }) => string(text)).join("")

const turnsOf = (value: unknown): ReadonlyArray<Turn> => {
  const content = record(value)
  const parts = list(content.parts).map(record)
  const results = parts.map(({ functionResponse }) => functionResponse).filter(Predicate.isRecord)
  if (results.length > 0) {
    return results.map(({ id, response }) => {
      return { role: "tool", text: string(record(response).output), images: [], calls: [], answers: string(id) }
    })
  }
  const images = parts.map(({ inlineData }) => inlineData).filter(Predicate.isRecord)
  const calls = parts.map(({ functionCall }) => functionCall).filter(Predicate.isRecord)
  return [
    {
      role: content.role === "model" ? "assistant" : "user",
      text: textOf(parts),
      images: images.map(({ data, mimeType }) => `data:${string(mimeType)};base64,${string(data)}`),
      calls: calls.map(({ args, id, name }) => ({ id: string(id), name: string(name), arguments: args })),
      answers: undefined
    }
  ]
}

const choiceOf = (config: Record<PropertyKey, unknown>): Understood["toolChoice"] => {
  const { allowedFunctionNames, mode } = record(config.functionCallingConfig)
  const [name] = list(allowedFunctionNames)
  if (mode === "ANY") return name === undefined ? "required" : { name: string(name) }
  return mode === "AUTO" ? "auto" : mode === "NONE" ? "none" : undefined
}

/** The model and the method that a path names. */
export const called = (path: string) => {
  const [, model = "", method = "", query = ""] = /^\/v1beta\/models\/([^:]+):(\w+)(.*)$/.exec(path) ?? []
  return { model, method, query }
}

export const understood = (path: string, given: unknown): Understood => {
  const body = record(given)
  const config = record(body.generationConfig)
  const { method, model, query } = called(path)
  return {
    model,
    stream: method === "streamGenerateContent" && query === "?alt=sse",
    system: textOf(list(record(body.systemInstruction).parts).map(record)),
    turns: list(body.contents).flatMap(turnsOf),
    maxTokens: typeof config.maxOutputTokens === "number" ? config.maxOutputTokens : undefined,
    stop: list(config.stopSequences).map(string),
    tools: list(body.tools)
      .flatMap((tool) => list(record(tool).functionDeclarations))
      .map((declared) => {
        const { name, parametersJsonSchema } = record(declared)
        return { name: string(name), parameters: parametersJsonSchema }
      }),
    toolChoice: choiceOf(record(body.toolConfig)),
    schema: config.responseJsonSchema
  }
}

export const usageOnWire = ({ usage }: Answer) =>
  usage && {
    promptTokenCount: usage.prompt,
    cachedContentTokenCount: usage.cached,
    candidatesTokenCount: usage.completion - usage.reasoning,
    thoughtsTokenCount: usage.reasoning,
    totalTokenCount: usage.prompt + usage.completion,
    promptTokensDetails: [{ modality: "TEXT", tokenCount: usage.prompt }]
  }

export const finishOnWire = {
  stop: "STOP",
  tool_calls: "STOP",
  length: "MAX_TOKENS",
  content_filter: "SAFETY"
} as const

const detail = (type: string, more: object) => ({ "@type": `type.googleapis.com/google.rpc.${type}`, ...more })

/** Errors as the host says them: its code is the status. */
export const errors = {
  limit: {
    code: 429,
    status: "RESOURCE_EXHAUSTED",
    message: "You exceeded your current quota, please check your plan and billing details.",
    details: [detail("Help", { links: [] }), detail("RetryInfo", { retryDelay: "7s" })]
  },
  funds: { code: 402, status: "RESOURCE_EXHAUSTED", message: "Your prepayment credits are depleted.", details: [] },
  key: {
    code: 400,
    status: "INVALID_ARGUMENT",
    message: "API key not valid. Please pass a valid API key.",
    details: [detail("ErrorInfo", { reason: "API_KEY_INVALID", domain: "googleapis.com" })]
  },
  request: {
    code: 400,
    status: "INVALID_ARGUMENT",
    message: "The input token count exceeds the maximum.",
    details: []
  },
  image: { code: 400, status: "INVALID_ARGUMENT", message: "Unable to process input image.", details: [] },
  server: { code: 503, status: "UNAVAILABLE", message: "The model is overloaded.", details: [] },
  missing: { code: 404, status: "NOT_FOUND", message: "models/x is not found for API version v1beta.", details: [] }
} as const
