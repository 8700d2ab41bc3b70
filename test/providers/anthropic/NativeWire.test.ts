import { Effect } from "effect"
import type { ChatEvent, ChatRequest } from "../../../src/domain/Chat.ts"
import { hear, joined, request } from "../../contracts/ChatHarness.ts"
import { record, records, string } from "../../contracts/ChatHosts.ts"
import { scenarios } from "../../contracts/ChatScenarios.ts"
import { assert, describe } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { anthropic, event, wire } from "./Wire.ts"

const { bodies, check } = scenarios(anthropic)

const question = { role: "user", content: "Weather in Bern?" }
const written = (fields: object = {}) => ({ model: "ours", max_tokens: 64_000, messages: [question], ...fields })
const chatRequest = (body: object = {}, more: Partial<ChatRequest> = {}, headers = {}) =>
  request({ native: { dialect: "messages", body: { ...written(body) }, headers, extraTokens: 0 }, ...more })

const usage = { prompt: 21, completion: 13, cached: 8, cacheWrite: 2, reasoning: 5 }
const answer = { content: "42", reasoning: "Hm.", finish: "stop", usage } as const
const { body: whole, end, opening, output } = wire(answer)
const harmless = "effort-2025-11-24"
const all = [...opening, ...output, ...end]
const nativeIn = (events: ReadonlyArray<ChatEvent>) =>
  events.flatMap((value) => (value.type === "native" ? [value.event] : []))
const parsed = (texts: ReadonlyArray<string>) => texts.map((text) => JSON.parse(text.slice(text.indexOf("data: ") + 6)))

