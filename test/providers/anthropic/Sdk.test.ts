import Anthropic, {
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  RateLimitError
} from "@anthropic-ai/sdk"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { ChatRequest } from "../../../src/domain/Chat.ts"
import * as Adapter from "../../../src/providers/anthropic/Anthropic.ts"
import { type Answer, answered, request, type Weather, weatherTool } from "../../contracts/ChatHarness.ts"
import { calling, thrownBy } from "../../harness/client/OfficialClients.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { hostOver, layer, secret } from "./Hosts.ts"
import { begun, bodyOf, called, says } from "./support.ts"
import { errors, event, isError, stopReasons, understood, usageOnWire } from "./Wire.ts"

/** Our own host, and the vendor's client pointed at it: only what that understands counts. */
const both = Effect.map(Fake.make, (fake) => ({
  fake,
  host: hostOver(fake),
  client: new Anthropic({ baseURL: fake.url, apiKey: secret, maxRetries: 0 })
}))

const asked: Anthropic.MessageCreateParamsNonStreaming = {
  model: "claude-model-1",
  max_tokens: 4096,
  messages: [{ role: "user", content: "Say something." }]
}

const usage = { prompt: 21, completion: 13, cached: 8, cacheWrite: 2, reasoning: 5 }
const answers: Readonly<Record<string, Answer>> = {
  "text with thinking": { content: "Grüße 👋 aus Zürich", reasoning: "Let me see.", finish: "stop", usage },
  "two calls": {
    content: "Let me look.",
    toolCalls: [
      { id: "toolu_a", name: "get_weather", arguments: '{"city":"Bern"}' },
      { id: "toolu_b", name: "now", arguments: "{}" }
    ],
    finish: "tool_calls"
  },
  "text cut by its limit": { content: "One two", finish: "length" },
  "a refusal": { content: "", finish: "content_filter" }
}

describe("our fake of an anthropic host, read by the vendor's own client", () => {
  for (const [name, answer] of Object.entries(answers)) {
    it.scopedLive(`${name}, in one piece and as a stream`, () =>
      Effect.gen(function* () {
        const { client, host } = yield* both
        yield* host.answers(answer)
        const piece = yield* calling(() => client.messages.create(asked))
        yield* host.answers(answer)
        const streamed = yield* calling(() => client.messages.stream(asked).finalMessage())
        for (const message of [piece, streamed]) {
          assert.strictEqual(message.stop_reason, stopReasons[answer.finish])
          assert.deepInclude(message.usage, usageOnWire(answer))
          const of = (type: string) => message.content.filter((block) => block.type === type)
          const [thought] = message.content.flatMap((block) => (block.type === "thinking" ? [block] : []))
          assert.strictEqual(thought?.thinking, answer.reasoning)
          assert.strictEqual(thought?.signature === "", false)
          assert.deepStrictEqual(
            message.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join(""),
            answer.content ?? ""
          )
          assert.deepStrictEqual(
            message.content.flatMap((block) =>
              block.type === "tool_use" ? [[block.id, block.name, block.input]] : []
            ),
            (answer.toolCalls ?? []).map((call) => [call.id, call.name, JSON.parse(call.arguments)])
          )
          assert.lengthOf(of("tool_use"), answer.toolCalls?.length ?? 0)
        }
      })
    )
  }

  const thrown = {
    limit: RateLimitError,
    funds: BadRequestError,
    key: AuthenticationError,
    request: BadRequestError,
    image: BadRequestError,
    moderation: BadRequestError,
    server: InternalServerError,
    missing: NotFoundError
  } as const
  const errorsOf = (weathers: ReadonlyArray<Weather>) => weathers.filter(isError)

  for (const weather of errorsOf(answered)) {
    it.scopedLive(`its error for ${weather}`, () =>
      Effect.gen(function* () {
        const { client, host } = yield* both
        yield* host.meets(weather)
        const error = yield* thrownBy(() => client.messages.create(asked))
        assert.instanceOf(error, thrown[weather])
        const { error: said, status } = errors[weather]
        assert.deepInclude(Object(error), { status, type: said.type, apiMessage: said.message })
      })
    )
  }

  it.scopedLive("its code of a spend limit", () =>
    Effect.gen(function* () {
      const { client, fake } = yield* both
      const error = { type: "rate_limit_error", message: "no", details: { error_code: "enforced_spend_limit_reached" } }
      yield* fake.script(Fake.json(429, { type: "error", error }))
      assert.deepInclude(Object(yield* thrownBy(() => client.messages.create(asked))), {
        errorCode: error.details.error_code
      })
    })
  )

  it.scopedLive("its error in the midst of a stream", () =>
    Effect.gen(function* () {
      const { client, fake } = yield* both
      const error = event({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } })
      const start = event({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } })
      yield* fake.script(Fake.sse(begun({ input_tokens: 1, output_tokens: 1 }), start, says(0, "a"), error))
      const raised = yield* thrownBy(() => client.messages.stream(asked).finalMessage())
      assert.include(String(raised), "overloaded_error")
    })
  )
})

describe("what the adapter sends", () => {
  it("is of the types of the vendor's client", () => {
    const messages: ChatRequest["messages"] = [
      {
        role: "system",
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" }
        ]
      },
      { role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } }] },
      { role: "assistant", content: "Let me look.", tool_calls: [called("toolu_a", "get_weather", '{"city":"Bern"}')] },
      { role: "tool", content: "sunny", tool_call_id: "toolu_a" }
    ]
    const given = { messages, tools: [weatherTool], toolChoice: "required", stop: ["END"] } as const
    const bodies: ReadonlyArray<Anthropic.MessageCreateParams> = [
      bodyOf({}),
      bodyOf({ ...given, parallelToolCalls: false }, {}, true),
      bodyOf({ reasoningEffort: "low" }, { thinking: "budget" }),
      bodyOf({ reasoningEffort: "low" }, { thinking: "adaptive" }),
      bodyOf({}, { thinking_off: "between_tools" }),
      bodyOf({}, { thinking: "always" })
    ]
    for (const { max_tokens, model } of bodies) assert.deepStrictEqual([max_tokens, model], [4096, "claude-model-1"])
  })

  it.scopedLive("is understood as the vendor's client is", () =>
    Effect.gen(function* () {
      const { client, fake, host } = yield* both
      const { chat } = yield* Adapter.make
      if (chat === undefined) return yield* Effect.dieMessage("no chat")
      const system = { role: "system", content: "Be brief." } as const
      const said = { role: "user", content: "Weather in Bern?" } as const
      const { description = "", name } = weatherTool.function
      yield* host.answers({ content: "Sunny.", finish: "stop" })
      yield* calling(() =>
        client.messages.create({
          ...asked,
          system: system.content,
          messages: [said],
          stop_sequences: ["END"],
          tools: [{ name, description, input_schema: { ...weatherTool.function.parameters, type: "object" } }],
          tool_choice: { type: "any", disable_parallel_tool_use: true }
        })
      )
      const theirs = yield* fake.received
      yield* host.answers({ content: "Sunny.", finish: "stop" })
      const given = { tools: [weatherTool], toolChoice: "required", parallelToolCalls: false, stop: ["END"] } as const
      yield* chat.complete(host.route, request({ messages: [system, said], ...given }))
      const ours = yield* fake.received
      assert.deepStrictEqual(understood(ours.body), understood(theirs.body))
      assert.deepStrictEqual([ours.method, ours.path], [theirs.method, theirs.path])
      assert.strictEqual(ours.headers["content-type"], theirs.headers["content-type"])
    }).pipe(Effect.provide(layer))
  )
})
