import { Predicate } from "effect"
import type { FinishReason } from "../../../src/domain/Chat.ts"
import type { Answer, Turn, Understood, Weather } from "../../contracts/ChatHarness.ts"

export const record = (value: unknown): Record<PropertyKey, unknown> => (Predicate.isRecord(value) ? value : {})
const list = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])
const string = (value: unknown): string => (typeof value === "string" ? value : "")
const text = (content: unknown): string =>
  typeof content === "string"
    ? content
    : list(content)
        .map((part) => string(record(part).text))
        .join("")

const imageOf = (block: Record<PropertyKey, unknown>): ReadonlyArray<string> => {
  const { data, media_type: type, url } = record(block.source)
  if (block.type !== "image") return []
  return [typeof url === "string" ? url : `data:${string(type)};base64,${string(data)}`]
}

/** A user's turn holds the results of calls beside what the user says. */
const turnsOf = (value: unknown): ReadonlyArray<Turn> => {
  const { content, role } = record(value)
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : list(content).map(record)
  const results = blocks.filter(({ type }) => type === "tool_result")
  const said = blocks.filter(({ type }) => type !== "tool_result")
  const turn: Turn = {
    role: role === "assistant" ? role : "user",
    text: text(said),
    images: said.flatMap(imageOf),
    calls: said
      .filter(({ type }) => type === "tool_use")
      .map(({ id, input, name }) => ({ id: string(id), name: string(name), arguments: input })),
    answers: undefined
  }
  return [
    ...results.map(({ content: result, tool_use_id: id }): Turn => {
      return { role: "tool", text: text(result), images: [], calls: [], answers: string(id) }
    }),
    ...(said.length === 0 ? [] : [turn])
  ]
}

const choices = { auto: "auto", none: "none", any: "required" } as const
const isChoice = (type: unknown): type is keyof typeof choices => typeof type === "string" && type in choices

const choiceOf = (given: unknown): Understood["toolChoice"] => {
  const { name, type } = record(given)
  if (isChoice(type)) return choices[type]
  return type === "tool" ? { name: string(name) } : undefined
}

export const understood = (given: unknown): Understood => {
  const body = record(given)
  return {
    model: string(body.model),
    stream: body.stream === true,
    system: text(body.system),
    turns: list(body.messages).flatMap(turnsOf),
    maxTokens: typeof body.max_tokens === "number" ? body.max_tokens : undefined,
    stop: list(body.stop_sequences).map(string),
    tools: list(body.tools).map((tool) => {
      const { input_schema: parameters, name } = record(tool)
      return { name: string(name), parameters }
    }),
    toolChoice: choiceOf(body.tool_choice),
    schema: undefined
  }
}

export const usageOnWire = ({ usage }: Answer) => ({
  input_tokens: usage === undefined ? 0 : usage.prompt - usage.cached - usage.cacheWrite,
  cache_read_input_tokens: usage?.cached ?? 0,
  cache_creation_input_tokens: usage?.cacheWrite ?? 0,
  output_tokens: usage?.completion ?? 0,
  output_tokens_details: usage === undefined ? null : { thinking_tokens: usage.reasoning }
})

const failing = (status: number, type: string, message: string, details?: unknown) => ({
  status,
  error: { type, message, ...(details === undefined ? undefined : { details }) }
})

/** Errors as the Messages API says them. */
export const errors = {
  limit: failing(429, "rate_limit_error", "This request would exceed your organization's rate limit."),
  funds: failing(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
  key: failing(401, "authentication_error", "invalid x-api-key"),
  request: failing(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
  image: failing(400, "invalid_request_error", "messages.0.content.1.image.source.base64: Could not process image"),
  moderation: failing(400, "invalid_request_error", "Output blocked by content filtering policy"),
  server: failing(529, "overloaded_error", "Overloaded"),
  missing: failing(404, "not_found_error", "model: claude-model-1")
} as const

export const isError = (weather: Weather): weather is keyof typeof errors => weather in errors

export const event = (data: { readonly type: string; readonly [field: string]: unknown }): string =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`

export const stopReasons: Readonly<Record<FinishReason, string>> = {
  stop: "end_turn",
  length: "max_tokens",
  tool_calls: "tool_use",
  content_filter: "refusal"
}

const pieces = (whole: string) => [whole.slice(0, 5), whole.slice(5)]
const block = (index: number, start: object, deltas: ReadonlyArray<object>) => [
  event({ type: "content_block_start", index, content_block: start }),
  ...deltas.map((delta) => event({ type: "content_block_delta", index, delta })),
  event({ type: "content_block_stop", index })
]

const blocksOf = ({ content, reasoning, toolCalls = [] }: Answer) => {
  const signature = "EqQBCgIYAhIM"
  const thought = reasoning === undefined ? [] : [{ type: "thinking" as const, thinking: reasoning, signature }]
  const said = content === undefined ? [] : [{ type: "text" as const, text: content }]
  const calls = toolCalls.map(({ arguments: given, id, name }) => {
    return { block: { type: "tool_use" as const, id, name }, input: record(JSON.parse(given)), given }
  })
  return { thought, said, calls }
}

/** A whole answer, and its stream in pieces: opening, output, end. */
export const wire = (answer: Answer) => {
  const { calls, said, thought } = blocksOf(answer)
  const usage = usageOnWire(answer)
  const message = {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude-model-1",
    content: [...thought, ...said, ...calls.map(({ block: call, input }) => ({ ...call, input }))],
    stop_reason: stopReasons[answer.finish],
    stop_sequence: null,
    usage
  }
  const blocks = [
    ...thought.map(({ signature, thinking }) => ({
      start: { type: "thinking", thinking: "", signature: "" },
      deltas: [
        ...pieces(thinking).map((piece) => ({ type: "thinking_delta", thinking: piece })),
        { type: "signature_delta", signature }
      ]
    })),
    ...said.map(({ text: whole }) => ({
      start: { type: "text", text: "" },
      deltas: pieces(whole).map((piece) => ({ type: "text_delta", text: piece }))
    })),
    ...calls.map(({ block: call, given }) => ({
      start: { ...call, input: {} },
      deltas: ["", ...pieces(given)].map((piece) => ({ type: "input_json_delta", partial_json: piece }))
    }))
  ]
  // As the API does: the opening counts the prompt and what little has been written by then.
  const begun = {
    ...message,
    content: [],
    stop_reason: null,
    usage: { ...usage, output_tokens: usage.output_tokens && 1 }
  }
  return {
    body: message,
    opening: event({ type: "message_start", message: begun }) + event({ type: "ping" }),
    output: blocks.flatMap(({ deltas, start }, index) => block(index, start, deltas)),
    end: [
      event({ type: "message_delta", delta: { stop_reason: message.stop_reason, stop_sequence: null }, usage }),
      event({ type: "message_stop" })
    ]
  }
}
