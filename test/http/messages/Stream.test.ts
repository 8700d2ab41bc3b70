import Anthropic, { APIError } from "@anthropic-ai/sdk"
import { Effect } from "effect"
import { type ChatEvent, unsignedMark } from "../../../src/domain/Chat.ts"
import { InsufficientCredits, UpstreamFailed } from "../../../src/domain/Failure.ts"
import { encodeBrokenStream, toWire } from "../../../src/http/errors/ErrorMessages.ts"
import { MessagesEncoder } from "../../../src/http/messages/MessagesDialect.ts"
import { thrownBy } from "../../harness/client/OfficialClients.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { serving, sse } from "../../harness/upstream/FakeUpstream.ts"
import { content, reasoning, stop, toolEvents, usage } from "../chat/ChatAnswers.ts"
import { accepts } from "../openapi/Published.ts"

const name = { id: "msg_1", created: 1, model: "m-1" }
const counts = {
  input_tokens: 7,
  cache_creation_input_tokens: 1,
  cache_read_input_tokens: 4,
  cache_creation: { ephemeral_5m_input_tokens: 1, ephemeral_1h_input_tokens: 0 },
  output_tokens_details: { thinking_tokens: 3 },
  server_tool_use: null
}

interface Frame {
  readonly type: string
  readonly [field: string]: unknown
}

/** The data of the frames, each under the name of its type. */
const framesIn = (text: string): ReadonlyArray<Frame> =>
  [...text.matchAll(/event: (\w+)\ndata: (.*)\n\n/g)].map(([, event, data = ""]) => {
    const frame = JSON.parse(data)
    assert.strictEqual(frame.type, event)
    assert.isTrue(accepts("MessagesStreamEvent", frame), data)
    return frame
  })

const encode = (events: ReadonlyArray<ChatEvent>, showsThinking = true) => {
  const encoder = new MessagesEncoder(name, showsThinking)
  return framesIn(events.map((event) => encoder.encode([event])).join("") + encoder.finish(usage))
}

/** The frames of the blocks: without the message's own. */
const blocksOf = (frames: ReadonlyArray<Frame>) => frames.slice(1, -2)

