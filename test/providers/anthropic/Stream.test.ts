import { hear, joined, request } from "../../contracts/ChatHarness.ts"
import { counted, finished, scenarios, text } from "../../contracts/ChatScenarios.ts"
import { assert, describe } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { anthropic, event, wire } from "./Wire.ts"

const { breaks, check, streams, streamsAs, survivesCuts } = scenarios(anthropic)

const begun = (usage: object = {}) => {
  const message = { id: "msg_1", type: "message", role: "assistant", content: [], stop_reason: null, usage }
  return event({ type: "message_start", message })
}
const open = (index: number, content_block: object) => event({ type: "content_block_start", index, content_block })
const openText = (index: number, text = "") => open(index, { type: "text", text })
const openCall = (index: number, id: string, name: string, input: object = {}) =>
  open(index, { type: "tool_use", id, name, input })
const delta = (index: number, of: object) => event({ type: "content_block_delta", index, delta: of })
const write = (index: number, words: string) => delta(index, { type: "text_delta", text: words })
const json = (index: number, partial_json: string) => delta(index, { type: "input_json_delta", partial_json })
const close = (index: number) => event({ type: "content_block_stop", index })
const end = (stop_reason: string | null, more: object = {}) =>
  event({ type: "message_delta", delta: { stop_reason, stop_sequence: null }, ...more })
const stopped = event({ type: "message_stop" })

