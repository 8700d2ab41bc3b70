import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import OpenAI from "openai"
import type { Answer } from "../../contracts/ChatHarness.ts"
import { calling, thrownBy } from "../../harness/client/OfficialClients.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { inEvents, inOnePiece } from "./support.ts"
import { begun, failedWith, whole, written } from "./wire.ts"

const answers: Readonly<Record<string, Answer>> = {
  "text with reasoning": {
    content: "Grüße 👋 aus Zürich",
    reasoning: "Let me see.",
    finish: "stop",
    usage: { prompt: 21, completion: 13, cached: 8, cacheWrite: 2, reasoning: 5 }
  },
  "two calls": {
    toolCalls: [
      { id: "call_a", name: "get_weather", arguments: '{"city":"Bern"}' },
      { id: "call_b", name: "get_weather", arguments: '{"city":"Oslo"}' }
    ],
    finish: "tool_calls"
  },
  "text cut by its limit": { content: "One two", finish: "length" }
}
const asked = { model: "vendor/model-1", input: "Say something." }

describe("our fake of a responses host, read by the vendor's own client", () => {
  const client = Effect.map(Fake.make, (fake) => ({
    fake,
    openai: new OpenAI({ baseURL: `${fake.url}/v1`, apiKey: "k", maxRetries: 0 })
  }))

  for (const [name, answer] of Object.entries(answers)) {
    it.scopedLive(`${name}, in one piece and as a stream`, () =>
      Effect.gen(function* () {
        const { fake, openai } = yield* client
        yield* fake.script(inOnePiece(answer), inEvents(answer))
        const piece = yield* calling(() => openai.responses.create(asked))
        const streamed = yield* calling(() => openai.responses.stream(asked).finalResponse())
        const expected = whole(answer)
        for (const { output, output_text, status, usage } of [piece, streamed]) {
          assert.strictEqual(output_text, answer.content ?? "")
          assert.strictEqual(status, expected.status)
          assert.deepStrictEqual(usage, expected.usage)
          assert.deepStrictEqual(
            output.map(({ type }) => type),
            expected.output.map(({ type }) => type)
          )
          assert.deepStrictEqual(
            output.flatMap((item) => (item.type === "function_call" ? [[item.call_id, item.arguments]] : [])),
            (answer.toolCalls ?? []).map(({ arguments: given, id }) => [id, given])
          )
        }
      })
    )

    it.scopedLive(`${name}, from its deltas alone`, () =>
      Effect.gen(function* () {
        const { fake, openai } = yield* client
        yield* fake.script(inEvents(answer))
        const pieces = yield* calling(async () => {
          const said = { text: "", reasoning: "", calls: new Map<string, string>() }
          for await (const event of await openai.responses.create({ ...asked, stream: true })) {
            if (event.type === "response.output_text.delta") said.text += event.delta
            if (event.type === "response.reasoning_summary_text.delta") said.reasoning += event.delta
            if (event.type === "response.function_call_arguments.delta") {
              said.calls.set(event.item_id, (said.calls.get(event.item_id) ?? "") + event.delta)
            }
          }
          return said
        })
        assert.deepStrictEqual([pieces.text, pieces.reasoning], [answer.content ?? "", answer.reasoning ?? ""])
        assert.deepStrictEqual(
          [...pieces.calls.values()],
          (answer.toolCalls ?? []).map((call) => call.arguments)
        )
      })
    )
  }

  it.scopedLive("a failed response, and a break", () =>
    Effect.gen(function* () {
      const { fake, openai } = yield* client
      const failed = failedWith("server_error")
      yield* fake.script(
        Fake.json(200, failed),
        Fake.sse(
          ...written([
            { type: "response.created", response: begun },
            { type: "response.failed", response: failed }
          ])
        ),
        Fake.sse(
          ...written([
            { type: "response.created", response: begun },
            { type: "error", code: "server_error", message: "boom", param: null }
          ])
        )
      )
      const piece = yield* calling(() => openai.responses.create(asked))
      assert.strictEqual(piece.error?.code, "server_error")
      const streamed = yield* calling(() => openai.responses.stream(asked).finalResponse())
      assert.strictEqual(streamed.status, "failed")
      const broken = yield* thrownBy(() => openai.responses.stream(asked).finalResponse())
      assert.deepInclude(broken, { code: "server_error", message: "boom" })
    })
  )
})
