import { Effect } from "effect"
import { called, hear, joined, request } from "../../contracts/ChatHarness.ts"
import { counted, finished, scenarios, text } from "../../contracts/ChatScenarios.ts"
import { assert, describe } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { openAiResponses, response, whole, wire } from "./Wire.ts"

const { breaks, check, streams, streamsAs, survivesCuts } = scenarios(openAiResponses)

const event = (type: string, fields: Readonly<Record<string, unknown>> = {}) =>
  `event: ${type}\n${Fake.event({ type, ...fields })}`
const created = event("response.created", { response: response({ status: "in_progress" }) })
const delta = (words: string) =>
  event("response.output_text.delta", { item_id: "msg_1", output_index: 0, delta: words })
const ended = (of = response({})) => event(`response.${of.status}`, { response: of })
const usage = { prompt: 21, completion: 13, cached: 8, cacheWrite: 2, reasoning: 5 }
const a = delta("a")

describe("a stream of an openai-responses host", () => {
  const search = { output_index: 0, item: { type: "web_search_call", id: "ws_1" } }
  const found = (item: object) => event("response.output_item.done", { item: { type: "web_search_call", ...item } })
  const refusal = (words: string) => event("response.refusal.delta", { delta: words })
  const cut = (reason: "max_output_tokens" | "content_filter" | undefined) =>
    ended(response({ status: "incomplete", incomplete_details: reason === undefined ? null : { reason } }))
  streamsAs([
    [
      "shows no searches, parts, paddings, comments or events that are new",
      [
        ": hello\n\n",
        created,
        event("response.in_progress"),
        event("keepalive"),
        event("response.output_item.added", search),
        event("response.web_search_call.searching", { output_index: 0, item_id: "ws_1" }),
        event("response.output_item.done", search),
        event("response.content_part.added", { part: { type: "output_text", text: "" } }),
        event("response.output_text.delta", { delta: "a", obfuscation: "xyz" }),
        event("response.output_text.done", { text: "a" }),
        event("response.content_part.done", { part: { type: "output_text", text: "a" } }),
        event("response.invented", { delta: "no" }),
        ended(),
        delta("after the end")
      ],
      [text(""), counted({ webSearches: 1 }), text("a"), finished("stop"), counted({ webSearches: 1 })]
    ],
    [
      "counts searches that were made, not pages that were opened or searches that failed",
      [
        created,
        found({ action: { type: "search", query: "q" } }),
        found({ action: { type: "open_page", url: "https://a.test" } }),
        found({ action: { type: "find_in_page", pattern: "x" } }),
        found({ status: "failed", action: { type: "search", query: "q" } }),
        found({ action: { type: "search", queries: ["r", "s"] } }),
        a,
        ended(whole({ content: "a", finish: "stop", usage }))
      ],
      [
        text(""),
        counted({ webSearches: 1 }),
        counted({ webSearches: 2 }),
        text("a"),
        finished("stop"),
        { type: "usage", usage: { ...usage, webSearches: 2 } }
      ]
    ],
    [
      "has its usage last",
      [created, a, ended(whole({ content: "a", finish: "stop", usage }))],
      [text(""), text("a"), finished("stop"), { type: "usage", usage }]
    ],
    [
      "shows a refusal as content that was filtered",
      [refusal("I will"), refusal(" not."), ended()],
      [text("I will"), text(" not."), finished("content_filter")]
    ],
    ["incomplete by its cap finishes with length", [a, cut("max_output_tokens")], [text("a"), finished("length")]],
    ["incomplete without a reason finishes with length", [a, cut(undefined)], [text("a"), finished("length")]],
    [
      "incomplete by a filter finishes as filtered",
      [a, cut("content_filter")],
      [text("a"), finished("content_filter")]
    ],
    [
      "of a host that sends no deltas is what its end holds",
      [created, ended(whole({ content: "all", reasoning: "r", finish: "stop", usage }))],
      [text(""), { type: "reasoning", text: "r" }, text("all"), finished("stop"), { type: "usage", usage }]
    ]
  ])

  const reasoning = (fields: object) => event("response.reasoning_summary_text.delta", { output_index: 0, ...fields })
  streams(
    "sets the paragraphs of its reasoning apart",
    [
      reasoning({ summary_index: 0, delta: "One" }),
      reasoning({ summary_index: 0, delta: "." }),
      reasoning({ summary_index: 1, delta: "Two." }),
      event("response.reasoning_text.delta", { output_index: 1, content_index: 0, delta: "Raw." }),
      a,
      ended()
    ],
    ({ events }) => assert.strictEqual(joined(events).reasoning, "One.\n\nTwo.\n\nRaw.")
  )

  const toolCalls = [
    { id: "call_a", name: "f", arguments: '{"a":"ü"}' },
    { id: "call_b", name: "g", arguments: '{"b":"👋"}' }
  ]
  const answer = { reasoning: "Hm, 你好.", content: "Grüße 👋" }
  const { end, opening, output } = wire({ ...answer, toolCalls, finish: "tool_calls" })
  survivesCuts([...opening, ...output, ...end], {
    ...answer,
    toolCalls: toolCalls.map((call) => called(call.id, call.name, call.arguments)),
    finish: "tool_calls",
    usage: undefined
  })

  check("ends at its last event, whatever the host does with its connection", function* (adapter, fake, route) {
    yield* fake.script(Fake.sse(a, ended(), Effect.never))
    const heard = yield* hear(adapter, route, request())
    assert.deepStrictEqual(heard, { events: [text("a"), finished("stop")], failure: undefined })
    const { closed } = yield* fake.received
    yield* closed
  })

  breaks([
    ["an end without a last event", [a], "network", 200, [text("a")]],
    ["an empty body", [], "network", 200],
    ["a cut inside an event", [a, 'event: response.completed\ndata: {"type":', Fake.cut], "network", 200, [text("a")]],
    ["a [DONE] before the last event", [a, Fake.done], "retry", 200, [text("a")]],
    ["garbage in the middle", [a, 'data: {"type\n\n', ended()], "retry", 200, [text("a")]],
    ["data that is no event", ["data: 5\n\n", ended()], "retry", 200],
    [
      "an end that is none",
      [a, event("response.completed", { response: { status: "cancelled" } })],
      "retry",
      200,
      [text("a")]
    ],
    [
      "a piece of a call that never began",
      [event("response.function_call_arguments.delta", { item_id: "fc", output_index: 0, delta: "{}" })],
      "retry",
      200
    ],
    [
      "a call without a name",
      [event("response.output_item.added", { output_index: 0, item: { type: "function_call", call_id: "c" } })],
      "retry",
      200
    ],
    ["a failure without a word", [event("response.failed", { response: {} })], "retry", 200],
    [
      "an error event",
      [a, event("error", { code: "server_error", message: "m", param: null })],
      "retry",
      200,
      [text("a")]
    ],
    [
      "an error event with its error inside",
      [event("error", { error: { code: "insufficient_quota", type: "insufficient_quota", message: "m" } })],
      "account",
      200
    ],
    ["an error of another convention", [Fake.event({ error: { code: "rate_limit_exceeded" } })], "limit", 200]
  ])
})

