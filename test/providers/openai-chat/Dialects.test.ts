import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { hear, request } from "../../contracts/ChatHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { check, chunk, finished, said, stop, text } from "./support.ts"

const refusing = (code: string, param: string) =>
  Fake.json(400, { error: { message: "m", type: "invalid_request_error", code, param } })
const good = Fake.json(200, { choices: [{ message: { content: "hi" }, finish_reason: "stop" }] })
const goodStream = Fake.sse(chunk({ content: "hi" }), stop, Fake.done)

describe("a host that refuses a field of ours", () => {
  const keys = (fake: Fake.FakeUpstream) => Effect.map(fake.received, ({ body }) => Object.keys(Object(body)))

  check("is asked again the other way, and so from then on", (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(refusing("unsupported_parameter", "max_tokens"), good, good)
      yield* adapter.complete(route, request())
      yield* adapter.complete(route, request())
      assert.include(yield* keys(fake), "max_tokens")
      for (const sent of [yield* keys(fake), yield* keys(fake)]) {
        assert.include(sent, "max_completion_tokens")
        assert.notInclude(sent, "max_tokens")
      }
      yield* fake.script(good)
      yield* adapter.complete({ ...route, id: "another" }, request())
      assert.include(yield* keys(fake), "max_tokens")
    })
  )

  check("starts as the catalog says", (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(refusing("unsupported_parameter", "max_completion_tokens"), good)
      yield* adapter.complete({ ...route, options: { max_tokens_field: "max_completion_tokens" } }, request())
      assert.include(yield* keys(fake), "max_completion_tokens")
      assert.include(yield* keys(fake), "max_tokens")
    })
  )

  check("may refuse both fields of a stream, by either way of saying so", (adapter, fake, route) =>
    Effect.gen(function* () {
      const extra = { detail: [{ type: "extra_forbidden", loc: ["body", "stream_options"], msg: "m" }] }
      yield* fake.script(Fake.json(422, extra), refusing("unsupported_parameter", "max_tokens"), goodStream, goodStream)
      assert.deepStrictEqual(yield* hear(adapter, route, request()), said(text("hi"), finished("stop")))
      assert.deepStrictEqual(yield* hear(adapter, route, request()), said(text("hi"), finished("stop")))
      const sent = [yield* keys(fake), yield* keys(fake), yield* keys(fake), yield* keys(fake)]
      assert.deepStrictEqual(
        sent.map((of) => of.includes("stream_options")),
        [true, false, false, false]
      )
      assert.deepStrictEqual(
        sent.map((of) => of.includes("max_tokens")),
        [true, true, false, false]
      )
    })
  )

  check("is asked twice at most when it refuses either way", (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(
        refusing("unsupported_parameter", "max_tokens"),
        refusing("unsupported_parameter", "max_completion_tokens")
      )
      const failure = yield* Effect.flip(adapter.complete(route, request()))
      assert.deepStrictEqual([failure.class, failure.status], ["request", 400])
    })
  )

  check("is not asked again for a field of the client's", (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(refusing("unsupported_value", "reasoning_effort"))
      const failure = yield* Effect.flip(adapter.complete(route, request({ reasoningEffort: "low" })))
      assert.deepStrictEqual([failure.class, failure.param], ["request", undefined])
    })
  )
})
