import type { Tool } from "../../../src/domain/Chat.ts"
import { hear, joined, request } from "../../contracts/ChatHarness.ts"
import { scenarios } from "../../contracts/ChatScenarios.ts"
import { assert, describe } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { chunk, openAiChat } from "./Wire.ts"

const { check, noAnswers, streams } = scenarios(openAiChat)

const toolOf = (name: string): Tool => ({ type: "function", function: { name } })
const tools = ["get_weather", "get", "get_time", "run"].map(toolOf)
const oslo = '{"city":"Oslo"}'
const rome = '{"city":"Rome"}'

interface Fragment {
  readonly index?: unknown
  readonly id?: string | null
  readonly name?: string | null
  readonly args?: string
}

const fragment = ({ args, id, index, name }: Fragment) => ({
  ...(index === undefined ? {} : { index }),
  ...(id === undefined ? {} : { id }),
  function: { ...(name === undefined ? {} : { name }), ...(args === undefined ? {} : { arguments: args }) }
})
const calling = (...fragments: ReadonlyArray<Fragment>) => chunk({ tool_calls: fragments.map(fragment) })
const end = [chunk({}, "tool_calls"), Fake.done]

/** Fragments, one per chunk, and the calls that the client receives. */
const rows: ReadonlyArray<readonly [string, ReadonlyArray<Fragment>, ReadonlyArray<readonly [string, string]>]> = [
  [
    "pieces under indexes of their own are of the open call",
    [
      { index: 0, id: "a", name: "run", args: "" },
      { index: 1, args: '{"city"' },
      { index: 2, args: ':"Oslo"}' },
      { index: 3, id: "b", name: "run", args: "" },
      { index: 4, args: rome }
    ],
    [
      ["run", oslo],
      ["run", rome]
    ]
  ],
  [
    "a second call under the first one's index has its pieces under the next",
    [
      { index: 0, id: "a", name: "run", args: "" },
      { index: 0, args: oslo },
      { index: 0, id: "b", name: "get_time", args: "" },
      { index: 1, args: rome }
    ],
    [
      ["run", oslo],
      ["get_time", rome]
    ]
  ],
  [
    "calls in turns keep their own pieces",
    [
      { index: 0, id: "a", name: "run", args: '{"city"' },
      { index: 1, id: "b", name: "run", args: '{"city"' },
      { index: 0, args: ':"Oslo"}' },
      { index: 1, args: ':"Rome"}' }
    ],
    [
      ["run", oslo],
      ["run", rome]
    ]
  ],
  [
    "a name comes in pieces",
    [
      { index: 0, id: "a", name: "get_wea" },
      { index: 0, name: "ther", args: "" },
      { index: 0, args: oslo }
    ],
    [["get_weather", oslo]]
  ],
  [
    "a name in pieces begins like another one",
    [
      { index: 0, id: "a", name: "get" },
      { index: 0, id: "a", name: "_time" },
      { index: 0, args: oslo }
    ],
    [["get_time", oslo]]
  ],
  [
    "a name that begins another is whole when arguments come",
    [
      { index: 0, id: "a", name: "get", args: "" },
      { index: 0, args: oslo }
    ],
    [["get", oslo]]
  ],
  ["a name that begins another is whole at the end", [{ index: 0, id: "a", name: "get" }], [["get", "{}"]]],
  [
    "calls of such names are told in their order",
    [
      { index: 0, id: "a", name: "get" },
      { index: 1, id: "b", name: "run", args: rome }
    ],
    [
      ["get", "{}"],
      ["run", rome]
    ]
  ],
  [
    "calls in turns have their names in pieces",
    [
      { index: 0, id: "a", name: "get_wea" },
      { index: 1, id: "b", name: "ru" },
      { index: 0, name: "ther" },
      { index: 1, name: "n" },
      { index: 0, args: oslo },
      { index: 1, args: rome }
    ],
    [
      ["get_weather", oslo],
      ["run", rome]
    ]
  ],
  [
    "a whole name is repeated with every piece",
    [
      { index: 0, id: "a", name: "get", args: "" },
      { index: 0, id: "a", name: "get", args: '{"city"' },
      { index: 0, id: "a", name: "get", args: ':"Oslo"}' }
    ],
    [["get", oslo]]
  ],
  [
    "a name and a new id come with every piece",
    [
      { index: 0, id: "a1", name: "run", args: '{"city"' },
      { index: 0, id: "a2", name: "run", args: ':"Oslo"}' },
      { index: 0, id: "b1", name: "run", args: rome }
    ],
    [
      ["run", oslo],
      ["run", rome]
    ]
  ],
  [
    "a name that grows is repeated with every piece",
    [
      { index: 0, id: "a", name: "get_w" },
      { index: 0, id: "a", name: "get_weather" },
      { index: 0, args: oslo }
    ],
    [["get_weather", oslo]]
  ],
  [
    "an id comes after the name, which is repeated",
    [
      { index: 0, name: "run", args: "" },
      { index: 0, id: "a", name: "run", args: oslo }
    ],
    [["run", oslo]]
  ],
  [
    "calls without ids share an index",
    [
      { index: 0, name: "run", args: oslo },
      { index: 0, name: "run", args: rome },
      { index: 0, name: "get_time", args: rome }
    ],
    [
      ["run", oslo],
      ["run", rome],
      ["get_time", rome]
    ]
  ],
  [
    "a name is repeated without an index or id",
    [
      { name: "run", args: '{"city"' },
      { name: "run", args: ':"Oslo"}' },
      { name: "run", args: rome }
    ],
    [
      ["run", oslo],
      ["run", rome]
    ]
  ],
  [
    "a name in pieces has no index or id",
    [{ name: "get_wea" }, { name: "ther" }, { args: oslo }],
    [["get_weather", oslo]]
  ],
  [
    "unknown names are passed on",
    [
      { index: 0, id: "a", name: "invented" },
      { index: 0, args: oslo }
    ],
    [["invented", oslo]]
  ],
  [
    "indexes are texts, and all that is left out is null",
    [
      { index: "0", id: "a", name: "run", args: '{"city"' },
      { index: "0", id: null, name: null, args: ':"Oslo"}' }
    ],
    [["run", oslo]]
  ],
  [
    "arguments are restated with every piece, of every call",
    [
      { index: 0, id: "a", name: "run", args: '{"ci' },
      { index: 0, args: '{"city":"Os' },
      { index: 0, args: oslo },
      { index: 1, id: "b", name: "run", args: '{"city":' },
      { index: 1, args: rome }
    ],
    [
      ["run", oslo],
      ["run", rome]
    ]
  ],
  [
    "an empty object comes first, and the whole under another index",
    [
      { index: 0, id: "a", name: "run", args: "{}" },
      { index: 1, args: oslo }
    ],
    [["run", oslo]]
  ],
  [
    "the whole comes again, with the name, under its index and the next",
    [
      { index: 0, id: "a", name: "run", args: oslo },
      { index: 0, name: "run", args: '{"city": "Oslo"}' },
      { index: 1, args: oslo },
      { index: 2, args: "" }
    ],
    [["run", oslo]]
  ],
  [
    "arguments before the whole name are restated",
    [
      { index: 0, id: "a", name: "get_wea", args: '{"ci' },
      { index: 0, name: "ther", args: oslo }
    ],
    [["get_weather", oslo]]
  ]
]

