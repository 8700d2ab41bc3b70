import { Predicate } from "effect"
import { make } from "../../../src/providers/gemini/index.ts"
import { type Answer, type Refusal, type Turn, turn, type Understood } from "../../contracts/ChatHarness.ts"
import { type ChatWire, type EncodedAnswer, halves, list, record, records, string } from "../../contracts/ChatHosts.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"

export type Chunk = Readonly<Record<string, unknown>>

/** A chunk of an answer, or all of it. */
export const chunk = (parts: ReadonlyArray<unknown>, finishReason?: string, usageMetadata?: unknown): Chunk => ({
  candidates: [{ content: { role: "model", parts }, index: 0, ...(finishReason && { finishReason }) }],
  ...(usageMetadata === undefined ? undefined : { usageMetadata }),
  modelVersion: "gemini-3-test",
  responseId: "r-1"
})

const textOf = (parts: ReadonlyArray<Record<PropertyKey, unknown>>): string =>
  parts.map(({ text }) => string(text)).join("")

const turnsOf = (content: Record<PropertyKey, unknown>): ReadonlyArray<Turn> => {
  const parts = records(content.parts)
  const of = (kind: string) => parts.map((part) => part[kind]).filter(Predicate.isRecord)
  const results = of("functionResponse")
  if (results.length > 0) {
    return results.map(({ id, response }) => turn("tool", string(record(response).output), { answers: string(id) }))
  }
  const said = turn(content.role === "model" ? "assistant" : "user", textOf(parts), {
    images: of("inlineData").map(({ data, mimeType }) => `data:${string(mimeType)};base64,${string(data)}`),
    calls: of("functionCall").map(({ args, id, name }) => ({ id: string(id), name: string(name), arguments: args }))
  })
  return [said]
}

const choiceOf = (config: unknown): Understood["toolChoice"] => {
  const { allowedFunctionNames, mode } = record(record(config).functionCallingConfig)
  const [name] = list(allowedFunctionNames)
  if (mode === "ANY") return name === undefined ? "required" : { name: string(name) }
  return mode === "AUTO" ? "auto" : mode === "NONE" ? "none" : undefined
}

/** Reads the model and the method from a path. */
export const called = (path: string) => {
  const [, model = "", method = "", query = ""] = /^\/v1beta\/models\/([^:]+):(\w+)(.*)$/.exec(path) ?? []
  return { model, method, query }
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

/** Errors in Google's format. The code is the status. */
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

const isError = (refusal: Refusal): refusal is keyof typeof errors => refusal in errors

/** Each call comes complete in its own chunk. There is no opening event. */
export const wire = (answer: Answer): EncodedAnswer => {
  const { content, finish, reasoning, toolCalls = [] } = answer
  const usage = usageOnWire(answer)
  const calls = toolCalls.map(({ arguments: input, id, name }) => ({
    functionCall: { id, name, args: JSON.parse(input) }
  }))
  const thoughts = (text: string) => ({ text, thought: true })
  const texts = (text: string) => ({ text })
  const parts = (split: (text: string) => ReadonlyArray<string>) => [
    ...(reasoning === undefined ? [] : split(reasoning).map(thoughts)),
    ...(content === undefined ? [] : split(content).map(texts)),
    ...calls
  ]
  return {
    body: chunk(
      parts((text) => [text]),
      finishOnWire[finish],
      usage
    ),
    opening: [],
    output: parts(halves).map((part) => Fake.event(chunk([part]))),
    end: [Fake.event(chunk([{ text: "" }], finishOnWire[finish], usage))]
  }
}

const errorInside = { error: { code: 500, status: "INTERNAL", message: "boom" } }
const blocked = { promptFeedback: { blockReason: "PROHIBITED_CONTENT" }, usageMetadata: { promptTokenCount: 9 } }

export const gemini: ChatWire = {
  adapter: "gemini",
  make,
  model: "gemini-3-test",
  basePath: "",
  has: {
    features: ["tools", "vision", "response_format", "web_search", "reasoning", "sampling"],
    stop: true,
    cached: true,
    cacheWrites: false,
    withholding: false,
    singleCall: false
  },
  wantsStream: ({ path }) => path.includes(":streamGenerateContent"),
  understand: ({ body: input, path }) => {
    const body = record(input)
    const config = record(body.generationConfig)
    const { method, model, query } = called(path)
    return {
      model,
      stream: method === "streamGenerateContent" && query === "?alt=sse",
      system: textOf(records(record(body.systemInstruction).parts)),
      turns: records(body.contents).flatMap(turnsOf),
      maxTokens: typeof config.maxOutputTokens === "number" ? config.maxOutputTokens : undefined,
      stop: list(config.stopSequences).map(string),
      tools: records(body.tools)
        .flatMap(({ functionDeclarations }) => records(functionDeclarations))
        .map(({ name, parametersJsonSchema: parameters }) => ({ name: string(name), parameters })),
      toolChoice: choiceOf(body.toolConfig),
      json: config.responseMimeType === "application/json",
      schema: config.responseJsonSchema,
      temperature: config.temperature,
      topP: config.topP,
      reasons: record(config.thinkingConfig).thinkingLevel !== undefined,
      searches: records(body.tools).some(({ googleSearch }) => googleSearch !== undefined)
    }
  },
  encode: wire,
  rawCall: {
    isText: false,
    answer: (input) => {
      const body = chunk([{ functionCall: { id: "call_a", name: "f", args: input } }], "STOP")
      return { body, events: [Fake.event(body)] }
    }
  },
  refuse: (refusal) =>
    isError(refusal)
      ? { status: errors[refusal].code, body: { error: errors[refusal] } }
      : { status: 200, body: blocked },
  errorInside: { body: errorInside, event: Fake.event(errorInside) },
  countedError: (answer) => {
    const body = { ...errorInside, usageMetadata: usageOnWire(answer) }
    return { body, event: Fake.event(body) }
  },
  aimock: {
    describe: (answer) => ({
      ...(answer.usage && { usage: { promptTokenCount: answer.usage.prompt, candidatesTokenCount: 13 } }),
      // By default, it ends calls with a finishReason that Google does not have.
      ...(answer.toolCalls === undefined && { finishReason: finishOnWire[answer.finish] })
    }),
    refuse: (refusal) => {
      if (!isError(refusal)) return { response: { content: "", finishReason: "SAFETY" } }
      if (refusal === "key")
        return { response: { error: { message: "Denied", type: "PERMISSION_DENIED" }, status: 403 } }
      const { code, message, status } = errors[refusal]
      return { response: { error: { message, type: status }, status: code, retryAfter: 7 } }
    }
  }
}