describe("a request of the Messages dialect at an anthropic host", () => {
  check("gets the host's whole answer beside the translated one", function* (adapter, fake, route) {
    yield* fake.script(Fake.json(200, whole), Fake.json(200, whole))
    const got = yield* adapter.complete(route, chatRequest({ of_tomorrow: 1 }, {}, { "anthropic-beta": harmless }))
    assert.deepStrictEqual<unknown>(got.native, whole)
    assert.deepInclude(got, { content: "42", reasoning: "Hm.", finish: "stop", usage })
    const { body, headers } = yield* fake.received
    assert.deepStrictEqual(body, { ...written(), model: "claude-model-1", max_tokens: 4096, of_tomorrow: 1 })
    assert.strictEqual(headers["anthropic-beta"], harmless)
    const betas = { ...route, provider: { ...route.provider, headers: { "Anthropic-Beta": "operators" } } }
    yield* adapter.complete(betas, chatRequest({}, {}, { "anthropic-beta": `${harmless},of-tomorrow` }))
    assert.strictEqual((yield* fake.received).headers["anthropic-beta"], `operators,${harmless}`)
  })

  check("gets each event of the stream before what it says", function* (adapter, fake, route) {
    yield* fake.script(Fake.sse(...all), Fake.sse(...all))
    const { events, failure } = yield* hear(adapter, route, chatRequest())
    assert.isUndefined(failure)
    assert.deepStrictEqual(nativeIn(events), parsed(all))
    assert.deepInclude(joined(events), { content: "42", reasoning: "Hm.", usage })
    const first = (type: string) => events.findIndex((value) => value.type === type)
    const before = events.slice(0, first("reasoning")).at(-1)
    assert.deepInclude(before, { type: "native", event: parsed(output)[1] })
    assert.deepInclude((yield* fake.received).body, { stream: true })
    const translated = yield* hear(adapter, route, request())
    assert.deepStrictEqual(
      translated.events.filter(({ type }) => type === "finish" || type === "usage"),
      events.filter(({ type }) => type === "finish" || type === "usage")
    )
    assert.deepStrictEqual(nativeIn(translated.events), [])
  })

  check(
    "cannot move on once its host thinks unseen, while a text's beginning shows nothing",
    function* (adapter, fake, route) {
      const start = (type: string) => event({ type: "content_block_start", index: 0, content_block: { type } })
      for (const [type, isOutput] of [
        ["thinking", true],
        ["redacted_thinking", true],
        ["server_tool_use", true],
        ["text", undefined]
      ] as const) {
        yield* fake.script(Fake.sse(...opening, start(type), ...end))
        const { events } = yield* hear(adapter, route, chatRequest())
        const [begun] = events.filter(
          (value) => value.type === "native" && value.event["type"] === "content_block_start"
        )
        assert.deepInclude(begun, isOutput === undefined ? { type: "native" } : { isOutput })
        assert.strictEqual(begun !== undefined && "isOutput" in begun, isOutput === true, type)
      }
    }
  )

  check("never shows an error event of the host's", function* (adapter, fake, route) {
    const broken = event({ type: "error", error: { type: "overloaded_error", message: "req_011 is overloaded" } })
    yield* fake.script(Fake.sse(...opening, ...output.slice(0, 3), broken))
    const { events, failure } = yield* hear(adapter, route, chatRequest())
    assert.strictEqual(failure?.class, "retry")
    assert.deepStrictEqual(nativeIn(events), parsed([...opening, ...output.slice(0, 3)]))
  })

  check("is translated for a route that says so, or whose host must not fetch", function* (adapter, fake, route) {
    const image = { role: "user", content: [{ type: "image", source: { type: "url", url: "https://a.test/a.png" } }] }
    yield* fake.script(...Array.from({ length: 3 }, () => Fake.json(200, whole)))
    const off = { ...route, options: { native: false } }
    assert.notProperty(yield* adapter.complete(off, chatRequest()), "native")
    assert.notProperty(yield* adapter.complete(route, chatRequest({ messages: [image] })), "native")
    const other = chatRequest({}, { native: { dialect: "responses", body: {}, headers: {}, extraTokens: 0 } })
    assert.notProperty(yield* adapter.complete(route, other), "native")
    for (const body of yield* bodies(fake, 3)) assert.include(JSON.stringify(body), "Say something.")
  })

  check("is not cut at a stop sequence of white space, which is the host's to judge", function* (adapter, fake, route) {
    const { body } = wire({ content: "a\n\nb", finish: "stop" })
    yield* fake.script(Fake.json(200, body))
    const { content, native } = yield* adapter.complete(
      route,
      chatRequest({ stop_sequences: ["\n\n"] }, { stop: ["\n\n"] })
    )
    assert.deepStrictEqual<unknown>([content, native], ["a\n\nb", body])
  })

  check("is asked once more without thoughts where the host refuses them", function* (adapter, fake, route) {
    const message = "messages.1.content.0: Invalid `signature` in `thinking` block"
    const refusal = Fake.json(400, { type: "error", error: { type: "invalid_request_error", message } })
    const text = { type: "text", text: "Sunny." }
    const thought = { type: "thinking", thinking: "Hm.", signature: "of another account" }
    const history = (...content: ReadonlyArray<object>) => [question, { role: "assistant", content }, question]
    const edits = [{ type: "clear_thinking_20251015" }, { type: "clear_tool_uses_20250919" }]
    const body = { messages: history(thought, text), thinking: { type: "adaptive" }, context_management: { edits } }
    yield* fake.script(refusal, Fake.json(200, whole), refusal, refusal)
    yield* adapter.complete(route, chatRequest(body))
    const failure = yield* Effect.flip(adapter.complete(route, chatRequest(body)))
    assert.deepInclude(failure, { class: "request", reason: message })
    const [first, second] = yield* bodies(fake, 2)
    assert.deepInclude(first, body)
    const { thinking: _, ...rest } = first
    const kept = { messages: history(text), context_management: { edits: edits.slice(1) } }
    assert.deepStrictEqual(second, { ...rest, ...kept })
  })

  check("of a beta that the account lacks is at fault itself, not the account", function* (adapter, fake, route) {
    for (const [status, type] of [
      [403, "permission_error"],
      [400, "invalid_request_error"]
    ] as const) {
      const message = "This organization does not have access to the fast beta."
      yield* fake.script(Fake.json(status, { type: "error", error: { type, message } }))
      assert.deepInclude(yield* Effect.flip(adapter.complete(route, chatRequest())), {
        class: "request",
        reason: message
      })
    }
  })

  for (const isStream of [false, true]) {
    check(
      `keeps every signature of ten tool turns byte for byte, ${isStream ? "streamed" : "in one piece"}`,
      function* (adapter, fake, route) {
        let messages: ReadonlyArray<object> = [question]
        const value: Array<string> = []
        for (let turn = 0; turn < 10; turn++) {
          const signature = Buffer.from(`signature ${turn} \u00ff\u0000`.repeat(40)).toString("base64")
          value.push(signature)
          const call = { id: `toolu_${turn}`, name: "now", arguments: JSON.stringify({ turn }) }
          const { body, end, opening, output } = wire({
            reasoning: `Hm ${turn}.`,
            toolCalls: [call],
            finish: "tool_calls"
          })
          const signed = (text: string) => text.replaceAll("EqQBCgIYAhIM", signature)
          yield* fake.script(
            isStream
              ? Fake.sse(...[...opening, ...output, ...end].map(signed))
              : Fake.json(200, JSON.parse(signed(JSON.stringify(body))))
          )
          const content = isStream
            ? contentOf(nativeIn((yield* hear(adapter, route, chatRequest({ messages }))).events))
            : record((yield* adapter.complete(route, chatRequest({ messages }))).native)["content"]
          const result = { type: "tool_result", tool_use_id: call.id, content: "noon" }
          messages = [...messages, { role: "assistant", content }, { role: "user", content: [result] }]
          const sent = records(record((yield* fake.received).body)["messages"]).flatMap((one) =>
            records(one["content"])
          )
          const signatures = sent.flatMap((block) => (block["type"] === "thinking" ? [block["signature"]] : []))
          assert.deepStrictEqual<unknown>(signatures, value.slice(0, -1))
        }
      }
    )
  }
})

/** Builds the content from a stream's events, like a client. */
const contentOf = (events: ReadonlyArray<Readonly<Record<string, unknown>>>): ReadonlyArray<object> => {
  const blocks: Array<Record<PropertyKey, unknown>> = []
  const inputs: Array<string> = []
  for (const { content_block, delta, index: value, type } of events) {
    const index = Number(value)
    if (type === "content_block_start") blocks[index] = { ...record(content_block) }
    if (type !== "content_block_delta") continue
    const { partial_json, signature, thinking } = record(delta)
    const block = blocks[index] ?? {}
    if (signature !== undefined) block["signature"] = signature
    if (thinking !== undefined) block["thinking"] = `${string(block["thinking"])}${string(thinking)}`
    if (partial_json !== undefined) inputs[index] = `${inputs[index] ?? ""}${string(partial_json)}`
  }
  return blocks.map((block, at) => (inputs[at] === undefined ? block : { ...block, input: JSON.parse(inputs[at]) }))
}
