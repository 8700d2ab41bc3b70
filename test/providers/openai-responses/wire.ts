import type {
  Response,
  ResponseError,
  ResponseOutputItem,
  ResponseStreamEvent,
  ResponseUsage
} from "openai/resources/responses/responses"
import type { Answer } from "../../contracts/ChatHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"

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

/** The items of an answer; an item's own id is never its call's. */
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
  ...toolCalls.map(({ arguments: given, id, name }, index) => ({
    type: "function_call" as const,
    id: `fc_${index}`,
    call_id: id,
    name,
    arguments: given,
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

/** The client adds `output_text` by itself. */
export type WireResponse = Omit<Response, "output_text">

type OnWire<E> = E extends { response: Response }
  ? Omit<E, "sequence_number" | "response"> & { response: WireResponse }
  : E extends unknown
    ? Omit<E, "sequence_number">
    : never
export type Event = OnWire<ResponseStreamEvent>

const pieces = (text: string): ReadonlyArray<string> => [text.slice(0, 5), text.slice(5)]

/** The events of one item, in the order and with the repetitions of the vendor's own. */
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
      ...pieces(text).map((delta): Event => ({ type: "response.reasoning_summary_text.delta", ...at, delta })),
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
      ...pieces(text).map((delta): Event => ({ type: "response.output_text.delta", ...at, delta, logprobs: [] })),
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
    ...pieces(text).map((delta): Event => ({ type: "response.function_call_arguments.delta", ...at, delta })),
    { type: "response.function_call_arguments.done", ...at, name, arguments: text },
    done
  ]
}

export const begun = response({ status: "in_progress" })

/** A whole answer's stream in three: opening, output, end. */
export const streamed = (of: WireResponse) => {
  const opening: ReadonlyArray<Event> = [
    { type: "response.created", response: begun },
    { type: "response.in_progress", response: begun }
  ]
  const end: ReadonlyArray<Event> = [
    { type: of.status === "incomplete" ? "response.incomplete" : "response.completed", response: of }
  ]
  return { opening, output: of.output.flatMap(eventsOfItem), end }
}

/** Events as they are written: with their name, their number and, for deltas, a padding against eavesdroppers. */
export const written = (events: ReadonlyArray<Event>): ReadonlyArray<string> =>
  events.map((event, sequence_number) => {
    const obfuscation = event.type.endsWith(".delta") ? { obfuscation: "k9Xw3" } : undefined
    return `event: ${event.type}\n${Fake.event({ ...event, sequence_number, ...obfuscation })}`
  })
