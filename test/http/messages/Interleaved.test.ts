import { FastCheck as fc } from "effect"
import { type ChatEvent, unsignedMark } from "../../../src/domain/Chat.ts"
import { MessagesEncoder } from "../../../src/http/messages/MessagesDialect.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { content, reasoning, stop, usage } from "../chat/ChatAnswers.ts"

const call = (index: number, text: string, isFirst = false): ChatEvent =>
  isFirst
    ? { type: "tool_call", index, id: `call_${index}`, name: `tool_${index}`, arguments: text }
    : { type: "tool_call", index, arguments: text }

interface Block {
  readonly type: string
  text: string
}

/** Joins the deltas as a client does; fails if a delta or a stop is of no open block, or if two blocks are open. */
const assemble = (stream: string): ReadonlyArray<Block> => {
  const blocks: Array<Block> = []
  let open: number | undefined
  for (const [, data = ""] of stream.matchAll(/^data: (.*)$/gm)) {
    const { content_block, delta, index, type } = JSON.parse(data)
    if (type === "content_block_start") {
      assert.isUndefined(open, "a block starts in another")
      assert.strictEqual(index, blocks.length)
      open = index
      blocks.push({ type: content_block.type, text: "" })
    } else if (type === "content_block_delta") {
      assert.strictEqual(index, open)
      const block = blocks[index] ?? assert.fail("no block")
      block.text += delta.text ?? delta.partial_json ?? delta.thinking ?? ""
    } else if (type === "content_block_stop") {
      assert.strictEqual(index, open)
      open = undefined
    }
  }
  assert.isUndefined(open)
  return blocks
}

const encode = (events: ReadonlyArray<ChatEvent>): string => {
  const encoder = new MessagesEncoder({ id: "msg_1", created: 1, model: "m-1" }, true)
  return events.map((event) => encoder.encode([event])).join("") + encoder.finish(usage)
}

const finish: ChatEvent = { type: "finish", reason: "tool_calls" }
const [bash, read] = ['{"command":"ls"}', '{"path":"a.txt"}']

