import { make } from "../../../src/providers/openai-chat/index.ts"
import { type Answer, type Refusal, type Turn, turn } from "../../contracts/ChatHarness.ts"
import {
  bodyWantsStream,
  type ChatWire,
  choiceOf,
  type EncodedAnswer,
  halves,
  list,
  record,
  records,
  string,
  text
} from "../../contracts/ChatHosts.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"

const turnOf = ({ content, role, tool_call_id, tool_calls }: Record<PropertyKey, unknown>): Turn =>
  turn(role === "assistant" || role === "tool" ? role : "user", text(content), {
    images: records(content).flatMap(({ image_url }) => {
      const { url } = record(image_url)
      return typeof url === "string" ? [url] : []
    }),
    calls: records(tool_calls).map(({ function: called, id }) => {
      const { arguments: input, name } = record(called)
      return { id: string(id), name: string(name), arguments: JSON.parse(string(input)) }
    }),
    answers: typeof tool_call_id === "string" ? tool_call_id : undefined
  })

export const usageOnWire = ({ usage }: Answer) =>
  usage && {
    prompt_tokens: usage.prompt,
    completion_tokens: usage.completion,
    total_tokens: usage.prompt + usage.completion,
    prompt_tokens_details: { cached_tokens: usage.cached, cache_write_tokens: usage.cacheWrite },
    completion_tokens_details: { reasoning_tokens: usage.reasoning }
  }

const refusalOf = (status: number, code: string, type = "invalid_request_error") => {
  return { status, error: { message: "No", type, code } }
}

/** Errors in OpenAI's format. */
export const errors: Readonly<Record<Refusal, ReturnType<typeof refusalOf>>> = {
  limit: refusalOf(429, "rate_limit_exceeded", "tokens"),
  funds: refusalOf(429, "insufficient_quota", "insufficient_quota"),
  key: refusalOf(401, "invalid_api_key"),
  request: refusalOf(400, "context_length_exceeded"),
  image: refusalOf(400, "invalid_image_format"),
  moderation: refusalOf(400, "content_policy_violation"),
  server: refusalOf(503, "overloaded", "server_error"),
  missing: refusalOf(404, "model_not_found")
}

export const refuse = (refusal: Refusal) => {
  const { error, status } = errors[refusal]
  return { status, body: { error }, headers: refusal === "limit" ? { "retry-after": "7" } : {} }
}

export const refusing = (code: string, param: string) =>
  Fake.json(400, { error: { message: "m", type: "invalid_request_error", code, param } })

export const chunk = (delta: unknown, finish_reason: string | null = null, more: object = {}) =>
  Fake.event({ id: "x", object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }], ...more })

export const wire = (answer: Answer): EncodedAnswer => {
  const { content, finish, reasoning, toolCalls } = answer
  const calls = toolCalls?.map(({ id, ...called }) => ({ id, type: "function", function: called }))
  const message = {
    role: "assistant",
    content: content ?? null,
    ...(reasoning === undefined ? undefined : { reasoning_content: reasoning }),
    ...(calls === undefined ? undefined : { tool_calls: calls })
  }
  const usage = usageOnWire(answer)
  const pieces = (whole: string | undefined) => (whole === undefined ? [] : halves(whole))
  return {
    body: { id: "x", object: "chat.completion", choices: [{ index: 0, message, finish_reason: finish }], usage },
    opening: [chunk({ role: "assistant", content: "" })],
    output: [
      ...pieces(reasoning).map((piece) => chunk({ reasoning_content: piece })),
      ...pieces(content).map((piece) => chunk({ content: piece })),
      ...(calls ?? []).flatMap(({ function: { arguments: input, name }, id }, index) => [
        chunk({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] }),
        ...halves(input).map((piece) => chunk({ tool_calls: [{ index, function: { arguments: piece } }] }))
      ])
    ],
    end: [chunk({}, finish), ...(usage === undefined ? [] : [Fake.event({ choices: [], usage })]), Fake.done]
  }
}

const errorInside = { error: { message: "boom", type: "server_error" } }

export const openAiChat: ChatWire = {
  adapter: "openai-chat",
  make,
  model: "vendor/model-1",
  basePath: "/v1",
  has: {
    features: ["tools", "vision", "response_format", "web_search", "reasoning", "sampling"],
    stop: true,
    cached: true,
    cacheWrites: true,
    withholding: true
  },
  options: { web_search: { plugins: [{ id: "web" }] } },
  wantsStream: bodyWantsStream,
  understand: ({ body: input }) => {
    const body = record(input)
    const isSystem = ({ role }: Record<PropertyKey, unknown>) => role === "system"
    const messages = records(body.messages)
    return {
      model: string(body.model),
      stream: body.stream === true,
      system: messages
        .filter(isSystem)
        .map(({ content }) => text(content))
        .join(""),
      turns: messages.filter((message) => !isSystem(message)).map(turnOf),
      maxTokens: typeof body.max_tokens === "number" ? body.max_tokens : undefined,
      stop: list(body.stop).map(string),
      tools: records(body.tools).map(({ function: declared }) => {
        const { name, parameters } = record(declared)
        return { name: string(name), parameters }
      }),
      toolChoice: choiceOf(body.tool_choice, (choice) => record(choice.function).name),
      parallel: body.parallel_tool_calls === false ? false : undefined,
      json: body.response_format !== undefined,
      schema: record(record(body.response_format).json_schema).schema,
      temperature: body.temperature,
      topP: body.top_p,
      reasons: body.reasoning_effort !== undefined,
      searches: body.plugins !== undefined
    }
  },
  encode: wire,
  rawCall: {
    isText: true,
    answer: (input) => {
      const tool_calls = [{ index: 0, id: "call_a", function: { name: "f", arguments: input } }]
      return {
        body: { choices: [{ message: { tool_calls }, finish_reason: "tool_calls" }] },
        events: [chunk({ tool_calls }), chunk({}, "tool_calls"), Fake.done]
      }
    }
  },
  refuse,
  errorInside: { body: errorInside, event: Fake.event(errorInside) },
  countedError: (answer) => {
    const body = { ...errorInside, usage: usageOnWire(answer) }
    return { body, event: Fake.event(body) }
  },
  aimock: {
    describe: (answer) => ({
      usage: usageOnWire(answer) ?? { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
      finishReason: answer.finish
    }),
    refuse: (refusal) => ({ response: { ...errors[refusal], retryAfter: 7 } })
  }
}
