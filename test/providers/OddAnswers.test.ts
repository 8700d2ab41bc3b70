import { called, hear, joined, request } from "../contracts/ChatHarness.ts"
import type { ChatWire } from "../contracts/ChatHosts.ts"
import { scenarios } from "../contracts/ChatScenarios.ts"
import { assert, describe } from "../harness/It.ts"
import * as Fake from "../harness/upstream/FakeUpstream.ts"
import { anthropic, event, wire as message } from "./anthropic/Wire.ts"
import { chunk as candidate, gemini } from "./gemini/Wire.ts"
import { openAiChat, chunk as piece } from "./openai-chat/Wire.ts"
import { openAiResponses, response } from "./openai-responses/Wire.ts"

interface Answer {
  readonly body: unknown
  readonly events: ReadonlyArray<string>
}

interface Wire {
  readonly wire: ChatWire
  /** An answer with one call, whose arguments are given as they stand on the wire. */
  readonly calling: (given: unknown) => Answer
  /** An answer with an error beside its output. */
  readonly erring: (error: unknown) => unknown
  /** Whether arguments are a text on this wire. */
  readonly isText: boolean
}

const text = message({ content: "Hello", finish: "stop" })

const wires: ReadonlyArray<Wire> = [
  {
    wire: openAiChat,
    isText: true,
    calling: (given) => {
      const tool_calls = [{ index: 0, id: "call_a", function: { name: "f", arguments: given } }]
      return {
        body: { choices: [{ message: { tool_calls }, finish_reason: "tool_calls" }] },
        events: [piece({ tool_calls }), piece({}, "tool_calls"), Fake.done]
      }
    },
    erring: (error) => ({ choices: [{ message: { content: "Hello" }, finish_reason: "stop" }], error })
  },
  {
    wire: openAiResponses,
    isText: true,
    calling: (given) => {
      const item = { type: "function_call", id: "fc_1", call_id: "call_a", name: "f", arguments: given }
      const body = { ...response({}), output: [item] }
      return {
        body,
        events: [
          Fake.event({ type: "response.output_item.done", output_index: 0, item }),
          Fake.event({ type: "response.completed", response: body })
        ]
      }
    },
    erring: (error) => {
      const content = [{ type: "output_text", text: "Hello" }]
      return { ...response({}), output: [{ type: "message", content }], error }
    }
  },
  {
    wire: gemini,
    isText: false,
    calling: (given) => {
      const body = candidate([{ functionCall: { id: "call_a", name: "f", args: given } }], "STOP")
      return { body, events: [Fake.event(body)] }
    },
    erring: (error) => ({ ...candidate([{ text: "Hello" }], "STOP"), error })
  },
  {
    wire: anthropic,
    isText: false,
    calling: (given) => {
      const block = { type: "tool_use", id: "call_a", name: "f", input: given }
      const { body, end, opening } = message({ content: undefined, finish: "tool_calls" })
      return {
        body: { ...body, content: [block] },
        events: [
          ...opening,
          Fake.event({ type: "content_block_start", index: 0, content_block: block }),
          event({ type: "content_block_stop", index: 0 }),
          ...end
        ]
      }
    },
    erring: (error) => ({ ...text.body, error })
  }
]

/** Shapes that hosts give arguments in, and what the client gets. */
const readable: ReadonlyArray<readonly [unknown, string]> = [
  [{ a: 1 }, '{"a":1}'],
  ['{"a":1}', '{"a":1}'],
  [{}, "{}"],
  ["", "{}"],
  [null, "{}"],
  [undefined, "{}"]
]

const unreadable: ReadonlyArray<unknown> = [7, true, [1], Fake.deep]

for (const { calling, erring, isText, wire } of wires) {
  describe(`an odd answer of ${wire.adapter}`, () => {
    const { check, noAnswers } = scenarios(wire)

    for (const [given, expected] of readable) {
      check(`a call's arguments ${JSON.stringify(given)} are ${expected}`, function* (adapter, fake, route) {
        const { body, events } = calling(given)
        yield* fake.script(Fake.json(200, body), Fake.sse(...events))
        const whole = yield* adapter.complete(route, request())
        const heard = yield* hear(adapter, route, request())
        assert.isUndefined(heard.failure)
        for (const { toolCalls } of [whole, joined(heard.events)]) {
          assert.deepStrictEqual(toolCalls, [called("call_a", "f", expected)])
        }
      })
    }

    for (const given of isText ? unreadable : [...unreadable, "no JSON", "[1]"]) {
      const { body, events } = calling(given)
      const name = `a call whose arguments are ${JSON.stringify(given)}`
      noAnswers([[name, body]])
      check(`${name} breaks a stream`, function* (adapter, fake, route) {
        yield* fake.script(Fake.sse(...events))
        const heard = yield* hear(adapter, route, request())
        assert.strictEqual(heard.failure?.class, "retry")
        assert.isFalse(heard.events.some(({ type }) => type === "tool_call" || type === "finish"))
      })
    }

    noAnswers([
      ["an output beside an error as a text", erring("boom")],
      ["an output beside an error", erring({ message: "boom" })],
      ["an output beside an error of 20,000 levels", erring(Fake.deep)]
    ])
  })
}
