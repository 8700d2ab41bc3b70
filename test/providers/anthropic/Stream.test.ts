import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { hear, joined, request } from "../../contracts/ChatHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import {
  adds,
  begun,
  check,
  closes,
  counted,
  ends,
  finished,
  heard,
  opens,
  said,
  says,
  stopped,
  text
} from "./support.ts"
import { event, wire } from "./Wire.ts"

const opensText = (index: number, text = "") => opens(index, { type: "text", text })
const opensCall = (index: number, id: string, name: string, input: object = {}) =>
  opens(index, { type: "tool_use", id, name, input })
const json = (index: number, partial_json: string) => adds(index, { type: "input_json_delta", partial_json })

describe("a stream of an anthropic host", () => {
  heard(
    "of pings, signatures, citations, server tools and events of tomorrow tells only what is said",
    [
      begun(),
      event({ type: "ping" }),
      opens(0, { type: "thinking", thinking: "", signature: "" }),
      adds(0, { type: "thinking_delta", thinking: "Hm." }),
      adds(0, { type: "signature_delta", signature: "EqQB" }),
      closes(0),
      opens(1, { type: "redacted_thinking", data: "secret" }),
      closes(1),
      opens(2, { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} }),
      json(2, '{"query":"x"}'),
      closes(2),
      opens(3, { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] }),
      closes(3),
      opensText(4),
      adds(4, { type: "citations_delta", citation: { cited_text: "x" } }),
      says(4, "a"),
      event({ type: "of_tomorrow", text: "x" }),
      closes(4),
      ends("end_turn"),
      stopped,
      says(4, "after the end")
    ],
    (heard) => {
      assert.deepStrictEqual(heard, said(text(""), { type: "reasoning", text: "Hm." }, text("a"), finished("stop")))
    }
  )

  heard(
    "takes what a block brings along at its start",
    [
      begun(),
      opens(0, { type: "thinking", thinking: "Hm." }),
      opensText(1, "a"),
      says(1, "b"),
      ends("end_turn"),
      stopped
    ],
    ({ events }) => assert.deepInclude(joined(events), { reasoning: "Hm.", content: "ab" })
  )

  heard(
    "tool indexes count tool calls only, wherever their blocks stand",
    [
      begun(),
      opensText(0),
      says(0, "Let me look."),
      closes(0),
      opensCall(1, "toolu_a", "now"),
      closes(1),
      opensText(2, "And"),
      closes(2),
      opensCall(3, "toolu_b", "get_weather"),
      json(3, ""),
      json(3, '{"city":'),
      json(3, '"Bern"}'),
      closes(3),
      opensCall(4, "toolu_c", "whole", { given: true }),
      closes(4),
      ends("tool_use"),
      stopped
    ],
    ({ events }) => {
      const { finish, toolCalls } = joined(events)
      assert.strictEqual(finish, "tool_calls")
      assert.deepStrictEqual(
        toolCalls.map(({ function: called, id }) => [id, called.name, called.arguments]),
        [
          ["toolu_a", "now", "{}"],
          ["toolu_b", "get_weather", '{"city":"Bern"}'],
          ["toolu_c", "whole", '{"given":true}']
        ]
      )
    }
  )

  heard(
    "gives a call an id where the host gave none, and ends what no block ended",
    [begun(), opens(0, { type: "tool_use", name: "now" }), ends("tool_use"), stopped],
    ({ events }) => {
      const [call] = joined(events).toolCalls
      assert.match(call?.id ?? "", /^call_/)
      assert.deepStrictEqual(call?.function, { name: "now", arguments: "{}" })
    }
  )

  heard("with a call that has no name is broken", [begun(), opensCall(0, "toolu_a", "")], ({ failure }) =>
    assert.strictEqual(failure?.class, "retry")
  )

  for (const [reason, finish] of [
    ["end_turn", "stop"],
    ["stop_sequence", "stop"],
    ["pause_turn", "stop"],
    ["of_tomorrow", "stop"],
    ["max_tokens", "length"],
    ["model_context_window_exceeded", "length"],
    ["refusal", "content_filter"]
  ] as const) {
    heard(`${reason} is ${finish}`, [begun(), opensText(0, "a"), ends(reason), stopped], ({ events }) =>
      assert.deepStrictEqual(events.at(-1), finished(finish))
    )
  }
})

