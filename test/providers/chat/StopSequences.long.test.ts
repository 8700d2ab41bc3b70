import { Effect, FastCheck as fc, Option } from "effect"
import type { ChatAnswer, ChatEvent } from "../../../src/domain/Chat.ts"
import { StopScanner, truncateAnswer, truncatePull } from "../../../src/providers/chat/StopSequences.ts"
import { type ChatPull, ProviderFailure } from "../../../src/services/routing/Provider.ts"
import { runs } from "../../harness/Cases.ts"
import { assert, describe, it } from "../../harness/It.ts"

/** Finds the first complete stop sequence, and the longest of those that end there. */
const expected = (text: string, stops: ReadonlyArray<string>): string => {
  for (let end = 1; end <= text.length; end++) {
    const met = stops.filter((stop) => text.slice(0, end).endsWith(stop)).map(({ length }) => length)
    if (met.length > 0) return text.slice(0, end - Math.max(...met))
  }
  return text
}

const word = fc.string({ unit: fc.constantFrom("a", "b", "ß", "👋"), minLength: 1, maxLength: 5 })

describe("stop sequences", () => {
  it("cut a text where a host would have, however it comes", () => {
    fc.assert(
      fc.property(fc.array(word, { maxLength: 20 }), fc.array(word, { maxLength: 4 }), (pieces, stops) => {
        const cut = new StopScanner(stops)
        const shown = pieces.map((piece) => cut.take(piece)).join("") + cut.flush()
        assert.strictEqual(shown, expected(pieces.join(""), stops))
        assert.strictEqual(
          cut.hasStopped,
          stops.some((stop) => pieces.join("").includes(stop))
        )
      }),
      { numRuns: runs(2_000) }
    )
  })

  it("hold back only what may still become one", () => {
    const cut = new StopScanner(["END", "abc"])
    assert.deepStrictEqual(
      ["one E", "N", "x", "ab", "ab", "d", "EN", "D two"].map((piece) => cut.take(piece)),
      ["one ", "", "ENx", "", "ab", "abd", "", ""]
    )
    assert.strictEqual(cut.flush(), "")
  })

  it("of 100000 characters are looked for in linear time", () => {
    const cut = new StopScanner([`${"a".repeat(100_000)}b`, `${"a".repeat(99_999)}c`])
    const piece = "a".repeat(1_000)
    let shown = 0
    for (let at = 0; at < 300; at++) shown += cut.take(piece).length
    assert.strictEqual(shown, 200_000)
    assert.strictEqual(cut.take("b").length, 0)
    assert.isTrue(cut.hasStopped)
  })

  const answer: ChatAnswer = {
    content: "One. END Two.",
    reasoning: "END of thought",
    toolCalls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }],
    finish: "tool_calls",
    usage: undefined
  }

  it("cut an answer with what came after, and leave one without them as it was", () => {
    const cut = { ...answer, content: "One. ", toolCalls: [], finish: "stop", stopSequence: "END" }
    assert.deepStrictEqual<unknown>(truncateAnswer(answer, ["END"]), cut)
    assert.strictEqual(truncateAnswer(answer, ["STOP"]), answer)
    assert.strictEqual(truncateAnswer({ ...answer, content: null }, ["END"]).content, null)
  })
})

const text = (text: string): ChatEvent => ({ type: "content", text })
const called: ChatEvent = { type: "tool_call", index: 0, id: "c", name: "f", arguments: "{}" }
const stopped: ChatEvent = { type: "finish", reason: "stop", stopSequence: "END" }
const length: ChatEvent = { type: "finish", reason: "length" }
const used: ChatEvent = { type: "usage", usage: { prompt: 1, completion: 2, cached: 0, cacheWrite: 0, reasoning: 0 } }
const broken = new ProviderFailure({ class: "network", status: 200, detail: "cut" })

describe("a stream with stop sequences", () => {
  /** Returns the output of these batches, the end, and the number of pulls from the host. */
  const run = Effect.fnUntraced(function* (
    batches: ReadonlyArray<ReadonlyArray<ChatEvent>>,
    countable: boolean,
    end?: ProviderFailure
  ) {
    let pulled = 0
    const pull: ChatPull = Effect.suspend(() => {
      const batch = batches[pulled++]
      return batch === undefined ? Effect.fail(Option.fromNullable(end)) : Effect.succeed(batch)
    })
    const events: Array<ChatEvent> = []
    const cut = truncatePull(pull, ["END"], () => countable)
    const ended = yield* Effect.flip(
      Effect.forever(
        Effect.map(cut, (batch) => {
          assert.isAbove(batch.length, 0)
          events.push(...batch)
        })
      )
    )
    return { events, ended: Option.getOrUndefined(ended), pulled }
  })

  it.effect("ends where the gateway can count what was used", function* () {
    const heard = yield* run([[text("a E")], [text("ND b")], [text("c")], [length, used]], true)
    assert.deepStrictEqual(heard, { events: [text("a "), stopped], ended: undefined, pulled: 2 })
  })

  it.effect("finishes there and is read on for its usage where it cannot", function* () {
    const batches = [[text("a END b")], [text("c"), called], [{ type: "reasoning", text: "r" }, length, used]] as const
    const heard = yield* run(batches, false)
    assert.deepStrictEqual(heard, { events: [text("a "), stopped, used], ended: undefined, pulled: 4 })
  })

  it.effect("takes the usage that came with the cut", function* () {
    const { events } = yield* run([[text("a END b"), length, used]], true)
    assert.deepStrictEqual(events, [text("a "), stopped, used])
  })

  it.effect("is whole once it was cut, whatever becomes of its rest", function* () {
    assert.isUndefined((yield* run([[text("END")], [text("b")]], false, broken)).ended)
    assert.strictEqual((yield* run([[text("EN")], [text("b")]], false, broken)).ended, broken)
  })

  it.effect("gives out what it held back before a call and before its end", function* () {
    const { events } = yield* run([[text(""), text("a E")], [called], [text("D. E")], [length, used]], true)
    assert.deepStrictEqual(events, [text(""), text("a "), text("E"), called, text("D. "), text("E"), length, used])
  })

  it("is left alone without any", () => {
    const pull: ChatPull = Effect.fail(Option.none())
    assert.strictEqual(
      truncatePull(pull, [], () => true),
      pull
    )
  })
})
