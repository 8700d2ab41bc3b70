import type { FinishReason } from "../../../src/domain/Chat.ts"
import { make } from "../../../src/providers/anthropic/index.ts"
import { type Answer, type Refusal, type Turn, turn, type Understood } from "../../contracts/ChatHarness.ts"
import {
  bodyWantsStream,
  type ChatWire,
  type EncodedAnswer,
  halves,
  record,
  records,
  string,
  text
} from "../../contracts/ChatHosts.ts"

export const event = (data: { readonly type: string; readonly [field: string]: unknown }): string =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`

const imageOf = ({ source, type }: Record<PropertyKey, unknown>): ReadonlyArray<string> => {
  const { data, media_type, url } = record(source)
  if (type !== "image") return []
  return [typeof url === "string" ? url : `data:${string(media_type)};base64,${string(data)}`]
}

/** A user turn contains the results of calls and the user's text. */
const turnsOf = ({ content, role }: Record<PropertyKey, unknown>): ReadonlyArray<Turn> => {
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : records(content)
  const results = blocks.filter(({ type }) => type === "tool_result")
  const others = blocks.filter(({ type }) => type !== "tool_result")
  const calls = others
    .filter(({ type }) => type === "tool_use")
    .map(({ id, input, name }) => ({ id: string(id), name: string(name), arguments: input }))
  const said = turn(role === "assistant" ? role : "user", text(others), { images: others.flatMap(imageOf), calls })
  return [
    ...results.map(({ content: result, tool_use_id: id }) => turn("tool", text(result), { answers: string(id) })),
    ...(others.length === 0 ? [] : [said])
  ]
}

const choiceOf = (choice: unknown): Understood["toolChoice"] => {
  const { name, type } = record(choice)
  if (type === "tool") return { name: string(name) }
  return type === "any" ? "required" : type === "auto" || type === "none" ? type : undefined
}

export const usageOnWire = ({ usage }: Answer) => ({
  input_tokens: usage === undefined ? 0 : usage.prompt - usage.cached - usage.cacheWrite,
  cache_read_input_tokens: usage?.cached ?? 0,
  cache_creation_input_tokens: usage?.cacheWrite ?? 0,
  ...(usage?.cacheWriteHour !== undefined && {
    cache_creation: {
      ephemeral_5m_input_tokens: usage.cacheWrite - usage.cacheWriteHour,
      ephemeral_1h_input_tokens: usage.cacheWriteHour
    }
  }),
  output_tokens: usage?.completion ?? 0,
  output_tokens_details: usage === undefined ? null : { thinking_tokens: usage.reasoning }
})

export const stopReasons: Readonly<Record<FinishReason, string>> = {
  stop: "end_turn",
  length: "max_tokens",
  tool_calls: "tool_use",
  content_filter: "refusal"
}

const refusalOf = (status: number, type: string, message: string) => ({ status, error: { type, message } })

/** Errors in the Messages API's format. */
export const errors: Readonly<Record<Refusal, ReturnType<typeof refusalOf>>> = {
  limit: refusalOf(429, "rate_limit_error", "This request would exceed your organization's rate limit."),
  funds: refusalOf(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
  key: refusalOf(401, "authentication_error", "invalid x-api-key"),
  request: refusalOf(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
  image: refusalOf(400, "invalid_request_error", "messages.0.content.1.image.source.base64: Could not process image"),
  moderation: refusalOf(400, "invalid_request_error", "Output blocked by content filtering policy"),
  server: refusalOf(529, "overloaded_error", "Overloaded"),
  missing: refusalOf(404, "not_found_error", "model: claude-model-1")
}

const signature = "EqQBCgIYAhIM"

export const wire = (answer: Answer): EncodedAnswer & { readonly body: object } => {
  const usage = usageOnWire(answer)
  const { content, finish, reasoning, toolCalls = [] } = answer
  const blocks = [
    ...(reasoning === undefined
      ? []
      : [
          {
            whole: { type: "thinking", thinking: reasoning, signature },
            start: { type: "thinking", thinking: "", signature: "" },
            deltas: [
              ...halves(reasoning).map((piece) => ({ type: "thinking_delta", thinking: piece })),
              { type: "signature_delta", signature }
            ]
          }
        ]),
    ...(content === undefined
      ? []
      : [
          {
            whole: { type: "text", text: content },
            start: { type: "text", text: "" },
            deltas: halves(content).map((piece) => ({ type: "text_delta", text: piece }))
          }
        ]),
    ...toolCalls.map(({ arguments: value, id, name }) => ({
      whole: { type: "tool_use", id, name, input: record(JSON.parse(value)) },
      start: { type: "tool_use", id, name, input: {} },
      deltas: ["", ...halves(value)].map((piece) => ({ type: "input_json_delta", partial_json: piece }))
    }))
  ]
  const body = {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude-model-1",
    content: blocks.map(({ whole }) => whole),
    stop_reason: stopReasons[finish],
    stop_sequence: null,
    usage
  }
  // Like the API, the opening event counts the prompt and the first output tokens.
  const begunUsage = { ...usage, output_tokens: usage.output_tokens && 1 }
  const begun = { ...body, content: [], stop_reason: null, usage: begunUsage }
  return {
    body,
    opening: [event({ type: "message_start", message: begun }), event({ type: "ping" })],
    output: blocks.flatMap(({ deltas, start }, index) => [
      event({ type: "content_block_start", index, content_block: start }),
      ...deltas.map((delta) => event({ type: "content_block_delta", index, delta })),
      event({ type: "content_block_stop", index })
    ]),
    end: [
      event({ type: "message_delta", delta: { stop_reason: body.stop_reason, stop_sequence: null }, usage }),
      event({ type: "message_stop" })
    ]
  }
}

const errorInside = { type: "error", error: { type: "api_error", message: "boom" } }

export const anthropic: ChatWire = {
  adapter: "anthropic",
  make,
  model: "claude-model-1",
  basePath: "",
  has: {
    features: ["tools", "vision", "web_search", "reasoning"],
    stop: true,
    cached: true,
    cacheWrites: true,
    withholding: true
  },
  sentStops: (stops) => stops.filter((stop) => stop.trim() !== ""),
  wantsStream: bodyWantsStream,
  understand: ({ body: value }) => {
    const body = record(value)
    return {
      model: string(body.model),
      stream: body.stream === true,
      system: text(body.system),
      turns: records(body.messages).flatMap(turnsOf),
      maxTokens: typeof body.max_tokens === "number" ? body.max_tokens : undefined,
      stop: Array.isArray(body.stop_sequences) ? body.stop_sequences : [],
      tools: records(body.tools).map(({ input_schema: parameters, name }) => ({ name: string(name), parameters })),
      toolChoice: choiceOf(body.tool_choice),
      parallel: record(body.tool_choice).disable_parallel_tool_use === true ? false : undefined,
      schema: record(record(body.output_config).format).schema,
      reasons: ["adaptive", "enabled"].includes(string(record(body.thinking).type)),
      searches: records(body.tools).some(({ type }) => string(type).startsWith("web_search_"))
    }
  },
  encode: wire,
  rawCall: {
    isText: false,
    answer: (value) => {
      const block = { type: "tool_use", id: "call_a", name: "f", input: value }
      const { body, end, opening } = wire({ content: undefined, finish: "tool_calls" })
      return {
        body: { ...body, content: [block] },
        events: [
          ...opening,
          event({ type: "content_block_start", index: 0, content_block: block }),
          event({ type: "content_block_stop", index: 0 }),
          ...end
        ]
      }
    }
  },
  refuse: (refusal) => {
    const { error, status } = errors[refusal]
    const headers = refusal === "limit" ? { "retry-after": "7" } : {}
    return { status, body: { type: "error", error, request_id: "req_1" }, headers }
  },
  errorInside: { body: errorInside, event: event(errorInside) },
  aimock: {
    describe: ({ finish, usage }) => ({
      finishReason: stopReasons[finish],
      ...(usage && { usage: { input_tokens: usage.prompt, output_tokens: usage.completion } })
    }),
    refuse: (refusal) => ({ response: { ...errors[refusal], retryAfter: 7 } })
  }
}
