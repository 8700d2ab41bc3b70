import { Effect } from "effect"
import { type ChatEvent, type ChatRequest, isDelta } from "../../../src/domain/Chat.ts"
import { chatOf, request } from "../../contracts/ChatHarness.ts"
import { layer, routeTo } from "../../contracts/ChatHosts.ts"
import { assert, liveOver } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { chatWires } from "../ChatWires.ts"

interface Beginnings {
  /** Events that start generation without output. */
  readonly begin: ReadonlyArray<object>
  /** Events before generation, or beside it. */
  readonly others: ReadonlyArray<object>
}

const choice = (delta: object) => ({ choices: [{ index: 0, delta, finish_reason: null }] })
const message = { id: "m", type: "message", role: "assistant", model: "x", content: [], usage: { input_tokens: 3 } }
const block = (content_block: object) => ({ type: "content_block_start", index: 0, content_block })
const item = (item: object) => ({ type: "response.output_item.added", output_index: 0, item })

const beginnings: Readonly<Record<string, Beginnings>> = {
  "openai-chat": {
    begin: [choice({ role: "assistant", content: "" }), choice({}), choice({ reasoning_content: "" })],
    others: [{ choices: [], usage: { prompt_tokens: 3 } }, { id: "x" }]
  },
  "openai-responses": {
    begin: [
      item({ type: "reasoning", id: "rs_1", summary: [] }),
      item({ type: "message", id: "msg_1", content: [] }),
      item({ type: "of_tomorrow" }),
      { type: "response.reasoning_summary_part.added", item_id: "rs_1", output_index: 0, summary_index: 0 }
    ],
    others: [
      { type: "response.created", response: { status: "in_progress" } },
      { type: "response.in_progress", response: { status: "in_progress" } },
      { type: "keepalive", sequence_number: 3 }
    ]
  },
  anthropic: {
    begin: [
      block({ type: "thinking", thinking: "", signature: "" }),
      block({ type: "redacted_thinking", data: "x" }),
      block({ type: "text", text: "" }),
      block({ type: "of_tomorrow" })
    ],
    others: [{ type: "message_start", message }, { type: "ping" }]
  },
  gemini: {
    begin: [
      { candidates: [{ content: { parts: [{ text: "", thought: true, thoughtSignature: "s" }] } }] },
      { candidates: [{ index: 0 }] }
    ],
    others: [{ usageMetadata: { promptTokenCount: 3 } }, { responseId: "x" }]
  }
}

const native: Readonly<Record<string, Partial<ChatRequest>>> = {
  "openai-responses": {
    native: { dialect: "responses", body: { model: "m", input: "hi" }, headers: {}, extraTokens: 0 }
  },
  anthropic: {
    native: {
      dialect: "messages",
      body: { model: "m", max_tokens: 9, messages: [{ role: "user", content: "hi" }] },
      headers: {},
      extraTokens: 0
    }
  }
}

const cases = chatWires.flatMap((wire) =>
  [{}, native[wire.adapter]].flatMap((chatRequest) => (chatRequest === undefined ? [] : [{ wire, asked: chatRequest }]))
)

for (const { asked: chatRequest, wire } of cases) {
  const how = "native" in chatRequest ? "in its own dialect" : "translated"
  liveOver(layer)(`a ${wire.adapter} host that generates is seen to, once, ${how}`, function* () {
    const fake = yield* Fake.make
    const adapter = yield* Effect.flatMap(wire.make, chatOf)
    const { begin = [], others = [] } = beginnings[wire.adapter] ?? {}
    const hear = Effect.fnUntraced(function* (events: ReadonlyArray<object>) {
      yield* fake.script(Fake.sse(...events.map(Fake.event), Fake.cut))
      const heard: Array<ChatEvent> = []
      const pull = yield* adapter.stream(
        routeTo(wire, fake.url, wire.options),
        request({ stream: true, ...chatRequest })
      )
      yield* Effect.flip(Effect.forever(Effect.map(pull, (batch) => heard.push(...batch))))
      return { begins: heard.filter(({ type }) => type === "begin").length, isShown: heard.some(isDelta) }
    }, Effect.scoped)
    assert.deepStrictEqual(yield* hear(others), { begins: 0, isShown: false })
    for (const event of begin) {
      const { begins, isShown } = yield* hear([...others, event, event])
      assert.strictEqual(begins, isShown ? 0 : 1, JSON.stringify(event))
      assert.isTrue(!isShown || how === "in its own dialect")
    }
  })
}
