import type { ChatRequest } from "../../../src/domain/Chat.ts"
import { request } from "../../contracts/ChatHarness.ts"
import { scenarios } from "../../contracts/ChatScenarios.ts"
import { assert, describe } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { openAiResponses, wire } from "./Wire.ts"

const { check } = scenarios(openAiResponses)
const answer = Fake.json(200, wire({ content: "Hi.", finish: "stop" }).body)
const marked = { cache_control: { type: "ephemeral" } } as const
const breakpoint = { prompt_cache_breakpoint: { mode: "explicit" } }

const messages: ChatRequest["messages"] = [
  { role: "system", content: "Be brief.", ...marked },
  {
    role: "user",
    content: [
      { type: "text", text: "Weather?", ...marked },
      { type: "text", text: "In Bern." }
    ]
  },
  { role: "user", content: "Now.", ...marked }
]
const inputWith = (more: object, text: (words: string) => unknown) => [
  { role: "developer", content: text("Be brief.") },
  {
    role: "user",
    content: [
      { type: "input_text", text: "Weather?", ...more },
      { type: "input_text", text: "In Bern." }
    ]
  },
  { role: "user", content: text("Now.") }
]

describe("marks for the cache of an openai-responses host", () => {
  for (const [name, options, input] of [
    ["are not sent by default", {}, inputWith({}, (words) => words)],
    [
      "are sent as breakpoints where the model has them",
      { cache: "breakpoints" },
      inputWith(breakpoint, (text) => [{ type: "input_text", text, ...breakpoint }])
    ]
  ] as const) {
    check(
      name,
      function* (adapter, fake, route) {
        yield* fake.script(answer)
        yield* adapter.complete(route, request({ messages }))
        assert.deepStrictEqual(Object((yield* fake.received).body).input, input)
      },
      options
    )
  }
})

describe("a key for the cache of an openai-responses host", () => {
  const keyed = request({ promptCacheKey: "session-1", promptCacheRetention: "in_memory" })
  const keyOf = ({ body }: Fake.Received) => {
    const { prompt_cache_key, prompt_cache_retention } = Object(body)
    return [prompt_cache_key, prompt_cache_retention]
  }
  const refusing = (param: string) => {
    return Fake.json(400, { error: { message: "No", type: "invalid_request_error", param, code: "unknown_parameter" } })
  }

  check("goes along with the retention, and is no field without them", function* (adapter, fake, route) {
    yield* fake.script(answer, answer)
    yield* adapter.complete(route, keyed)
    yield* adapter.complete(route, request())
    assert.deepStrictEqual(keyOf(yield* fake.received), ["session-1", "in_memory"])
    assert.notProperty((yield* fake.received).body, "prompt_cache_key")
  })

  check("is not sent again to a host that refuses it", function* (adapter, fake, route) {
    yield* fake.script(refusing("prompt_cache_key"), answer, answer)
    yield* adapter.complete(route, keyed)
    yield* adapter.complete(route, keyed)
    const sent = [yield* fake.received, yield* fake.received, yield* fake.received].map(keyOf)
    assert.deepStrictEqual(sent, [
      ["session-1", "in_memory"],
      [undefined, "in_memory"],
      [undefined, "in_memory"]
    ])
  })

  check("is sent again without a retention that the model does not have", function* (adapter, fake, route) {
    yield* fake.script(refusing("prompt_cache_retention"), answer)
    yield* adapter.complete(route, keyed)
    assert.deepStrictEqual([yield* fake.received, yield* fake.received].map(keyOf), [
      ["session-1", "in_memory"],
      ["session-1", undefined]
    ])
  })
})