describe("calls whose pieces come between others", () => {
  it("two calls in turns become two whole blocks", () => {
    const events = [
      call(0, "", true),
      call(1, "", true),
      call(0, bash.slice(0, 5)),
      call(1, read.slice(0, 3)),
      call(0, bash.slice(5)),
      call(1, read.slice(3)),
      finish
    ]
    assert.deepStrictEqual(assemble(encode(events)), [
      { type: "tool_use", text: bash },
      { type: "tool_use", text: read }
    ])
  })

  it("text and reasoning in a call follow it in their order", () => {
    const events = [
      content("Let me see."),
      call(0, bash.slice(0, 5), true),
      content("\n"),
      reasoning("Hm."),
      content("So"),
      content(" be it."),
      call(0, bash.slice(5)),
      content("Done."),
      finish
    ]
    assert.deepStrictEqual(assemble(encode(events)), [
      { type: "text", text: "Let me see." },
      { type: "tool_use", text: bash },
      { type: "text", text: "\n" },
      { type: "thinking", text: "Hm." },
      { type: "text", text: "So be it.Done." }
    ])
  })

  it("pieces of the open call go out at once, and the next block with the end of its arguments", () => {
    const encoder = new MessagesEncoder({ id: "msg_1", created: 1, model: "m-1" }, true)
    assert.include(encoder.encode([call(0, '{"a":', true)]), '"partial_json"')
    assert.strictEqual(encoder.encode([call(1, "{}", true), content("After.")]), "")
    const last = encoder.encode([call(0, "1}")])
    assert.deepStrictEqual(
      [...last.matchAll(/event: (\w+)/g)].map(([, event]) => event),
      [
        "content_block_delta",
        "content_block_stop",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "content_block_start",
        "content_block_delta"
      ]
    )
    assert.include(encoder.encode([content(" More.")]), '"text":" More."')
  })

  it("a call without arguments that gets them at the end keeps them", () => {
    const events = [call(0, "", true), call(1, read, true), call(0, "{}"), finish]
    assert.deepStrictEqual(assemble(encode(events)), [
      { type: "tool_use", text: "{}" },
      { type: "tool_use", text: read }
    ])
  })

  it("a late blank piece of a stopped call is dropped", () => {
    const events = [call(0, bash, true), call(1, read, true), call(0, "\n"), finish]
    assert.deepStrictEqual(assemble(encode(events)), [
      { type: "tool_use", text: bash },
      { type: "tool_use", text: read }
    ])
  })

  it("what waits is sent at the end if the open call never completes", () => {
    const events: ReadonlyArray<ChatEvent> = [
      call(0, '{"command":"l', true),
      call(1, read, true),
      content("Cut."),
      { ...finish, reason: "length" }
    ]
    assert.deepStrictEqual(assemble(encode(events)), [
      { type: "tool_use", text: '{"command":"l' },
      { type: "tool_use", text: read },
      { type: "text", text: "Cut." }
    ])
  })

  it("nothing is lost, however the pieces of calls, text and reasoning are mixed", () => {
    const inputs = [bash, read, '{"nested":{"list":[1,"}",null]}}', "{}"]
    const source = fc.oneof(
      fc.integer({ min: 0, max: inputs.length - 1 }),
      fc.constantFrom("text" as const, "reasoning" as const)
    )
    fc.assert(
      fc.property(fc.array(fc.tuple(source, fc.integer({ min: 0, max: 6 })), { maxLength: 40 }), (steps) => {
        const sent = inputs.map(() => 0)
        const begun = new Set<number>()
        const texts = { text: "", reasoning: "" }
        const piece = (index: number, length: number): ChatEvent => {
          const from = sent[index] ?? 0
          const text = inputs[index]?.slice(from, from + length) ?? ""
          sent[index] = from + text.length
          const isFirst = !begun.has(index)
          begun.add(index)
          return call(index, text, isFirst)
        }
        const events = steps.map(([from, length], at): ChatEvent => {
          if (typeof from === "number") return piece(from, length)
          const text = `<${at}>`
          texts[from] += text
          return from === "text" ? content(text) : reasoning(text)
        })
        for (const index of begun) events.push(piece(index, 1_000))
        const blocks = assemble(encode([...events, finish]))
        const joined = (type: string) =>
          blocks
            .filter((block) => block.type === type)
            .map(({ text }) => text)
            .join("")
        assert.strictEqual(joined("text"), texts.text)
        assert.strictEqual(joined("thinking"), texts.reasoning)
        assert.sameMembers(
          blocks.filter(({ type }) => type === "tool_use").map(({ text }) => text),
          [...begun].map((index) => inputs[index] ?? "")
        )
      })
    )
  })
})

describe("sources in a stream of the Messages API", () => {
  const citation: ChatEvent = {
    type: "citation",
    citation: { url: "https://a.example/", title: "A", quote: "It rains.", start: 0, end: 4 }
  }
  const delta = {
    type: "citations_delta",
    citation: {
      type: "web_search_result_location",
      cited_text: "It rains.",
      url: "https://a.example/",
      title: "A",
      encrypted_index: unsignedMark
    }
  }
  const framesOf = (events: ReadonlyArray<ChatEvent>) =>
    [...encode(events).matchAll(/^data: (.*)$/gm)].map(([, data = ""]) => JSON.parse(data)).slice(1, -2)
  const typesOf = (events: ReadonlyArray<ChatEvent>) =>
    framesOf(events).map(({ content_block, delta: change, type }) => content_block?.type ?? change?.type ?? type)

  it("a source belongs to the open text", () => {
    const frames = framesOf([content("Rain"), citation, content("."), stop])
    assert.deepStrictEqual(frames[2], { type: "content_block_delta", index: 0, delta })
    assert.deepStrictEqual(typesOf([content("Rain"), citation, content("."), stop]), [
      "text",
      "text_delta",
      "citations_delta",
      "text_delta",
      "content_block_stop"
    ])
  })

  it("a source before the text waits for it, and one in a call for the text after it", () => {
    const early = typesOf([citation, reasoning("Hm."), content("Rain."), stop])
    assert.deepStrictEqual(early.slice(-4), ["text", "citations_delta", "text_delta", "content_block_stop"])
    const late = typesOf([call(0, "{", true), content("Rain."), citation, call(0, "}"), finish])
    assert.deepStrictEqual(late.slice(-4), ["text", "text_delta", "citations_delta", "content_block_stop"])
  })

  it("a source after the last text has a block of its own", () => {
    const types = typesOf([content("Rain."), call(0, "{}", true), citation, finish])
    assert.deepStrictEqual(types.slice(-3), ["text", "citations_delta", "content_block_stop"])
  })
})