describe("the calls of a stream of an openai-responses host", () => {
  const item = (name: string, input = "") => {
    return { type: "function_call", id: `fc_${name}`, call_id: `call_${name}`, name, arguments: input }
  }
  const f = item("f")
  const g = item("g")
  const wholeF = item("f", '{"a":1}')
  const wholeG = item("g", '{"b":2}')
  const at = (type: string) => (position: number | undefined, of: object) =>
    Fake.event({ type: `response.${type}`, output_index: position, ...of })
  const added = (position: number | undefined, of: object) => at("output_item.added")(position, { item: of })
  const done = (position: number | undefined, of: object) => at("output_item.done")(position, { item: of })
  const piece = (position: number | undefined, item_id: string, words: string) =>
    at("function_call_arguments.delta")(position, { item_id, delta: words })

  const hosts: Readonly<Record<string, ReadonlyArray<string>>> = {
    "in pieces that are mixed": [
      added(1, f),
      added(2, g),
      piece(2, "fc_g", '{"b"'),
      piece(1, "fc_f", '{"a":1}'),
      piece(2, "fc_g", ":2}")
    ],
    "whose item ids change": [
      added(1, f),
      piece(1, "x1", '{"a":'),
      piece(1, "x2", "1}"),
      added(2, g),
      piece(2, "x3", '{"b":2}'),
      done(2, wholeG)
    ],
    "all at one position": [added(0, f), piece(0, "fc_f", '{"a":1}'), added(0, g), piece(0, "fc_g", '{"b":2}')],
    "without positions": [added(undefined, wholeF), added(undefined, g), piece(undefined, "fc_g", '{"b":2}')],
    "only when they are done": [done(1, wholeF), done(2, wholeG)],
    "without pieces": [
      added(1, f),
      at("function_call_arguments.done")(1, { arguments: '{"a":1}' }),
      done(1, wholeF),
      added(2, g),
      done(2, wholeG)
    ]
  }
  for (const [name, events] of Object.entries(hosts)) {
    streams(`are read ${name}`, [...events, ended()], ({ events: heard }) => {
      const { finish, toolCalls } = joined(heard)
      assert.deepStrictEqual(toolCalls, [called("call_f", "f", '{"a":1}'), called("call_g", "g", '{"b":2}')])
      assert.strictEqual(finish, "tool_calls")
    })
  }

  for (const [name, streamed] of Object.entries({ text: [a], "text and another call": [a, added(1, wholeF)] })) {
    const message = { type: "message", content: [{ type: "output_text", text: "a" }] }
    const completed = event("response.completed", { response: { ...response({}), output: [message, wholeF, wholeG] } })
    streams(`are read from the end of a stream of ${name}`, [...streamed, completed], ({ events }) => {
      const { content, finish, toolCalls } = joined(events)
      assert.deepStrictEqual([content, finish], ["a", "tool_calls"])
      assert.deepStrictEqual(toolCalls, [called("call_f", "f", '{"a":1}'), called("call_g", "g", '{"b":2}')])
    })
  }

  streams("have an empty object without arguments", [added(0, f), done(0, f), ended()], ({ events }) =>
    assert.deepStrictEqual(joined(events).toolCalls, [called("call_f", "f", "{}")])
  )
})
