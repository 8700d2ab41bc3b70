import { Effect } from "effect"
import type { ChatEvent, ChatRequest } from "../../../src/domain/Chat.ts"
import { called, hear, joined, request } from "../../contracts/ChatHarness.ts"
import { record, records } from "../../contracts/ChatHosts.ts"
import { scenarios } from "../../contracts/ChatScenarios.ts"
import { assert, describe } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { refusing } from "../openai-chat/Wire.ts"
import { failedWith, openAiResponses, response, streamOf, whole, wire, written } from "./Wire.ts"

const { bodies, check } = scenarios(openAiResponses)

const question = { type: "message", role: "user", content: [{ type: "input_text", text: "Weather in Bern?" }] }
const body = { model: "ours", input: [question], include: ["reasoning.encrypted_content"], store: false }
const chatRequest = (fields: object = {}, more: Partial<ChatRequest> = {}) =>
  request({ native: { dialect: "responses", body: { ...body, ...fields }, headers: {}, extraTokens: 0 }, ...more })

const usage = { prompt: 21, completion: 13, cached: 8, cacheWrite: 2, reasoning: 5 }
const answer = { content: "42", reasoning: "Hm.", finish: "stop", usage } as const
const nativeIn = (events: ReadonlyArray<ChatEvent>) =>
  events.flatMap((value) => (value.type === "native" ? [value.event] : []))
const parsed = (texts: ReadonlyArray<string>) => texts.map((text) => JSON.parse(text.slice(text.indexOf("data: ") + 6)))
const stream = ({ end, opening, output }: ReturnType<typeof wire>) => [...opening, ...output, ...end]