describe("tool calls of an openai-chat host, where", () => {
  for (const [name, fragments, expected] of rows) {
    streams(
      name,
      [...fragments.map((one) => calling(one)), ...end],
      ({ events, failure }) => {
        assert.isUndefined(failure)
        const { toolCalls } = joined(events)
        assert.deepStrictEqual<unknown>(
          toolCalls.map((call) => [call.function.name, call.function.arguments]),
          expected
        )
        assert.strictEqual(new Set(toolCalls.map(({ id }) => id)).size, expected.length)
      },
      { tools }
    )
  }

  streams(
    "a name is known and begins no other, are told at once",
    [calling({ index: 0, id: "a", name: "run", args: "" }), Fake.cut],
    ({ events }) => assert.deepInclude(events, { type: "tool_call", index: 0, id: "a", name: "run", arguments: "" }),
    { tools }
  )

  streams(
    "one has two different arguments, break the stream",
    [calling({ index: 0, id: "a", name: "run", args: oslo }, { index: 0, args: rome }), ...end],
    ({ failure }) => assert.strictEqual(failure?.class, "retry"),
    { tools }
  )

  const pieces = [{ name: "run", arguments: "" }, { arguments: '{"city":' }, { arguments: '"Oslo"}' }]
  check("one has the convention's first form, are calls", function* (adapter, fake, route) {
    const message = { role: "assistant", content: null, function_call: { name: "run", arguments: oslo } }
    yield* fake.script(
      Fake.json(200, { choices: [{ message, finish_reason: "function_call" }] }),
      Fake.sse(...pieces.map((function_call) => chunk({ function_call })), chunk({}, "function_call"), Fake.done)
    )
    const fullAnswer = yield* adapter.complete(route, request({ tools }))
    const { events } = yield* hear(adapter, route, request({ tools }))
    for (const { finish, toolCalls } of [fullAnswer, joined(events)]) {
      assert.deepStrictEqual(
        [finish, toolCalls.map((call) => call.function)],
        ["tool_calls", [{ name: "run", arguments: oslo }]]
      )
    }
  })

  check("reasoning comes among the parts or details, have it too", function* (adapter, fake, route) {
    const thinking = { type: "thinking", thinking: [{ type: "text", text: "Hm." }] }
    for (const message of [
      { content: [thinking, { type: "text", text: "42" }] },
      { content: "42", reasoning_details: [{ type: "reasoning.text", text: "Hm." }, { type: "reasoning.encrypted" }] }
    ]) {
      yield* fake.script(
        Fake.json(200, { choices: [{ message, finish_reason: "stop" }] }),
        Fake.sse(chunk(message), chunk({}, "stop"), Fake.done)
      )
      const fullAnswer = yield* adapter.complete(route, request())
      const { events } = yield* hear(adapter, route, request())
      for (const answer of [fullAnswer, joined(events)]) assert.deepInclude(answer, { content: "42", reasoning: "Hm." })
    }
  })

  const message = (input: string) => {
    const call = { id: "a", type: "function", function: { name: "run", arguments: input } }
    return { choices: [{ message: { role: "assistant", tool_calls: [call] }, finish_reason: "tool_calls" }] }
  }
  noAnswers([["one with two different arguments", message(oslo + rome)]])
  check("whole arguments are restated, are of one value", function* (adapter, fake, route) {
    for (const input of [`{}${oslo}`, oslo + oslo]) {
      yield* fake.script(Fake.json(200, message(input)))
      const { toolCalls } = yield* adapter.complete(route, request({ tools }))
      assert.strictEqual(toolCalls[0]?.function.arguments, oslo)
    }
  })
})