describe("a stream of an anthropic host", () => {
  streamsAs([
    [
      "shows no pings, signatures, server tools or events of tomorrow",
      [
        begun(),
        event({ type: "ping" }),
        open(0, { type: "thinking", thinking: "", signature: "" }),
        delta(0, { type: "thinking_delta", thinking: "Hm." }),
        delta(0, { type: "signature_delta", signature: "EqQB" }),
        close(0),
        open(1, { type: "redacted_thinking", data: "secret" }),
        close(1),
        open(2, { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} }),
        json(2, '{"query":"x"}'),
        close(2),
        open(3, { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] }),
        close(3),
        openText(4),
        write(4, "a"),
        event({ type: "of_tomorrow", text: "x" }),
        close(4),
        end("end_turn"),
        stopped,
        write(4, "after the end")
      ],
      [
        text(""),
        { type: "reasoning", text: "Hm." },
        counted({ webSearches: 1 }),
        text("a"),
        counted({ webSearches: 1 }),
        finished("stop"),
        counted({ webSearches: 1 })
      ]
    ],
    [
      "counts the searches that its end tells, and what was written for an hour",
      [
        begun({ input_tokens: 2, cache_creation_input_tokens: 30, cache_creation: { ephemeral_1h_input_tokens: 20 } }),
        open(0, { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} }),
        close(0),
        openText(1),
        write(1, "a"),
        close(1),
        end("end_turn", { usage: { output_tokens: 4, server_tool_use: { web_search_requests: 2 } } }),
        stopped
      ],
      [
        counted({ prompt: 32, cacheWrite: 30, cacheWriteHour: 20 }),
        counted({ prompt: 32, cacheWrite: 30, cacheWriteHour: 20, webSearches: 1 }),
        text("a"),
        counted({ prompt: 32, completion: 4, cacheWrite: 30, cacheWriteHour: 20, webSearches: 2 }),
        finished("stop"),
        counted({ prompt: 32, completion: 4, cacheWrite: 30, cacheWriteHour: 20, webSearches: 2 })
      ]
    ],
    [
      "keeps the split of what was written where its end tells zeros",
      [
        begun({ input_tokens: 2, cache_creation_input_tokens: 30, cache_creation: { ephemeral_1h_input_tokens: 20 } }),
        openText(0, "a"),
        end("end_turn", { usage: { output_tokens: 4, cache_creation: { ephemeral_1h_input_tokens: 0 } } }),
        stopped
      ],
      [
        counted({ prompt: 32, cacheWrite: 30, cacheWriteHour: 20 }),
        text("a"),
        counted({ prompt: 32, completion: 4, cacheWrite: 30, cacheWriteHour: 20 }),
        finished("stop"),
        counted({ prompt: 32, completion: 4, cacheWrite: 30, cacheWriteHour: 20 })
      ]
    ],
    [
      "takes what a block brings along at its start",
      [
        begun(),
        open(0, { type: "thinking", thinking: "Hm." }),
        openText(1, "a"),
        write(1, "b"),
        end("end_turn"),
        stopped
      ],
      [text(""), { type: "reasoning", text: "Hm." }, text("a"), text("b"), finished("stop")]
    ]
  ])

  streams(
    "counts tool calls only, wherever their blocks stand",
    [
      begun(),
      openText(0),
      write(0, "Let me look."),
      close(0),
      openCall(1, "toolu_a", "now"),
      close(1),
      openText(2, "And"),
      close(2),
      openCall(3, "toolu_b", "get_weather"),
      json(3, ""),
      json(3, '{"city":'),
      json(3, '"Bern"}'),
      close(3),
      openCall(4, "toolu_c", "whole", { given: true }),
      close(4),
      end("tool_use"),
      stopped
    ],
    ({ events }) => {
      const { finish, toolCalls } = joined(events)
      assert.strictEqual(finish, "tool_calls")
      assert.deepStrictEqual(
        toolCalls.map(({ function: { arguments: value, name }, id }) => [id, name, value]),
        [
          ["toolu_a", "now", "{}"],
          ["toolu_b", "get_weather", '{"city":"Bern"}'],
          ["toolu_c", "whole", '{"given":true}']
        ]
      )
    }
  )

  streams(
    "gives a call an id where the host gave none, and ends what no block ended",
    [begun(), open(0, { type: "tool_use", name: "now" }), end("tool_use"), stopped],
    ({ events }) => {
      const [call] = joined(events).toolCalls
      assert.match(call?.id ?? "", /^call_/)
      assert.deepStrictEqual(call?.function, { name: "now", arguments: "{}" })
    }
  )

  streams(
    "marks a refusal before any output as one that the vendor does not bill, and no refusal after it",
    [begun({ input_tokens: 9000 }), end("refusal", { usage: { output_tokens: 0 } }), stopped],
    ({ events }) => assert.deepInclude(joined(events), { finish: "content_filter", isFree: true })
  )
  streams(
    "reports each unknown type of block once",
    [begun(), ...[0, 1].map((index) => open(index, { type: "hologram" })), openText(2, "a"), end("end_turn"), stopped],
    ({ events }) => assert.deepStrictEqual(joined(events).unread, [{ part: "block", detail: "hologram" }])
  )

  for (const [reason, finish] of [
    ["end_turn", "stop"],
    ["stop_sequence", "stop"],
    ["tool_use", "stop"],
    ["sensitive", "content_filter"],
    ["max_tokens", "length"],
    ["model_context_window_exceeded", "length"],
    ["refusal", "content_filter"]
  ] as const) {
    streamsAs([
      [
        `ends by ${reason} with ${finish}`,
        [begun(), openText(0, "a"), end(reason), stopped],
        [text(""), text("a"), finished(finish)]
      ]
    ])
  }

  streams(
    "counts cumulatively: the end's usage replaces the start's, and keeps what it leaves out",
    [
      begun({ input_tokens: 5, cache_creation_input_tokens: 7, cache_read_input_tokens: 11, output_tokens: 9 }),
      openText(0, "a"),
      end(null, { usage: { output_tokens: 3, cache_read_input_tokens: null } }),
      end("end_turn", { usage: { output_tokens: 9, output_tokens_details: { thinking_tokens: 4 } } }),
      stopped
    ],
    ({ events }) => {
      const usage = { prompt: 23, completion: 9, cached: 11, cacheWrite: 7, reasoning: 4 }
      assert.deepStrictEqual(events.at(-1), counted(usage))
    }
  )

  for (const zero of ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"]) {
    streams(
      `keeps the prompt's counts where its end has ${zero} of zero`,
      [
        begun({ input_tokens: 5, cache_creation_input_tokens: 7, cache_read_input_tokens: 11, output_tokens: 1 }),
        openText(0, "a"),
        end("end_turn", { usage: { [zero]: 0, output_tokens: 9 } }),
        stopped
      ],
      ({ events }) =>
        assert.deepStrictEqual(events.at(-1), counted({ prompt: 23, completion: 9, cached: 11, cacheWrite: 7 }))
    )
  }

  streams(
    "without counts at its end leaves the output to the gateway's own count",
    [begun({ input_tokens: 5, output_tokens: 1 }), openText(0, "a lot"), end("end_turn"), stopped],
    ({ events }) => assert.deepStrictEqual(events.at(-1), counted({ prompt: 5 }))
  )

  const { end: ending, opening, output } = wire({ content: "Grüße, 你好 👋", finish: "stop" })
  survivesCuts([...opening, ...output, ...ending], { content: "Grüße, 你好 👋" })
})

