import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { ChatRequest, ToolCall, Usage } from "../../src/domain/Chat.ts"
import type { ChatAdapter, FailureClass } from "../../src/services/routing/Provider.ts"
import { type Check, chatCancellationContract } from "./ChatCancellation.ts"
import {
  type Answer,
  type Harness,
  type Host,
  hear,
  joined,
  request,
  type Weather,
  weatherTool
} from "./ChatHarness.ts"

const usageOf = ({ has }: Harness): Usage => {
  return { prompt: 21, completion: 13, cached: has.cached ? 8 : 0, cacheWrite: 0, reasoning: 0 }
}
const stop = ["END", "\n\n"]
const picture = "data:image/png;base64,iVBORw0KGgo="
const call = (id: string, city: string): ToolCall => ({
  id,
  type: "function",
  function: { name: "get_weather", arguments: `{"city":"${city}"}` }
})
const asAnswered = ({ function: { arguments: text, name }, id }: ToolCall) => ({ id, name, arguments: text })

const meaning: Readonly<Record<Weather, FailureClass>> = {
  limit: "limit",
  funds: "account",
  key: "account",
  request: "request",
  image: "request",
  moderation: "moderation",
  server: "retry",
  missing: "retry",
  page: "retry",
  garbage: "retry",
  empty: "retry",
  "error inside": "retry",
  "cut answer": "network",
  "cut stream": "network"
}
const onlyAnswers: ReadonlyArray<Weather> = ["cut answer"]
const onlyStreams: ReadonlyArray<Weather> = ["cut stream"]

