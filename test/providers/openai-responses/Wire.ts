import type {
  Response,
  ResponseError,
  ResponseOutputItem,
  ResponseStreamEvent,
  ResponseUsage
} from "openai/resources/responses/responses"
import { make } from "../../../src/providers/openai-responses/index.ts"
import { type Answer, type Turn, turn } from "../../contracts/ChatHarness.ts"
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
import * as OpenAiChat from "../openai-chat/Wire.ts"

const usageOf = ({ usage }: Answer): { usage?: ResponseUsage } =>
  usage === undefined
    ? {}
    : {
        usage: {
          input_tokens: usage.prompt,
          input_tokens_details: { cached_tokens: usage.cached, cache_write_tokens: usage.cacheWrite },
          output_tokens: usage.completion,
          output_tokens_details: { reasoning_tokens: usage.reasoning },
          total_tokens: usage.prompt + usage.completion
        }
      }

export const response = (fields: Partial<WireResponse>): WireResponse => ({
  id: "resp_1",
  object: "response",
  created_at: 1_760_000_000,
  status: "completed",
  error: null,
  incomplete_details: null,
  instructions: null,
  metadata: {},
  model: "vendor/model-1",
  output: [],
  parallel_tool_calls: true,
  temperature: 1,
  tool_choice: "auto",
  tools: [],
  top_p: 1,
  ...fields
})

export const failedWith = (code: ResponseError["code"]): WireResponse =>
  response({ status: "failed", error: { code, message: "m" } })

/** The items of an answer. An item's id always differs from its call id. */
export const itemsOf = ({ content, reasoning, toolCalls = [] }: Answer): Array<ResponseOutputItem> => [
  ...(reasoning === undefined
    ? []
    : [{ type: "reasoning" as const, id: "rs_1", summary: [{ type: "summary_text" as const, text: reasoning }] }]),
  ...(content === undefined
    ? []
    : [
        {
          type: "message" as const,
          id: "msg_1",
          role: "assistant" as const,
          status: "completed" as const,
          content: [{ type: "output_text" as const, text: content, annotations: [] }]
        }
      ]),
  ...toolCalls.map(({ arguments: value, id, name }, index) => ({
    type: "function_call" as const,
    id: `fc_${index}`,
    call_id: id,
    name,
    arguments: value,
    status: "completed" as const
  }))
]

const cuts = new Map([
  ["length", "max_output_tokens" as const],
  ["content_filter", "content_filter" as const]
])

export const whole = (answer: Answer): WireResponse => {
  const cut = cuts.get(answer.finish)
  return response({
    output: itemsOf(answer),
    ...(cut === undefined ? undefined : { status: "incomplete", incomplete_details: { reason: cut } }),
    ...usageOf(answer)
  })
}

/** The official client adds `output_text`. */
export type WireResponse = Omit<Response, "output_text">

type OnWire<E> = E extends { response: Response }
  ? Omit<E, "sequence_number" | "response"> & { response: WireResponse }
  : E extends unknown
    ? Omit<E, "sequence_number">
    : never
export type Event = OnWire<ResponseStreamEvent>

/** The events of one item, with the vendor's order and repetitions. */
const eventsOfItem = (item: ResponseOutputItem, output_index: number): ReadonlyArray<Event> => {
  const done = { type: "response.output_item.done", output_index, item } as const
  const added = (begun: ResponseOutputItem) =>
    ({ type: "response.output_item.added", output_index, item: begun }) as const
  if (item.type === "reasoning") {
    const at = { item_id: item.id, output_index, summary_index: 0 }
    const text = item.summary[0]?.text ?? ""
    const part = { type: "summary_text", text } as const
    return [
      added({ ...item, summary: [] }),
      { type: "response.reasoning_summary_part.added", ...at, part: { ...part, text: "" } },
      ...halves(text).map((delta): Event => ({ type: "response.reasoning_summary_text.delta", ...at, delta })),
      { type: "response.reasoning_summary_text.done", ...at, text },
      { type: "response.reasoning_summary_part.done", ...at, part },
      done
    ]
  }
  if (item.type === "message") {
    const at = { item_id: item.id, output_index, content_index: 0 }
    const part = item.content[0]
    if (part?.type !== "output_text") return []
    const { text } = part
    return [
      added({ ...item, status: "in_progress", content: [] }),
      { type: "response.content_part.added", ...at, part: { ...part, text: "" } },
      ...halves(text).map((delta): Event => ({ type: "response.output_text.delta", ...at, delta, logprobs: [] })),
      { type: "response.output_text.done", ...at, text, logprobs: [] },
      { type: "response.content_part.done", ...at, part },
      done
    ]
  }
  if (item.type !== "function_call") return [added(item), done]
  const { arguments: text, name } = item
  const at = { item_id: item.id ?? "", output_index }
  return [
    added({ ...item, status: "in_progress", arguments: "" }),
    ...halves(text).map((delta): Event => ({ type: "response.function_call_arguments.delta", ...at, delta })),
    { type: "response.function_call_arguments.done", ...at, name, arguments: text },
    done
  ]
}

