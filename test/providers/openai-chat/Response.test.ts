import { Effect } from "effect"
import { called, hear, joined, request } from "../../contracts/ChatHarness.ts"
import { scenarios, usageOf } from "../../contracts/ChatScenarios.ts"
import { assert, describe } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { chunk, openAiChat } from "./Wire.ts"

const { answers, check, noAnswers } = scenarios(openAiChat)

const answered = (message: object, finish_reason?: string) => ({ choices: [{ message, finish_reason }] })
const f = { id: "c", function: { name: "f", arguments: "{}" } }
const texts = ["a", "b"].map((text) => ({ type: "text", text }))

describe("an answer of an openai-chat host", () => {
  answers([
    ["has reasoning under its other name", answered({ content: "a", reasoning: "r" }, "stop"), { reasoning: "r" }],
    ["has content in parts", answered({ content: texts }, "stop"), { content: "ab" }],
    ["ends in an unknown way", answered({ content: "a" }, "eos"), { finish: "stop" }],
    ["does not end at all", answered({ content: "a" }), { finish: "stop" }],
    [
      "is a refusal",
      answered({ content: null, refusal: "I will not." }, "stop"),
      { content: "I will not.", finish: "content_filter" }
    ],
    ["is empty", answered({ content: null }, "stop"), { content: "", toolCalls: [] }],
    [
      "has calls that end in stop",
      answered({ tool_calls: [f] }, "stop"),
      { content: null, toolCalls: [called("c", "f", "{}")], finish: "tool_calls" }
    ],
    [
      "has calls cut by the limit",
      answered({ tool_calls: [{ ...f, function: { name: "f", arguments: "{" } }] }, "length"),
      { finish: "length" }
    ],
    ["ends in calls that are not there", answered({ content: "a", tool_calls: [] }, "tool_calls"), { finish: "stop" }],
    [
      "has everything at once",
      { ...answered({ content: "a", reasoning: "r", tool_calls: [f] }, "tool_calls"), usage: { prompt_tokens: 1 } },
      { content: "a", reasoning: "r", finish: "tool_calls", usage: usageOf({ prompt: 1 }) }
    ]
  ])

  answers(
    (
      [
        [undefined, undefined],
        [{ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }, undefined],
        [{ prompt_tokens: "5", completion_tokens: null }, undefined],
        [
          { prompt_tokens: 5, completion_tokens: 2 },
          { prompt: 5, completion: 2 }
        ],
        [
          {
            prompt_tokens: 100,
            completion_tokens: 50,
            total_tokens: 150,
            prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 30 },
            completion_tokens_details: { reasoning_tokens: 40 }
          },
          { prompt: 100, completion: 50, cached: 60, cacheWrite: 30, reasoning: 40 }
        ],
        [
          {
            prompt_tokens: 100,
            completion_tokens: 50,
            prompt_tokens_details: {
              cache_write_tokens: 30,
              cache_creation_token_details: { ephemeral_1h_input_tokens: 20 }
            },
            server_tool_use: { web_search_requests: 2 }
          },
          { prompt: 100, completion: 50, cacheWrite: 30, cacheWriteHour: 20, webSearches: 2 }
        ],
        [
          { prompt_tokens: 1, completion_tokens: 1, server_side_tool_usage_details: { web_search_calls: 4 } },
          { prompt: 1, completion: 1, webSearches: 4 }
        ],
        [
          {
            prompt_tokens: 10,
            completion_tokens: 5,
            total_tokens: 35,
            completion_tokens_details: { reasoning_tokens: 20 }
          },
          { prompt: 10, completion: 25, reasoning: 20 }
        ],
        [
          { prompt_tokens: 9, completion_tokens: 1, prompt_cache_hit_tokens: 4 },
          { prompt: 9, completion: 1, cached: 4 }
        ],
        [
          { prompt_tokens: 3.7, completion_tokens: -4, prompt_tokens_details: { cached_tokens: 99 } },
          { prompt: 102, cached: 99 }
        ],
        [
          { prompt_tokens: 31, completion_tokens: 2, cache_creation_input_tokens: 9, cache_read_input_tokens: 0 },
          { prompt: 31, completion: 2, cacheWrite: 9 }
        ],
        [
          {
            prompt_tokens: 31,
            completion_tokens: 2,
            prompt_tokens_details: {
              cached_tokens: 0,
              cache_creation_tokens: 9,
              cache_creation_token_details: { ephemeral_5m_input_tokens: 5, ephemeral_1h_input_tokens: 4 }
            }
          },
          { prompt: 31, completion: 2, cacheWrite: 9, cacheWriteHour: 4 }
        ]
      ] as const
    ).map(([usage, expected]) => [
      `counts ${JSON.stringify(usage)}`,
      { ...answered({ content: "a" }, "stop"), usage },
      { usage: expected && usageOf(expected) }
    ])
  )

  const hidden = { prompt_tokens: 9, completion_tokens: 6, total_tokens: 109 }
  answers([
    [
      "has a total that its parts do not explain",
      { ...answered({ content: "a" }, "stop"), usage: hidden },
      {
        usage: usageOf({ prompt: 9, completion: 6 }),
        unread: [{ part: "usage", detail: "109 total tokens, but 9 prompt tokens and 6 completion tokens" }]
      }
    ],
    [
      "has parts of unknown types, told of once each",
      answered({ content: [...texts, { type: "hologram" }, { type: "hologram" }, { type: "reference" }] }, "stop"),
      { content: "ab", unread: [{ part: "block", detail: "hologram" }] }
    ]
  ])

  check(
    "has its hidden reasoning counted where the route says that the host hides it",
    function* (adapter, fake, route) {
      yield* fake.script(
        Fake.json(200, { ...answered({ content: "a" }, "stop"), usage: { prompt_tokens: 21, total_tokens: 81 } }),
        Fake.sse(
          chunk({ content: "a" }, null, { usage: { prompt_tokens: 9, completion_tokens: 0, total_tokens: 50 } }),
          chunk({}, "stop", { usage: hidden }),
          Fake.done
        ),
        Fake.sse(
          chunk({ content: "a" }, null, { usage: { prompt_tokens: 9 } }),
          chunk({}, "stop", { usage: { completion_tokens: 6 } }),
          Fake.event({ choices: [], usage: { total_tokens: 109 } }),
          Fake.done
        ),
        Fake.sse(chunk({ content: "a" }), chunk({}, "stop"), Fake.event({ choices: [], usage: hidden }), Fake.done)
      )
      const fullAnswer = yield* adapter.complete(route, request())
      assert.deepStrictEqual(fullAnswer.usage, usageOf({ prompt: 21, completion: 60, reasoning: 60 }))
      assert.notProperty(fullAnswer, "unread")
      for (const _ of [1, 2, 3]) {
        const streamed = joined((yield* hear(adapter, route, request())).events)
        assert.deepStrictEqual(streamed.usage, usageOf({ prompt: 9, completion: 100, reasoning: 94 }))
        assert.notProperty(streamed, "unread")
      }
    },
    { hidden_reasoning: true }
  )

  for (const [code, meaning] of [
    [1026, "moderation"],
    [1027, "moderation"],
    [1008, "account"],
    [1004, "account"],
    [1002, "limit"],
    [1039, "limit"],
    [1000, "retry"]
  ] as const) {
    check(`is a failure by a status of ${code} within a good one: ${meaning}`, function* (adapter, fake, route) {
      const refused = { id: "x", choices: null, base_resp: { status_code: code, status_msg: "m" } }
      yield* fake.script(
        Fake.json(200, refused),
        Fake.json(200, refused),
        Fake.sse(Fake.event(refused), Fake.done),
        Fake.sse(chunk({ content: "a" }), Fake.event(refused), Fake.done)
      )
      const failure = yield* Effect.flip(adapter.complete(route, request()))
      assert.strictEqual(failure.class, meaning)
      for (const events of [[], [], [{ type: "content", text: "a" }]]) {
        const heard = yield* hear(adapter, route, request())
        assert.deepStrictEqual<unknown>([heard.events, heard.failure?.class], [events, meaning])
      }
    })
  }

  check("is a failure where a host behind it broke off, whatever it says itself", function* (adapter, fake, route) {
    const choice = { index: 0, finish_reason: "stop", native_finish_reason: "network_error" }
    yield* fake.script(
      Fake.json(200, { choices: [{ ...choice, message: { content: "" } }] }),
      Fake.sse(Fake.event({ choices: [{ ...choice, delta: { content: "" } }] }), Fake.done),
      Fake.json(200, { choices: [{ ...choice, native_finish_reason: "OF_TOMORROW", message: { content: "a" } }] })
    )
    assert.strictEqual((yield* Effect.flip(adapter.complete(route, request()))).class, "retry")
    assert.strictEqual((yield* hear(adapter, route, request())).failure?.class, "retry")
    assert.strictEqual((yield* adapter.complete(route, request())).finish, "stop")
  })

  check("is one beside a good status of its own", function* (adapter, fake, route) {
    const status = { base_resp: { status_code: 0, status_msg: "" } }
    yield* fake.script(Fake.json(200, { ...answered({ content: "a" }, "stop"), ...status }))
    assert.strictEqual((yield* adapter.complete(route, request())).content, "a")
  })

  check(
    "gets ids for calls that have none of their own, and has arguments as a JSON text",
    function* (adapter, fake, route) {
      const calls = [
        { function: { name: "f", arguments: { a: 1 } } },
        { id: "", function: { name: "g", arguments: "" } },
        ...["h", "i"].map((name) => ({ id: "call_from_host", function: { name, arguments: "{}" } }))
      ]
      yield* fake.script(Fake.json(200, answered({ tool_calls: calls }, "tool_calls")))
      const { toolCalls } = yield* adapter.complete(route, request())
      assert.deepStrictEqual(
        toolCalls.map((call) => call.function),
        [
          { name: "f", arguments: '{"a":1}' },
          { name: "g", arguments: "{}" },
          { name: "h", arguments: "{}" },
          { name: "i", arguments: "{}" }
        ]
      )
      assert.strictEqual(toolCalls[2]?.id, "call_from_host")
      assert.strictEqual(new Set(toolCalls.map(({ id }) => id)).size, 4)
      for (const { id } of toolCalls) assert.match(id, /^call_.{8,}/)
    }
  )

  noAnswers([
    ["no choices", {}],
    ["empty choices", { choices: [] }],
    ["a choice without a message", { choices: [{ finish_reason: "stop" }] }],
    ["an array", []],
    ["a number", 5],
    ["null", null],
    ["a break in the middle", answered({ content: "a" }, "error")],
    ["a call without a name", answered({ tool_calls: [{ id: "c", function: {} }] }, "stop")],
    ["a call that is no object", answered({ tool_calls: [null] }, "stop")],
    ["an error beside an answer", { error: { message: "m" }, ...answered({ content: "a" }, "stop") }]
  ])

  const inside = { message: { content: "" }, finish_reason: "error", error: { code: 429, message: "m" } }
  for (const [name, reply, expected] of [
    [
      "inside a choice means what it says",
      Fake.json(200, { choices: [inside] }, { "retry-after": "3" }),
      ["limit", 429, 3]
    ],
    [
      "for a redirect is another route's chance",
      Fake.text(302, "text/plain", "", { location: "http://127.0.0.1:1/" }),
      ["retry", 302, undefined]
    ]
  ] as const) {
    check(`that is an error ${name}`, function* (adapter, fake, route) {
      yield* fake.script(reply)
      const failure = yield* Effect.flip(adapter.complete(route, request()))
      assert.deepStrictEqual([failure.class, failure.status, failure.retryAfterSeconds], [...expected])
    })
  }
})
