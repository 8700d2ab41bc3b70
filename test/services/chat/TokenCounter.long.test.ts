import { randomBytes } from "node:crypto"
import { Effect, Fiber, FastCheck as fc } from "effect"
import { encode } from "gpt-tokenizer/encoding/o200k_base"
import type { ChatRequest, Message } from "../../../src/domain/Chat.ts"
import { utf8Bytes } from "../../../src/domain/Pricing.ts"
import { TokenCounter } from "../../../src/services/chat/TokenCounter.ts"
import { runs } from "../../harness/Cases.ts"
import { assert, describe, testOver } from "../../harness/It.ts"

const request = (messages: ReadonlyArray<Message>, more: Partial<ChatRequest> = {}): ChatRequest => ({
  model: "m",
  messages,
  stream: false,
  includeUsage: false,
  maxTokens: 4096,
  stop: [],
  tools: [],
  webSearch: false,
  ...more
})

const whole = (text: string): number => encode(text, { disallowedSpecial: new Set() }).length

const prose = "The harbour wakes before the town does: ropes, gulls, then the first ferry to Ærø at 5:40. "

const test = testOver(TokenCounter.layer)

describe("the token count of a text", () => {
  test("is that of the tokenizer for a short text", function* () {
    const tokens = yield* TokenCounter
    for (const text of ["", "hello", "hello world", "漢字かな交じり文", "👩‍👩‍👧‍👦 family", "<|endoftext|>"]) {
      assert.strictEqual(yield* tokens.count(text), whole(text), text)
    }
    assert.strictEqual(yield* tokens.count("hello world"), 2)
  })

  test("is exact for a long text with spaces", function* () {
    const text = prose.repeat(60)
    assert.strictEqual(yield* (yield* TokenCounter).count(text), whole(text))
  })

  test("is within a percent for a long text without spaces", function* () {
    const tokens = yield* TokenCounter
    for (const text of ["x9_".repeat(1500), "漢字".repeat(1500), "\n".repeat(3000)]) {
      const exact = whole(text)
      const counted = yield* tokens.count(text)
      assert.isAtLeast(counted, exact)
      assert.isAtMost(counted, exact + Math.ceil(text.length / 256))
    }
  })

  test("is made without splitting a surrogate pair", function* () {
    const tokens = yield* TokenCounter
    for (let shift = 0; shift < 3; shift++) {
      const text = "a".repeat(shift) + "😀".repeat(2000)
      assert.isAtMost(yield* tokens.count(text), whole("😀") * 2000 + 3)
    }
  })

  test("is never more than the bytes of the text", function* () {
    const tokens = yield* TokenCounter
    const texts = fc.sample(
      fc.oneof(
        fc.fullUnicodeString({ maxLength: 2000 }),
        fc.string16bits({ maxLength: 2000 }),
        fc.string({ maxLength: 2000 }),
        fc.stringOf(fc.constantFrom(" ", "a", "\n", "é", "<|endoftext|>", "\ud83d"), { maxLength: 1500 })
      ),
      { numRuns: runs(300), seed: 1 }
    )
    for (const text of texts) assert.isAtMost(yield* tokens.count(text), utf8Bytes(text))
  })

  test("runs in slices for a long text, and does not block the event loop", function* () {
    const tokens = yield* TokenCounter
    yield* tokens.count("warm")
    let turns = 0
    let beat = setImmediate(function turn() {
      turns++
      beat = setImmediate(turn)
    })
    yield* Effect.addFinalizer(() => Effect.sync(() => clearImmediate(beat)))
    // Hard text: nothing in it is remembered.
    yield* tokens.count(randomBytes(1_000_000).toString("hex"))
    assert.isAtLeast(turns, 5)
  })

  test("works after the first one was interrupted", function* () {
    const tokens = yield* TokenCounter
    const first = yield* Effect.fork(tokens.count("one"))
    yield* Effect.yieldNow()
    yield* Fiber.interrupt(first)
    assert.strictEqual(yield* tokens.count("one"), 1)
  })
})

describe("the token count of a prompt", () => {
  test("has all its texts, some tokens for each message, and each image", function* () {
    const tokens = yield* TokenCounter
    const tool = { type: "function", function: { name: "find", parameters: { type: "object" } } } as const
    const messages: ReadonlyArray<Message> = [
      { role: "system", content: "Be brief." },
      {
        role: "user",
        content: [
          { type: "text", text: "What is on these?" },
          { type: "image_url", image_url: { url: `data:image/png;base64,${"A".repeat(5000)}` } },
          { type: "image_url", image_url: { url: "https://example.test/a.png" } }
        ]
      },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c1", type: "function", function: { name: "find", arguments: '{"q":"cat"}' } }]
      },
      { role: "tool", tool_call_id: "c1", content: "two cats" }
    ]
    const texts = ["Be brief.", "What is on these?", "c1", "find", '{"q":"cat"}', "two cats", "c1"]
    const exact = [...texts, JSON.stringify([tool])].reduce((sum, text) => sum + whole(text), 0)
    assert.strictEqual(yield* tokens.prompt(request(messages, { tools: [tool] }), 1000), exact + 4 * 4 + 2000)
    const native = { dialect: "messages", body: {}, headers: {}, extraTokens: 401 } as const
    const withNative = request(messages, { tools: [tool], native })
    assert.strictEqual(yield* tokens.prompt(withNative, 1000), exact + 4 * 4 + 2000 + 101)
  })
})
