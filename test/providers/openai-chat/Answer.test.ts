import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { hear, joined, request } from "../../contracts/ChatHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { check } from "./support.ts"

describe("an answer of an openai-chat host", () => {
  const cases: ReadonlyArray<readonly [string, unknown, Partial<ReturnType<typeof joined>>]> = [
    [
      "reasoning under its other name",
      { message: { content: "a", reasoning: "r" }, finish_reason: "stop" },
      { reasoning: "r" }
    ],
    [
      "content in parts",
      {
        message: {
          content: [
            { type: "text", text: "a" },
            { type: "text", text: "b" }
          ]
        },
        finish_reason: "stop"
      },
      { content: "ab" }
    ],
    ["an unknown end", { message: { content: "a" }, finish_reason: "eos" }, { finish: "stop" }],
    ["no end at all", { message: { content: "a" } }, { finish: "stop" }],
    [
      "a refusal",
      { message: { content: null, refusal: "I will not." }, finish_reason: "stop" },
      { content: "I will not.", finish: "content_filter" }
    ],
    ["nothing", { message: { content: null }, finish_reason: "stop" }, { content: "", toolCalls: [] }],
    [
      "calls that end in stop",
      { message: { tool_calls: [{ id: "c", function: { name: "f", arguments: "{}" } }] }, finish_reason: "stop" },
      { content: null, finish: "tool_calls" }
    ],
    [
      "calls cut by the limit",
      { message: { tool_calls: [{ id: "c", function: { name: "f", arguments: "{" } }] }, finish_reason: "length" },
      { finish: "length" }
    ],
    [
      "an end in calls that are not there",
      { message: { content: "a", tool_calls: [] }, finish_reason: "tool_calls" },
      { finish: "stop" }
    ]
  ]
  for (const [name, choice, expected] of cases) {
    check(name, (adapter, fake, route) =>
      Effect.gen(function* () {
        yield* fake.script(Fake.json(200, { choices: [choice] }))
        const answer = yield* adapter.complete(route, request())
        assert.deepStrictEqual({ ...answer, ...expected }, answer)
      })
    )
  }

  check("calls without ids get some, and arguments are a JSON text", (adapter, fake, route) =>
    Effect.gen(function* () {
      const calls = [
        { function: { name: "f", arguments: { a: 1 } } },
        { id: "", function: { name: "g", arguments: "" } }
      ]
      yield* fake.script(Fake.json(200, { choices: [{ message: { tool_calls: calls }, finish_reason: "tool_calls" }] }))
      const { toolCalls } = yield* adapter.complete(route, request())
      assert.deepStrictEqual(
        toolCalls.map((call) => call.function),
        [
          { name: "f", arguments: '{"a":1}' },
          { name: "g", arguments: "{}" }
        ]
      )
      assert.strictEqual(new Set(toolCalls.map(({ id }) => id)).size, 2)
      for (const { id } of toolCalls) assert.match(id, /^call_.{8,}/)
    })
  )

  const usages: ReadonlyArray<readonly [unknown, unknown]> = [
    [undefined, undefined],
    [{ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }, undefined],
    [
      { prompt_tokens: 5, completion_tokens: 2 },
      { prompt: 5, completion: 2, cached: 0, cacheWrite: 0, reasoning: 0 }
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
        prompt_tokens: 10,
        completion_tokens: 5,
        total_tokens: 35,
        completion_tokens_details: { reasoning_tokens: 20 }
      },
      { prompt: 10, completion: 25, cached: 0, cacheWrite: 0, reasoning: 20 }
    ],
    [
      { prompt_tokens: 9, completion_tokens: 1, prompt_cache_hit_tokens: 4 },
      { prompt: 9, completion: 1, cached: 4, cacheWrite: 0, reasoning: 0 }
    ],
    [
      { prompt_tokens: 3.7, completion_tokens: -4, prompt_tokens_details: { cached_tokens: 99 } },
      { prompt: 3, completion: 0, cached: 3, cacheWrite: 0, reasoning: 0 }
    ],
    [{ prompt_tokens: "5", completion_tokens: null }, undefined]
  ]
  check("usage, as hosts count it", (adapter, fake, route) =>
    Effect.forEach(usages, ([usage, expected]) =>
      Effect.gen(function* () {
        yield* fake.script(Fake.json(200, { choices: [{ message: { content: "a" }, finish_reason: "stop" }], usage }))
        const answer = yield* adapter.complete(route, request())
        assert.deepStrictEqual(answer.usage, expected)
      })
    )
  )

  const broken: ReadonlyArray<readonly [string, unknown]> = [
    ["no choices", {}],
    ["empty choices", { choices: [] }],
    ["a choice without a message", { choices: [{ finish_reason: "stop" }] }],
    ["an array", []],
    ["a number", 5],
    ["null", null],
    ["a break in the middle", { choices: [{ message: { content: "a" }, finish_reason: "error" }] }],
    [
      "a call without a name",
      { choices: [{ message: { tool_calls: [{ id: "c", function: {} }] }, finish_reason: "stop" }] }
    ],
    [
      "an error beside an answer",
      { error: { message: "m" }, choices: [{ message: { content: "a" }, finish_reason: "stop" }] }
    ]
  ]
  for (const [name, body] of broken) {
    check(`${name} is no answer, asked for in one piece or as a stream`, (adapter, fake, route) =>
      Effect.gen(function* () {
        yield* fake.script(Fake.json(200, body), Fake.json(200, body))
        const failure = yield* Effect.flip(adapter.complete(route, request()))
        const { events, failure: streamed } = yield* hear(adapter, route, request())
        assert.deepStrictEqual([failure.class, failure.status, streamed?.class, events], ["retry", 200, "retry", []])
      })
    )
  }

  check("an error inside a choice means what it says", (adapter, fake, route) =>
    Effect.gen(function* () {
      const choice = { message: { content: "" }, finish_reason: "error", error: { code: 429, message: "m" } }
      yield* fake.script(Fake.json(200, { choices: [choice] }, { "retry-after": "3" }))
      const failure = yield* Effect.flip(adapter.complete(route, request()))
      assert.deepStrictEqual([failure.class, failure.status, failure.retryAfterSeconds], ["limit", 429, 3])
    })
  )

  check("a redirect is another route's chance", (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(Fake.text(302, "text/plain", "", { location: "http://127.0.0.1:1/" }))
      const failure = yield* Effect.flip(adapter.complete(route, request()))
      assert.deepStrictEqual([failure.class, failure.status], ["retry", 302])
    })
  )

  check("a stream's request answered in one piece is the same answer", (adapter, fake, route) =>
    Effect.gen(function* () {
      const message = {
        content: "a",
        reasoning: "r",
        tool_calls: [{ id: "c", function: { name: "f", arguments: "{}" } }]
      }
      const usage = { prompt_tokens: 1, completion_tokens: 2 }
      const body = Fake.json(200, { choices: [{ message, finish_reason: "tool_calls" }], usage })
      yield* fake.script(body, body)
      const { events, failure } = yield* hear(adapter, route, request())
      assert.isUndefined(failure)
      assert.deepStrictEqual(joined(events), yield* adapter.complete(route, request()))
    })
  )
})