describe("a stream of the Messages API", () => {
  it("opens with the message and ends with its reason and its usage", () => {
    const frames = encode([content("Ser"), content("vus"), stop])
    const unset = { stop_sequence: null, stop_details: null, container: null }
    const { message } = frames[0] ?? assert.fail("no frames")
    assert.deepInclude(message, {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "m-1",
      content: [],
      ...unset
    })
    assert.deepStrictEqual(frames.slice(-2), [
      { type: "message_delta", delta: { stop_reason: "end_turn", ...unset }, usage: { ...counts, output_tokens: 7 } },
      { type: "message_stop" }
    ])
    assert.deepStrictEqual(blocksOf(frames), [
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Ser" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "vus" } },
      { type: "content_block_stop", index: 0 }
    ])
  })

  it("has a signed block of thinking before the text", () => {
    const blocks = blocksOf(encode([reasoning("Hm."), content("Yes."), stop]))
    assert.deepStrictEqual(blocks.slice(0, 5), [
      { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "", signature: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "Hm." } },
      { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: unsignedMark } },
      { type: "content_block_stop", index: 0 },
      { type: "content_block_start", index: 1, content_block: { type: "text", text: "" } }
    ])
  })

  it("has no thinking where the client did not ask for any", () => {
    assert.notInclude(JSON.stringify(encode([reasoning("Hm."), content("Yes."), stop], false)), "thinking_delta")
  })

  it("has a block for each call, one after the other", () => {
    const frames = encode(toolEvents)
    const calls = [
      { type: "tool_use", id: "call_a", name: "weather", input: {} },
      { type: "tool_use", id: "call_b", name: "time", input: {} }
    ]
    assert.deepStrictEqual(blocksOf(frames), [
      { type: "content_block_start", index: 0, content_block: calls[0] },
      { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: '{"city":' } },
      { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: '"Wien"}' } },
      { type: "content_block_stop", index: 0 },
      { type: "content_block_start", index: 1, content_block: calls[1] },
      { type: "content_block_delta", index: 1, delta: { type: "input_json_delta", partial_json: "{}" } },
      { type: "content_block_stop", index: 1 }
    ])
    assert.deepInclude(frames.at(-2)?.delta, { stop_reason: "tool_use" })
  })

  it("is whole without any output", () => {
    const types = encode([stop]).map(({ type }) => type)
    assert.deepStrictEqual(types, ["message_start", "message_delta", "message_stop"])
    const silent = framesIn(new MessagesEncoder(name, true).finish(usage)).map(({ type }) => type)
    assert.deepStrictEqual(silent, types)
  })

  it("tells the prompt's usage at its start where the host does", () => {
    const encoder = new MessagesEncoder(name, true)
    const [frame] = framesIn(encoder.encode([{ type: "usage", usage }, content("x")]))
    const expected = { ...counts, output_tokens: 0, output_tokens_details: { thinking_tokens: 0 } }
    assert.deepStrictEqual(Object(frame?.message).usage, expected)
  })

  it("breaks with an error and without its end", () => {
    const encoder = new MessagesEncoder(name, true)
    encoder.encode([content("x")])
    assert.deepStrictEqual(framesIn(encoder.error(encodeBrokenStream(new UpstreamFailed()))), [
      { type: "error", error: { type: "api_error", message: "The upstream provider returned an error." } }
    ])
  })

  it.scopedLive("that fails late has its hint beside the published message, for Anthropic's own client", function* () {
    const { body } = toWire(new InsufficientCredits({ needed: undefined, available: 0n }))
    const sent = new MessagesEncoder(name, true).error(body)
    assert.lengthOf(framesIn(sent), 1)
    const { url } = yield* serving(sse(": keep-alive\n\n", sent))
    const client = new Anthropic({ baseURL: url, apiKey: "k", maxRetries: 0 })
    const sdkRequest = { model: "m-1", max_tokens: 9, messages: [{ role: "user" as const, content: "hi" }] }
    const thrown = yield* thrownBy(() => client.messages.stream(sdkRequest).finalMessage())
    assert.instanceOf(thrown, APIError)
    assert.deepStrictEqual<unknown>(thrown.error, {
      type: "error",
      error: { type: "billing_error", message: "Insufficient credits.", hint: "0 USD is available." }
    })
  })

  it.scopedLive("is understood by Anthropic's own client, keep-alives before its first event too", function* () {
    const encoder = new MessagesEncoder(name, true)
    const sent = encoder.encode([reasoning("Hm."), content("Yes."), stop]) + encoder.finish(usage)
    const { url } = yield* serving(sse(": keep-alive\n\n", ": keep-alive\n\n", sent))
    const client = new Anthropic({ baseURL: url, apiKey: "k", maxRetries: 0 })
    const body = { model: "m-1", max_tokens: 9, messages: [{ role: "user" as const, content: "hi" }] }
    const message = yield* Effect.promise(() => client.messages.stream(body).finalMessage())
    assert.deepStrictEqual<unknown>(JSON.parse(JSON.stringify(message.content)), [
      { type: "thinking", thinking: "Hm.", signature: unsignedMark },
      { type: "text", text: "Yes." }
    ])
    assert.deepInclude(message.usage, { input_tokens: 7, cache_read_input_tokens: 4, output_tokens: 7 })
  })

  it("passes a host's own events under our names, and keeps the last one back", () => {
    const encoder = new MessagesEncoder(name, false)
    const native = (event: Frame): ChatEvent => ({ type: "native", event })
    const delta = { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "c2ln==" } }
    const sent = encoder.encode([
      native({ type: "message_start", message: { id: "msg_theirs", model: "theirs", extra: 1, usage: {} } }),
      { type: "usage", usage }
    ])
    assert.deepStrictEqual(framesIn(sent), [
      { type: "message_start", message: { id: "msg_1", model: "m-1", extra: 1, usage: {} } }
    ])
    assert.deepStrictEqual(framesIn(encoder.encode([native(delta), reasoning("x")])), [delta])
    assert.strictEqual(encoder.encode([native({ type: "message_stop", more: true }), stop]), "")
    assert.deepStrictEqual(framesIn(encoder.finish(usage)), [{ type: "message_stop", more: true }])
  })
})
