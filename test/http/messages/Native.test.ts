import type Anthropic from "@anthropic-ai/sdk"
import { unsignedMark } from "../../../src/domain/Chat.ts"
import type { Answer } from "../../contracts/ChatHarness.ts"
import { ask, assertThrown, customer } from "../../harness/client/MessagesClient.ts"
import { calling, drained, thrownBy } from "../../harness/client/OfficialClients.ts"
import { price } from "../../harness/fixtures/ChatCatalog.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { answers, type Dialect, DialectHosts, dialects, gateway, routeTo } from "../../harness/upstream/Dialects.ts"
import { json, type Reply, sse } from "../../harness/upstream/FakeUpstream.ts"
import { errors, event } from "../../providers/anthropic/Wire.ts"

const dialect = (name: string): Dialect => dialects.find((one) => one.name === name) ?? assert.fail(name)
const anthropic = dialect("anthropic")
const gemini = dialect("gemini")
const served = gateway({
  own: [routeTo(anthropic)],
  other: [routeTo(gemini)],
  both: [routeTo(anthropic), routeTo(gemini, { preference: 2 })]
})

const signature = `${"EqQBCgIYAhIM+/=".repeat(40)}==`
const usage = { input_tokens: 12, output_tokens: 9, service_tier: "standard" }
const blocks = [
  { type: "thinking", thinking: "Hm.", signature },
  { type: "server_tool_use", id: "srvtoolu_1", name: "tool_search", input: { query: "x" } },
  { type: "text", text: "Yes.", citations: [{ type: "char_location", cited_text: "y" }] },
  { type: "tool_use", id: "toolu_1", name: "read", input: { path: "a" }, caller: { type: "direct" } }
]
const theirs = {
  id: "msg_theirs",
  type: "message",
  role: "assistant",
  model: "claude-theirs",
  content: blocks,
  stop_reason: "tool_use",
  stop_sequence: null,
  context_management: { applied_edits: [] },
  usage
}
const index = 0
const events = [
  {
    type: "message_start",
    message: { ...theirs, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } }
  },
  { type: "ping" },
  { type: "content_block_start", index, content_block: { type: "thinking", thinking: "", signature: "" } },
  { type: "content_block_delta", index, delta: { type: "thinking_delta", thinking: "Hm." } },
  { type: "content_block_delta", index, delta: { type: "signature_delta", signature } },
  { type: "content_block_stop", index },
  { type: "content_block_start", index: 1, content_block: blocks[1] },
  { type: "content_block_stop", index: 1 },
  { type: "content_block_start", index: 2, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 2, delta: { type: "text_delta", text: "Yes." } },
  { type: "content_block_delta", index: 2, delta: { type: "citations_delta", citation: { type: "char_location" } } },
  { type: "content_block_stop", index: 2 },
  {
    type: "content_block_start",
    index: 3,
    content_block: { type: "tool_use", id: "toolu_1", name: "read", input: {} }
  },
  { type: "content_block_delta", index: 3, delta: { type: "input_json_delta", partial_json: '{"path":"a"}' } },
  { type: "content_block_stop", index: 3 },
  { type: "message_delta", delta: { stop_reason: "tool_use", stop_sequence: null }, usage },
  { type: "message_stop" }
]
const streamed: Reply = sse(...events.map(event))
/** What is told of them: all counts that are billed. */
const billed = {
  ...usage,
  cache_creation: { ephemeral_1h_input_tokens: 0, ephemeral_5m_input_tokens: 0 },
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens_details: { thinking_tokens: 0 },
  server_tool_use: null
}
const charge = 12n * price.prompt + 9n * price.completion