describe("a stream of an anthropic host that ends early", () => {
  const start = [begun({ input_tokens: 5 }), openText(0), write(0, "a")]
  const before = [counted({ prompt: 5 }), text("a")]
  const ended = end("end_turn", { usage: { output_tokens: 1 } })
  const recounted = [...before, counted({ prompt: 5, completion: 1 })]
  breaks([
    ["a call without a name", [begun(), openCall(0, "toolu_a", "")], "retry", 200, [text("")]],
    ["an end after some text", start, "network", 200, before],
    ["an end without message_stop", [...start, close(0), ended], "network", 200, recounted],
    ["an end in the middle of an event", [...start, 'event: message_stop\ndata: {"type":"m'], "retry", 200, before],
    ["a message_stop without a reason", [...start, stopped], "retry", 200, before]
  ])

  for (const [type, meaning] of [
    ["overloaded_error", "retry"],
    ["api_error", "retry"],
    ["timeout_error", "retry"],
    ["rate_limit_error", "limit"],
    ["authentication_error", "account"],
    ["permission_error", "account"],
    ["billing_error", "account"]
  ] as const) {
    const error = event({ type: "error", error: { type, message: "no" } })
    breaks([
      [`${type} after some text`, [...start, error], meaning, 200, before],
      [`${type} before any text`, [begun(), error], meaning, 200, [text("")]]
    ])
  }
})

describe("a stop sequence of white space, which an anthropic host refuses,", () => {
  const start = [begun({ input_tokens: 5 }), openText(0), write(0, "One\n"), write(0, "\nTwo")]
  const value = { stop: ["\n\n"] }

  streams(
    "cuts a stream, and reads no further where the gateway can count it",
    start,
    ({ events, failure }) => {
      assert.isUndefined(failure)
      const usage = { prompt: 5, completion: 0, cached: 0, cacheWrite: 0, reasoning: 0 }
      assert.deepInclude(joined(events), { content: "One", finish: "stop", usage })
    },
    value
  )

  streams(
    "reads on for the usage of a model that has thought",
    [...start, end("end_turn", { usage: { output_tokens: 50 } }), stopped],
    ({ events }) => {
      assert.strictEqual(joined(events).content, "One")
      assert.deepStrictEqual(events.at(-1), counted({ prompt: 5, completion: 50 }))
    },
    { ...value, reasoningEffort: "high" }
  )

  check("cuts a whole answer", function* (adapter, fake, route) {
    yield* fake.script(Fake.json(200, wire({ content: "One\n\nTwo", finish: "length" }).body))
    assert.deepInclude(yield* adapter.complete(route, request(value)), { content: "One", finish: "stop" })
  })

  check("lets go of the call", function* (adapter, fake, route) {
    const { gone } = yield* Fake.hold(fake.script, (gate) => Fake.sse(...start, gate))
    assert.isUndefined((yield* hear(adapter, route, request(value))).failure)
    yield* gone
  })
})