describe("usage", () => {
  heard(
    "of the end is cumulative: it replaces that of the start, and keeps what it leaves out",
    [
      begun({ input_tokens: 5, cache_creation_input_tokens: 7, cache_read_input_tokens: 11, output_tokens: 9 }),
      opensText(0, "a"),
      ends(null, { usage: { output_tokens: 3, cache_read_input_tokens: null } }),
      ends("end_turn", { usage: { output_tokens: 9, output_tokens_details: { thinking_tokens: 4 } } }),
      stopped
    ],
    ({ events }) =>
      assert.deepStrictEqual(
        events.at(-1),
        counted({ prompt: 23, completion: 9, cached: 11, cacheWrite: 7, reasoning: 4 })
      )
  )

  heard(
    "that the end does not tell is left to the gateway, as far as the output goes",
    [begun({ input_tokens: 5, output_tokens: 1 }), opensText(0, "a lot"), ends("end_turn"), stopped],
    ({ events }) => assert.deepStrictEqual(events.at(-1), counted({ prompt: 5 }))
  )
})

describe("split UTF-8", () => {
  check("any cut of the bytes gives the same text", (adapter, fake, route) =>
    Effect.gen(function* () {
      const content = "Grüße, 你好 👋"
      const { end, opening, output } = wire({ content, finish: "stop" })
      const bytes = Buffer.from([opening, ...output, ...end].join(""))
      for (const size of [1, 2, 3, 7]) {
        const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
          bytes.subarray(at * size, (at + 1) * size)
        )
        yield* fake.script(Fake.sse(...pieces.flatMap((piece) => [piece, Effect.yieldNow()])))
        assert.strictEqual(joined((yield* hear(adapter, route, request())).events).content, content)
      }
    })
  )
})

describe("a stream that ends early", () => {
  const start = [begun({ input_tokens: 5 }), opensText(0), says(0, "a")]
  for (const [name, rest] of [
    ["after some text", []],
    ["without message_stop", [closes(0), ends("end_turn", { usage: { output_tokens: 1 } })]],
    ["in the middle of an event", ['event: message_stop\ndata: {"type":"message_st']]
  ] as const) {
    heard(`${name} is cut, not whole`, [...start, ...rest], ({ events, failure }) => {
      assert.isDefined(failure)
      assert.isFalse(events.some(({ type }) => type === "finish"))
      assert.strictEqual(failure?.class, name === "in the middle of an event" ? "retry" : "network")
    })
  }

  heard("by message_stop without a reason is broken", [...start, stopped], ({ failure }) =>
    assert.strictEqual(failure?.class, "retry")
  )

  for (const [type, kind] of [
    ["overloaded_error", "retry"],
    ["api_error", "retry"],
    ["timeout_error", "retry"],
    ["rate_limit_error", "limit"],
    ["authentication_error", "account"],
    ["permission_error", "account"],
    ["billing_error", "account"]
  ] as const) {
    const error = event({ type: "error", error: { type, message: "no" } })
    heard(`with ${type} in its midst is a failure of class ${kind}`, [...start, error], ({ events, failure }) => {
      assert.deepInclude(failure, { class: kind, status: 200 })
      assert.deepStrictEqual(events.at(-1), text("a"))
    })
    heard(`with ${type} before any text lets another route take over`, [begun(), error], ({ events, failure }) => {
      assert.strictEqual(failure?.class, kind)
      assert.deepStrictEqual(events, [text("")])
    })
  }
})