const tool: Anthropic.Tool = { name: "read", input_schema: { type: "object" } }
const hi: Anthropic.MessageParam = { role: "user", content: "hi" }
const asking = (model: string, more: object = {}): Anthropic.MessageCreateParamsNonStreaming => {
  return { model, max_tokens: 2_000, messages: [hi], tools: [tool], thinking: { type: "adaptive" }, ...more }
}
const pdf = { type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" } }

withLayer(served)("a route that speaks the Messages API", (it) => {
  it.effect("is sent the client's own body and its betas, and its answer comes back as it is", function* () {
    const host = (yield* DialectHosts).of(anthropic)
    yield* host.script(json(200, theirs))
    const account = yield* customer()
    const more = { context_management: { edits: [{ type: "clear_tool_uses_20250919" }] }, top_k: 5, of_tomorrow: 1 }
    const body = asking("own", more)
    const harmless = "interleaved-thinking-2025-05-14"
    const headers = { "anthropic-beta": `${harmless},new-2026-01-01` }
    const message = yield* calling(() => account.anthropic.messages.create(body, { headers }))
    const received = yield* host.received
    assert.deepStrictEqual<unknown>(received.body, { ...body, model: "hush-model" })
    assert.strictEqual(received.headers["anthropic-beta"], harmless)
    assert.notStrictEqual(received.headers["x-api-key"], account.secret)
    const { id, model, usage: told, ...rest } = message
    const { id: _id, model: _model, usage: _usage, ...expected } = theirs
    assert.match(id, /^msg_[0-9a-f]{32}$/)
    assert.strictEqual(model, "own")
    assert.deepStrictEqual<unknown>(JSON.parse(JSON.stringify(rest)), expected)
    assert.deepInclude<object>(told, usage)
    assert.strictEqual(yield* account.spent, charge)
  })

  const stated = { ...usage, cost: 0.5, cost_details: { upstream_inference_cost: 0.4 }, is_byok: true }
  const costly = {
    whole: json(200, { ...theirs, usage: stated }),
    streamed: sse(
      event({ type: "message_start", message: { ...theirs, content: [], stop_reason: null, usage: stated } }),
      event({ type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage: stated }),
      event({ type: "message_stop" })
    )
  }

  it.effect("tells its operator alone what it charges", function* () {
    const host = (yield* DialectHosts).of(anthropic)
    const { anthropic: client } = yield* customer()
    yield* host.script(costly.whole)
    const message = yield* calling(() => client.messages.create(asking("own")))
    yield* host.received
    yield* host.script(costly.streamed)
    const { items } = yield* drained(yield* calling(() => client.messages.create({ ...asking("own"), stream: true })))
    yield* host.received
    assert.deepInclude<object>(message.usage, usage)
    assert.lengthOf(items, 3)
    assert.notMatch(JSON.stringify([message, items]), /cost|byok/)
  })

  const untold = [{}, { usage: null }]

  it.effect.each(untold)("streams the gateway's counts, which clients need, where its host says %j", function* (told) {
    const host = (yield* DialectHosts).of(anthropic)
    const { usage: _, ...uncounted } = theirs
    yield* host.script(
      sse(
        event({ type: "message_start", message: { ...uncounted, ...told, content: [], stop_reason: null } }),
        event({ type: "content_block_start", index, content_block: { type: "text", text: "" } }),
        event({ type: "content_block_delta", index, delta: { type: "text_delta", text: "Yes." } }),
        event({ type: "content_block_stop", index }),
        event({ type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null } }),
        event({ type: "message_stop" })
      )
    )
    const account = yield* customer()
    const message = yield* calling(() => account.anthropic.messages.stream(asking("own")).finalMessage())
    yield* host.received
    assert.strictEqual(message.stop_reason, "end_turn")
    const { input_tokens: prompt, output_tokens: completion } = message.usage
    assert.isAbove(prompt, 0)
    assert.isAbove(completion, 0)
    assert.strictEqual(yield* account.spent, BigInt(prompt) * price.prompt + BigInt(completion) * price.completion)
  })

  /** What the host reports, and what of it is billed. */
  const corrected = [
    ["above the cap", { input_tokens: 12, output_tokens: 5_000 }, [12, 2_000]],
    ["that cannot be", { input_tokens: 1e300, output_tokens: 9 }, [102_000, 9]],
    ["in two parts", { input_tokens: 12, output_tokens: 9, server_tool_use: { web_search_requests: 7 } }, [12, 9]]
  ] as const

  for (const stream of [false, true]) {
    it.effect.each(corrected)(`shows what is billed of counts %s, streamed: ${stream}`, function* ([, told, expected]) {
      const host = (yield* DialectHosts).of(anthropic)
      const half = { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 1 } }
      const whole = { type: "message_delta", delta: { stop_sequence: null }, usage: told }
      const begun = { type: "message_start", message: { ...theirs, content: [], stop_reason: null } }
      const parts = [begun, ...events.slice(8, 12), half, whole, { type: "message_stop" }]
      yield* host.script(stream ? sse(...parts.map(event)) : json(200, { ...theirs, usage: told }))
      const account = yield* customer()
      const { message } = yield* calling(() => ask(account, asking("own"), stream))
      yield* host.received
      const { input_tokens, output_tokens, server_tool_use } = message.usage
      assert.deepStrictEqual<unknown>([input_tokens, output_tokens], expected)
      assert.strictEqual(server_tool_use?.web_search_requests ?? 0, 0)
      assert.strictEqual(message.stop_reason, stream ? "end_turn" : "tool_use")
      const paid = BigInt(input_tokens) * price.prompt + BigInt(output_tokens) * price.completion
      if (input_tokens < 100) assert.strictEqual(yield* account.spent, paid)
    })
  }

  it.effect("streams its events as they are, under our names, the last after the charge", function* () {
    const host = (yield* DialectHosts).of(anthropic)
    yield* host.script(streamed)
    const account = yield* customer()
    const stream = yield* calling(() => account.anthropic.messages.create({ ...asking("own"), stream: true }))
    const { error, items } = yield* drained(stream)
    yield* host.received
    assert.isUndefined(error)
    assert.strictEqual(yield* account.spent, charge)
    const [start, ...others] = items
    // The client leaves pings out.
    const [stop, delta, ...before] = others.toReversed()
    assert.deepStrictEqual<unknown>(before.toReversed(), events.slice(2, -2))
    assert.deepStrictEqual<unknown>([delta, stop], [{ ...events.at(-2), usage: billed }, events.at(-1)])
    if (start?.type !== "message_start") return assert.fail("no message_start")
    const { id, model, ...rest } = start.message
    assert.match(id, /^msg_[0-9a-f]{32}$/)
    assert.strictEqual(model, "own")
    assert.deepInclude<object>(rest, { content: [], context_management: { applied_edits: [] } })
  })

  it.effect.each([false, true])(
    "gets its signatures back to the byte over ten turns, streamed: %s",
    function* (stream) {
      const host = (yield* DialectHosts).of(anthropic)
      const account = yield* customer()
      const messages: Array<Anthropic.MessageParam> = [hi]
      for (let turn = 1; turn <= 10; turn += 1) {
        yield* host.script(stream ? streamed : json(200, theirs))
        const { message } = yield* calling(() => ask(account, asking("own", { messages }), stream))
        const { bytes } = yield* host.received
        assert.lengthOf(bytes.toString().split(signature), turn)
        messages.push({ role: "assistant", content: message.content })
        messages.push({ role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "1" }] })
      }
    }
  )

  it.effect("takes a PDF and a known tool of the client, which no other route can, and a format", function* () {
    const host = (yield* DialectHosts).of(anthropic)
    const account = yield* customer()
    const format = { type: "json_schema", schema: { type: "object" } }
    for (const [more, what] of [
      [{ messages: [{ role: "user", content: [pdf] }] }, "Document input"],
      [{ tools: [{ type: "bash_20250124", name: "bash" }] }, "The tool `bash_20250124`"],
      [{ output_config: { format } }, undefined]
    ] as const) {
      yield* host.script(json(200, theirs))
      yield* calling(() => account.anthropic.messages.create(asking("both", more)))
      assert.deepInclude((yield* host.received).body, more)
      if (what === undefined) continue
      const refused = yield* thrownBy(() => account.anthropic.messages.create(asking("other", more)))
      assertThrown(refused, 400, "invalid_request_error", `${what} is not available for \`other\`.`)
    }
  })

  it.effect(
    "is left for one that does not when it fails, and that one's thinking never reaches it later",
    function* () {
      const { of } = yield* DialectHosts
      const account = yield* customer()
      const answer: Answer = { content: "Yes.", reasoning: "Hm.", finish: "stop" }
      yield* of(anthropic).script(json(503, anthropic.error(503)))
      yield* of(gemini).script(answers(gemini, answer))
      const { message } = yield* calling(() => ask(account, asking("both"), false))
      assert.deepInclude(message.content[0], { type: "thinking", thinking: "Hm.", signature: unsignedMark })
      yield* of(anthropic).received
      yield* of(gemini).received
      yield* of(anthropic).script(json(200, theirs))
      const messages = [hi, { role: "assistant" as const, content: message.content }, hi]
      yield* calling(() => ask(account, asking("both", { messages }), false))
      const { bytes } = yield* of(anthropic).received
      assert.notInclude(bytes.toString(), unsignedMark)
      assert.include(bytes.toString(), "Yes.")
    }
  )

  it.effect("says in its own words why it refuses a request, and nothing else of itself", function* () {
    const host = (yield* DialectHosts).of(anthropic)
    const account = yield* customer()
    const { error, status } = errors.request
    for (const stream of [false, true]) {
      yield* host.script(json(status, { type: "error", error, request_id: "req_theirs" }))
      const refused = yield* thrownBy(() => ask(account, asking("own"), stream))
      yield* host.received
      const message = "prompt is too long: 210000 tokens > 200000 maximum"
      assertThrown(refused, 400, "invalid_request_error", message)
    }
  })

  it.effect("is not blamed for a head that is too large, nor is another one asked", function* () {
    const { of } = yield* DialectHosts
    const account = yield* customer()
    for (let time = 1; time <= 6; time++) {
      yield* of(anthropic).script(json(431, {}))
      const refused = yield* thrownBy(() => account.anthropic.messages.create(asking("both")))
      assertThrown(refused, 400, "invalid_request_error", "Upstream rejected the request.")
      yield* of(anthropic).received
    }
  })

  it.effect("counts the tokens of a prompt, and the gateway does where it cannot", function* () {
    const host = (yield* DialectHosts).of(anthropic)
    const account = yield* customer()
    const { max_tokens: _, ...body } = asking("own", { system: "Be brief." })
    const count = calling(() => account.anthropic.messages.countTokens(body))
    yield* host.script(json(200, { input_tokens: 321 }))
    assert.deepStrictEqual((yield* count).input_tokens, 321)
    const { body: sent, path } = yield* host.received
    assert.strictEqual(path, "/v1/messages/count_tokens")
    assert.deepStrictEqual<unknown>(sent, { ...body, model: "hush-model" })
    yield* host.script(json(200, { input_tokens: 1e300 }))
    assert.isBelow((yield* count).input_tokens, 1e6)
    yield* host.received
    yield* host.script(json(500, anthropic.error(500)))
    const own = (yield* count).input_tokens
    assert.isAbove(own, 5)
    assert.isBelow(own, 60)
    yield* host.received
    assert.strictEqual(yield* account.spent, 0n)
  })
})