describe("a request of the Responses dialect at an openai-responses host", () => {
  check("gets the host's whole answer beside the translated one", function* (adapter, fake, route) {
    yield* fake.script(Fake.json(200, whole(answer)))
    const got = yield* adapter.complete(route, chatRequest({ of_tomorrow: 1 }))
    assert.deepStrictEqual<unknown>(got.native, whole(answer))
    assert.deepInclude(got, { content: "42", reasoning: "Hm.", finish: "stop", usage })
    const expected = { ...body, model: "vendor/model-1", max_output_tokens: 4096, of_tomorrow: 1 }
    assert.deepStrictEqual((yield* fake.received).body, expected)
  })

  check("gets each event of the stream before what it says", function* (adapter, fake, route) {
    const all = stream(wire(answer))
    yield* fake.script(Fake.sse(...all), Fake.sse(...all))
    const { events, failure } = yield* hear(adapter, route, chatRequest())
    assert.isUndefined(failure)
    assert.deepStrictEqual(nativeIn(events), parsed(all))
    assert.deepInclude(joined(events), { content: "42", reasoning: "Hm.", usage })
    const isContent = ({ type }: ChatEvent) => type === "content"
    const before = events[events.findIndex(isContent) - 1]
    assert.deepInclude(before?.type === "native" ? before.event : {}, { type: "response.output_text.delta" })
    assert.deepStrictEqual(nativeIn((yield* hear(adapter, route, request())).events), [])
  })

  check("cannot move on once its host reasons or searches unseen", function* (adapter, fake, route) {
    for (const [type, isOutput] of [
      ["reasoning", true],
      ["web_search_call", true],
      ["message", false],
      ["function_call", false]
    ] as const) {
      const added = Fake.event({
        type: "response.output_item.added",
        output_index: 0,
        item: { type, id: "x", name: "f" }
      })
      yield* fake.script(Fake.sse(added, ...wire(answer).end))
      const [first] = (yield* hear(adapter, route, chatRequest())).events
      assert.strictEqual(first !== undefined && "isOutput" in first, isOutput, type)
    }
  })

  check("calls custom tools, whose input is any text", function* (adapter, fake, route) {
    const input = '*** Begin Patch\n"'
    const item = { type: "custom_tool_call" as const, id: "ctc_1", call_id: "call_1", name: "apply_patch", input }
    const at = { item_id: item.id, output_index: 0 }
    const end = response({ output: [item] })
    const events = written([
      { type: "response.output_item.added", output_index: 0, item: { ...item, input: "" } },
      { type: "response.custom_tool_call_input.delta", ...at, delta: input.slice(0, 5) },
      { type: "response.custom_tool_call_input.delta", ...at, delta: input.slice(5) },
      { type: "response.custom_tool_call_input.done", ...at, input },
      { type: "response.output_item.done", output_index: 0, item },
      { type: "response.completed", response: end }
    ])
    yield* fake.script(Fake.json(200, end), Fake.sse(...events), Fake.sse(...streamOf(end).end))
    const calls = [called("call_1", "apply_patch", input)]
    const got = yield* adapter.complete(route, chatRequest())
    assert.deepInclude(got, { toolCalls: calls, finish: "tool_calls" })
    const heard = yield* hear(adapter, route, chatRequest())
    assert.deepStrictEqual<unknown>(joined(heard.events).toolCalls, calls)
    assert.lengthOf(nativeIn(heard.events), 6)
    assert.deepStrictEqual<unknown>(joined((yield* hear(adapter, route, chatRequest())).events).toolCalls, calls)
  })

  check("never shows a failed response of the host's", function* (adapter, fake, route) {
    const { opening, output } = wire(answer)
    const failed = written([{ type: "response.failed", response: failedWith("server_error") }])
    yield* fake.script(Fake.sse(...opening, ...output, ...failed))
    const { events, failure } = yield* hear(adapter, route, chatRequest())
    assert.strictEqual(failure?.class, "retry")
    assert.deepStrictEqual(nativeIn(events), parsed([...opening, ...output]))
  })

  check(
    "comes translated from a host that answers a stream in one piece, or in no dialect at all",
    function* (adapter, fake, route) {
      yield* fake.script(Fake.json(200, whole(answer)), Fake.json(200, whole(answer)))
      const { events } = yield* hear(adapter, route, chatRequest())
      assert.deepInclude(joined(events), { content: "42", usage })
      assert.deepStrictEqual(nativeIn(events), [])
      assert.notProperty(yield* adapter.complete({ ...route, options: { native: false } }, chatRequest()), "native")
      const [, translated] = yield* bodies(fake, 2)
      assert.deepStrictEqual(translated.input, [{ role: "user", content: "Say something." }])
    }
  )

  check("goes without what its host refuses, and teaches the route nothing by it", function* (adapter, fake, route) {
    const refused = refusing("unsupported_value", "reasoning.summary")
    yield* fake.script(refused, ...Array.from({ length: 2 }, () => Fake.json(200, whole(answer))))
    const reasoning = { effort: "none", summary: "auto" }
    for (const _ of [1, 2]) yield* adapter.complete(route, chatRequest({ reasoning }))
    const [first, second, third] = yield* bodies(fake, 3)
    assert.deepStrictEqual(third.reasoning, reasoning)
    assert.deepStrictEqual(
      [first.reasoning, second.reasoning],
      [{ effort: "none", summary: "auto" }, { effort: "none" }]
    )
  })

  check("reasons if its model cannot do without", function* (adapter, fake, route) {
    const refused = refusing("unsupported_value", "reasoning.effort")
    yield* fake.script(refused, Fake.json(200, whole(answer)), refused, Fake.json(200, whole(answer)))
    const [reasoning, ...summed] = [{ effort: "none" }, { effort: "none", summary: "auto" }]
    for (const each of [reasoning, ...summed]) yield* adapter.complete(route, chatRequest({ reasoning: each }))
    const sent = (yield* bodies(fake, 4)).map((body) => body.reasoning)
    assert.deepStrictEqual(sent, [reasoning, {}, ...summed, { summary: "auto" }])
  })

  check("is asked once more without reasoning that its host cannot read", function* (adapter, fake, route) {
    const refused = refusing("invalid_encrypted_content", "input")
    const reasoning = { type: "reasoning", summary: [], encrypted_content: "of another account" }
    yield* fake.script(refused, Fake.json(200, whole(answer)), refused, refused)
    const input = [question, reasoning]
    yield* adapter.complete(route, chatRequest({ input }))
    assert.strictEqual((yield* Effect.flip(adapter.complete(route, chatRequest({ input })))).class, "request")
    const inputs = (yield* bodies(fake, 4)).map((sent) => sent.input)
    assert.deepStrictEqual(inputs, [input, [question], input, [question]])
  })

  check("that names what is not there is at fault itself, not the route", function* (adapter, fake, route) {
    const message =
      "Item with id 'ig_0123456789abcdef' not found. Items are not persisted when `store` is set to false."
    const error = { message, type: "invalid_request_error", param: "input", code: null }
    yield* fake.script(Fake.json(404, { error }), Fake.json(404, { error: { ...error, message: "no such model" } }))
    const failure = yield* Effect.flip(adapter.complete(route, chatRequest()))
    assert.deepInclude(failure, { class: "request", reason: message })
    assert.strictEqual((yield* Effect.flip(adapter.complete(route, chatRequest()))).class, "retry")
  })

  check(
    "whose prompt is too long is told so before any output, by a code and the host's words",
    function* (adapter, fake, route) {
      const code = "context_length_exceeded"
      const message = "Your input exceeds the context window of this model."
      const failed = response({ status: "failed" })
      const event = { type: "response.failed", response: { ...failed, error: { code, message } } }
      yield* fake.script(Fake.sse(...wire(answer).opening, Fake.event(event)))
      const { failure } = yield* hear(adapter, route, chatRequest())
      assert.deepInclude(failure, { class: "request", reason: message, reasonCode: code })
    }
  )

  for (const isStream of [false, true]) {
    check(
      `keeps the reasoning of ten tool turns byte for byte, ${isStream ? "streamed" : "in one piece"}`,
      function* (adapter, fake, route) {
        let input: ReadonlyArray<object> = [question]
        const value: Array<string> = []
        for (let turn = 0; turn < 10; turn++) {
          const encrypted_content = Buffer.from(`reasoning ${turn} \u00ff\u0000`.repeat(40)).toString("base64url")
          value.push(encrypted_content)
          const call = { id: `call_${turn}`, name: "now", arguments: `{"turn": ${turn}}` }
          const { output, ...rest } = whole({ reasoning: "Hm.", toolCalls: [call], finish: "tool_calls" })
          const sealed = output.map((item) => (item.type === "reasoning" ? { ...item, encrypted_content } : item))
          const answered = response({ ...rest, output: sealed })
          yield* fake.script(isStream ? Fake.sse(...stream(streamOf(answered))) : Fake.json(200, answered))
          const items = isStream
            ? nativeIn((yield* hear(adapter, route, chatRequest({ input }))).events).flatMap(({ item, type }) =>
                type === "response.output_item.done" ? [record(item)] : []
              )
            : records(record((yield* adapter.complete(route, chatRequest({ input }))).native)["output"])
          input = [...input, ...items, { type: "function_call_output", call_id: call.id, output: "noon" }]
          const sent = records(record((yield* fake.received).body)["input"])
          const kept = sent.flatMap((item) => (item["type"] === "reasoning" ? [item["encrypted_content"]] : []))
          assert.deepStrictEqual<unknown>(kept, value.slice(0, -1))
        }
      }
    )
  }
})