/** What every chat adapter owes the gateway, against any host that can be scripted. */
export const chatAdapterContract = (harness: Harness) =>
  describe(`a chat adapter: ${harness.name}`, () => {
    const usage = usageOf(harness)
    const check: Check = (name, body) =>
      it.scopedLive(name, () =>
        Effect.gen(function* () {
          const { chat } = yield* harness.make
          if (chat === undefined) return yield* Effect.dieMessage("the provider has no chat")
          return yield* body(chat, yield* harness.host)
        }).pipe(Effect.provide(harness.upstream))
      )

    /** The same answer asked for in one piece and as a stream: both must come out as `expected`. */
    const comesOut = (
      adapter: ChatAdapter,
      host: Host,
      asked: ChatRequest,
      answer: Answer,
      expected: Partial<ReturnType<typeof joined>>
    ) =>
      Effect.gen(function* () {
        yield* host.answers(answer)
        const whole = yield* adapter.complete(host.route, asked)
        yield* host.answers(answer)
        const heard = yield* hear(adapter, host.route, asked)
        assert.isUndefined(heard.failure)
        const streamed = joined(heard.events)
        for (const got of [whole, streamed]) assert.deepStrictEqual({ ...got, ...expected }, got)
        assert.deepStrictEqual(streamed, whole)
        const last = heard.events.at(-1)?.type
        assert.isTrue(last === "finish" || last === "usage")
        const first = yield* host.understood
        const second = yield* host.understood
        assert.deepStrictEqual([first.stream, second.stream], [false, true])
        assert.deepStrictEqual({ ...second, stream: false }, first)
        assert.strictEqual(first.model, host.route.model)
        return first
      })

    check("text", (adapter, host) =>
      comesOut(
        adapter,
        host,
        request({ maxTokens: 77 }),
        { content: "Grüße aus Zürich, 你好 👋", finish: "stop", usage },
        { content: "Grüße aus Zürich, 你好 👋", reasoning: undefined, toolCalls: [], finish: "stop", usage }
      ).pipe(Effect.map((sent) => assert.strictEqual(sent.maxTokens, 77)))
    )

    check("messages of every role, in parts, with an image", (adapter, host) =>
      Effect.gen(function* () {
        const asked = request({
          messages: [
            { role: "system", content: [{ type: "text", text: "Be brief." }] },
            { role: "user", content: "Hello" },
            { role: "assistant", content: "Hi." },
            {
              role: "user",
              content: [
                { type: "text", text: "What is this?" },
                { type: "image_url", image_url: { url: picture, detail: "low" } },
                { type: "text", text: " One word." }
              ]
            }
          ]
        })
        const sent = yield* comesOut(adapter, host, asked, { content: "A dot.", finish: "stop" }, { content: "A dot." })
        const turn = { images: [], calls: [], answers: undefined }
        assert.strictEqual(sent.system, "Be brief.")
        assert.deepStrictEqual(sent.turns, [
          { ...turn, role: "user", text: "Hello" },
          { ...turn, role: "assistant", text: "Hi." },
          { ...turn, role: "user", text: "What is this? One word.", images: [picture] }
        ])
      })
    )

    check("parallel tool calls and their results, over two turns", (adapter, host) =>
      Effect.gen(function* () {
        const question = { role: "user", content: "Weather in Bern and Oslo?" } as const
        const calls = [call("call_a", "Bern"), call("call_b", "Oslo")]
        const asked = request({ messages: [question], tools: [weatherTool], toolChoice: "required" })
        const first = yield* comesOut(
          adapter,
          host,
          asked,
          { toolCalls: calls.map(asAnswered), finish: "tool_calls", usage },
          { content: null, toolCalls: calls, finish: "tool_calls", usage }
        )
        assert.strictEqual(first.toolChoice, "required")
        const { name, parameters } = weatherTool.function
        assert.deepStrictEqual(first.tools, [{ name, parameters }])

        const second = yield* comesOut(
          adapter,
          host,
          request({
            tools: [weatherTool],
            toolChoice: { type: "function", function: { name } },
            messages: [
              question,
              { role: "assistant", content: null, tool_calls: calls },
              { role: "tool", content: "sunny", tool_call_id: "call_a" },
              { role: "tool", content: "rain", tool_call_id: "call_b" }
            ]
          }),
          { content: "Sunny and rain.", finish: "stop" },
          { content: "Sunny and rain.", finish: "stop" }
        )
        assert.deepStrictEqual(second.toolChoice, { name })
        const turn = { images: [], calls: [], answers: undefined }
        assert.deepStrictEqual(second.turns, [
          { ...turn, role: "user", text: question.content },
          {
            ...turn,
            role: "assistant",
            text: "",
            calls: [
              { id: "call_a", name, arguments: { city: "Bern" } },
              { id: "call_b", name, arguments: { city: "Oslo" } }
            ]
          },
          { ...turn, role: "tool", text: "sunny", answers: "call_a" },
          { ...turn, role: "tool", text: "rain", answers: "call_b" }
        ])
      })
    )

    check("an output cut by its token limit", (adapter, host) =>
      comesOut(adapter, host, request({ maxTokens: 3 }), { content: "One two", finish: "length" }, { finish: "length" })
    )

    check("an answer that the host counted nothing for", (adapter, host) =>
      comesOut(adapter, host, request(), { content: "Hm.", finish: "stop" }, { content: "Hm.", usage: undefined })
    )

    if (harness.withholds === true) {
      check("an answer that the host withheld", (adapter, host) =>
        Effect.gen(function* () {
          const withheld: Answer = { content: "I was", finish: "content_filter", usage }
          yield* comesOut(adapter, host, request(), withheld, { content: "I was", finish: "content_filter" })
          const silent: Answer = { content: "", finish: "content_filter", usage }
          yield* comesOut(adapter, host, request(), silent, { content: "", finish: "content_filter" })
        })
      )
    }

    if (harness.has.reasoning) {
      check("reasoning before the text", (adapter, host) =>
        comesOut(
          adapter,
          host,
          request({ reasoningEffort: "high" }),
          { reasoning: "Let me see.", content: "42", finish: "stop" },
          { reasoning: "Let me see.", content: "42" }
        )
      )
    }

    if (harness.has.stop) {
      check("stop sequences", (adapter, host) =>
        comesOut(adapter, host, request({ stop }), { content: "a", finish: "stop" }, {}).pipe(
          Effect.map((sent) => assert.deepStrictEqual(sent.stop, harness.toldStops?.(stop) ?? stop))
        )
      )
    } else {
      check("stop sequences that the host does not know", (adapter, host) =>
        comesOut(
          adapter,
          host,
          request({ stop }),
          { content: "One. END Two.", finish: "length" },
          { content: "One. ", finish: "stop" }
        ).pipe(Effect.map((sent) => assert.deepStrictEqual(sent.stop, [])))
      )
    }

    if (harness.has.schema) {
      check("an answer by a schema", (adapter, host) =>
        Effect.gen(function* () {
          const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] }
          const responseFormat = { type: "json_schema", json_schema: { name: "count", schema, strict: true } } as const
          const answer: Answer = { content: '{"n":3}', finish: "stop" }
          const sent = yield* comesOut(adapter, host, request({ responseFormat }), answer, { content: '{"n":3}' })
          assert.deepStrictEqual(sent.schema, schema)
        })
      )
    }

    for (const weather of harness.weathers) {
      if (!onlyStreams.includes(weather)) {
        check(`a JSON answer meets ${weather}`, (adapter, host) =>
          Effect.gen(function* () {
            yield* host.meets(weather)
            const failure = yield* Effect.flip(adapter.complete(host.route, request()))
            assert.strictEqual(failure.class, meaning[weather])
            if (weather === "limit") assert.deepStrictEqual([failure.status, failure.retryAfterSeconds], [429, 7])
            assert.strictEqual(failure.param, weather === "image" ? "messages" : undefined)
            if (weather === "cut answer") assert.strictEqual(failure.status, 200)
          })
        )
      }
      if (!onlyAnswers.includes(weather)) {
        check(`a stream meets ${weather}`, (adapter, host) =>
          Effect.gen(function* () {
            yield* host.meets(weather)
            const { events, failure } = yield* hear(adapter, host.route, request())
            assert.strictEqual(failure?.class, meaning[weather])
            if (weather === "limit") assert.deepStrictEqual([failure?.status, failure?.retryAfterSeconds], [429, 7])
            const cut = weather === "cut stream"
            const said = events.some(({ type }) => type !== "usage")
            assert.strictEqual(said, cut, "only a stream that broke on its way has said something")
            assert.isFalse(events.some((event) => event.type === "finish"))
          })
        )
      }
    }

    if (harness.holds) chatCancellationContract(usage, check)
  })
