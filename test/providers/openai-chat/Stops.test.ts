import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { hear, joined, request } from "../../contracts/ChatHarness.ts"
import { builtIn, load } from "../../harness/fixtures/Catalogs.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { check, chunk } from "./support.ts"

const usage = { prompt_tokens: 21, completion_tokens: 13 }
const message = { role: "assistant", content: "One. END Two." }
const asked = request({ stop: ["END"] })

describe("stop sequences of an openai-chat host", () => {
  check("are its own business unless the route says so", (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(Fake.json(200, { choices: [{ message, finish_reason: "stop" }] }))
      assert.strictEqual((yield* adapter.complete(route, asked)).content, message.content)
      assert.deepInclude((yield* fake.received).body, { stop: ["END"] })
    })
  )

  check("are cut here where it refuses them, and its usage counts all", (adapter, fake, route) =>
    Effect.gen(function* () {
      const cutting = { ...route, options: { stop: "cut" } }
      yield* fake.script(
        Fake.json(200, { choices: [{ message, finish_reason: "length" }], usage }),
        Fake.sse(chunk({ content: "One. E" }), chunk({ content: "ND Two." }), chunk({}, "length", { usage }), Fake.done)
      )
      const whole = yield* adapter.complete(cutting, asked)
      const { events, failure } = yield* hear(adapter, cutting, asked)
      assert.isUndefined(failure)
      assert.deepStrictEqual(joined(events), whole)
      assert.deepInclude(whole, { content: "One. ", finish: "stop" })
      assert.deepInclude(whole.usage, { prompt: 21, completion: 13 })
      for (const { body } of [yield* fake.received, yield* fake.received]) assert.notProperty(body, "stop")
    })
  )

  check("are cut here on every such route of the built-in catalog that serves family B", () =>
    Effect.gen(function* () {
      const { models } = yield* load({ text: builtIn, environment: { OPENAI_API_KEY: "k", OPENROUTER_API_KEY: "k" } })
      const routes = models.flatMap((model) => (model.surface === "chat" && model.family === "B" ? model.routes : []))
      const chat = routes.filter(({ provider }) => provider.adapter === "openai-chat")
      assert.lengthOf(chat, 12)
      for (const { id, options } of chat) assert.strictEqual(options["stop"], "cut", id)
    })
  )
})