/** Adds the SSE name, the sequence number and, for deltas, the obfuscation padding. */
export const written = (events: ReadonlyArray<Event>): ReadonlyArray<string> =>
  events.map((event, sequence_number) => {
    const obfuscation = event.type.endsWith(".delta") ? { obfuscation: "k9Xw3" } : undefined
    return `event: ${event.type}\n${Fake.event({ ...event, sequence_number, ...obfuscation })}`
  })

export const begun = response({ status: "in_progress" })

/** The stream of a complete response. */
export const streamOf = (body: WireResponse): EncodedAnswer & { readonly body: WireResponse } => {
  const end: Event = {
    type: body.status === "incomplete" ? "response.incomplete" : "response.completed",
    response: body
  }
  const all = written([
    { type: "response.created", response: begun },
    { type: "response.in_progress", response: begun },
    ...body.output.flatMap(eventsOfItem),
    end
  ])
  return { body, opening: all.slice(0, 2), output: all.slice(2, -1), end: all.slice(-1) }
}

export const wire = (answer: Answer) => streamOf(whole(answer))

/** The replies with this answer, in one piece and as a stream. */
export const inOnePiece = (answer: Answer) => Fake.json(200, whole(answer))
export const inEvents = (answer: Answer) => {
  const { end, opening, output } = wire(answer)
  return Fake.sse(...opening, ...output, ...end)
}

/** Consecutive calls, and a message before them, are one turn. */
const turnsOf = (items: ReadonlyArray<Record<PropertyKey, unknown>>): ReadonlyArray<Turn> => {
  const turns: Array<Turn> = []
  for (const item of items) {
    if (item.type === "function_call") {
      const call = { id: string(item.call_id), name: string(item.name), arguments: JSON.parse(string(item.arguments)) }
      const last = turns.at(-1)?.role === "assistant" ? turns.pop() : undefined
      turns.push(turn("assistant", last?.text ?? "", { calls: [...(last?.calls ?? []), call] }))
    } else if (item.type === "function_call_output") {
      turns.push(turn("tool", text(item.output), { answers: string(item.call_id) }))
    } else {
      const images = records(item.content).flatMap(({ image_url: url }) => (typeof url === "string" ? [url] : []))
      turns.push(turn(item.role === "assistant" ? "assistant" : "user", text(item.content), { images }))
    }
  }
  return turns
}

const failed = failedWith("server_error")

export const openAiResponses: ChatWire = {
  adapter: "openai-responses",
  make,
  model: "vendor/model-1",
  basePath: "/v1",
  has: {
    features: ["tools", "vision", "response_format", "web_search", "reasoning"],
    stop: false,
    cached: true,
    cacheWrites: true,
    withholding: true
  },
  wantsStream: bodyWantsStream,
  understand: ({ body: value }) => {
    const body = record(value)
    const isSystem = ({ role }: Record<PropertyKey, unknown>) => role === "developer"
    const input = records(body.input)
    return {
      model: string(body.model),
      stream: body.stream === true,
      system:
        string(body.instructions) +
        input
          .filter(isSystem)
          .map(({ content }) => text(content))
          .join(""),
      turns: turnsOf(input.filter((item) => !isSystem(item))),
      maxTokens: typeof body.max_output_tokens === "number" ? body.max_output_tokens : undefined,
      stop: list(body.stop).map(string),
      tools: records(body.tools).map(({ name, parameters }) => ({ name: string(name), parameters })),
      toolChoice: choiceOf(body.tool_choice, ({ name }) => name),
      parallel: body.parallel_tool_calls === false ? false : undefined,
      json: record(body.text).format !== undefined,
      schema: record(record(body.text).format).schema,
      reasons: record(body.reasoning).effort !== undefined,
      searches: records(body.tools).some(({ type }) => type === "web_search")
    }
  },
  encode: wire,
  rawCall: {
    isText: true,
    answer: (value) => {
      const item = { type: "function_call", id: "fc_1", call_id: "call_a", name: "f", arguments: value }
      const body = { ...response({}), output: [item] }
      return {
        body,
        events: [
          Fake.event({ type: "response.output_item.done", output_index: 0, item }),
          Fake.event({ type: "response.completed", response: body })
        ]
      }
    }
  },
  refuse: OpenAiChat.refuse,
  errorInside: { body: failed, event: written([{ type: "response.failed", response: failed }]).join("") },
  countedError: (answer) => {
    const body = { ...failed, ...usageOf(answer) }
    return { body, event: written([{ type: "response.failed", response: body }]).join("") }
  },
  aimock: {
    model: "gpt-5-fake",
    lacks: { withholding: false },
    describe: (answer) => {
      const usage = OpenAiChat.usageOnWire(answer)
      return { finishReason: answer.finish, ...(usage && { usage }) }
    },
    refuse: (refusal) => ({ response: { ...OpenAiChat.errors[refusal], retryAfter: 7 } })
  }
}
