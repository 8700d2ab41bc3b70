import { Effect } from "effect"
import type { ChatAnswer, ChatRequest, Usage } from "../../../src/domain/Chat.ts"
import type { Route } from "../../../src/domain/Model.ts"
import { hear, joined, request } from "../../contracts/ChatHarness.ts"
import { counted, countedSoFar, finished, scenarios, text, usageOf } from "../../contracts/ChatScenarios.ts"
import { assert, describe } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { type Chunk, chunk, gemini } from "./Wire.ts"

const { breaks, check, streamsAs, survivesCuts } = scenarios(gemini)

const stop = chunk([], "STOP")
const calling = (name: string, more: object = {}): Chunk => chunk([{ functionCall: { name, args: {}, ...more } }])
const said = (words: string, finish?: string) => chunk([{ text: words }], finish)
const thought = (words: string) => chunk([{ text: words, thought: true }])

/** Both the stream and the list of a host without streaming must give this answer. */
const addsUp = (
  name: string,
  chunks: ReadonlyArray<Chunk>,
  expected: Partial<ChatAnswer>,
  {
    asked: chatRequest = request(),
    options = {}
  }: { readonly asked?: ChatRequest; readonly options?: Route["options"] } = {}
) =>
  check(
    name,
    function* (adapter, fake, route) {
      yield* fake.script(Fake.sse(...chunks.map(Fake.event)), Fake.json(200, chunks))
      const heard = yield* hear(adapter, route, chatRequest)
      assert.isUndefined(heard.failure)
      const streamed = joined(heard.events)
      const fullAnswer = yield* adapter.complete(route, chatRequest)
      assert.deepStrictEqual(streamed, { ...streamed, ...expected })
      const plain = (answer: ChatAnswer) => ({ ...answer, toolCalls: answer.toolCalls.map((call) => call.function) })
      assert.deepStrictEqual(plain(fullAnswer), plain(streamed))
    },
    options
  )

const counts = (more: Partial<Usage> = {}) => usageOf({ prompt: 5, completion: 1, ...more })

describe("a stream of a Gemini host", () => {
  addsUp("text and thoughts", [thought("Let me "), thought("see."), said("4"), said("2", "STOP")], {
    content: "42",
    reasoning: "Let me see.",
    finish: "stop"
  })
  addsUp("an output cut by its limit before a word of it", [chunk([], "MAX_TOKENS")], { content: "", finish: "length" })
  addsUp("CONTINUATION: the answer is longer than what came", [said("a"), said("b", "CONTINUATION")], {
    finish: "length"
  })
  addsUp("what was withheld after its beginning", [said("a"), chunk([], "SAFETY")], {
    content: "a",
    finish: "content_filter"
  })
  addsUp("what was recited after its beginning", [said("a"), chunk([], "RECITATION")], { finish: "content_filter" })
  addsUp("a reason nobody knows yet, after an answer", [said("a", "NEW_REASON")], {
    content: "a",
    finish: "length",
    unread: [{ part: "stop_reason", detail: "NEW_REASON" }]
  })
  addsUp(
    "a picture, which no client gets, twice",
    [said("a"), chunk([{ inlineData: { data: "AA==" } }]), chunk([{ inlineData: { data: "AA==" } }], "STOP")],
    { content: "a", finish: "stop", unread: [{ part: "block", detail: "inlineData" }] }
  )
  addsUp(
    "a total that its parts explain",
    [
      chunk([{ text: "a" }], "STOP", {
        promptTokenCount: 5,
        toolUsePromptTokenCount: 7,
        candidatesTokenCount: 1,
        thoughtsTokenCount: 4,
        totalTokenCount: 17
      })
    ],
    { usage: usageOf({ prompt: 12, completion: 5, reasoning: 4 }) }
  )
  addsUp(
    "a total above its parts, which changes no count",
    [chunk([{ text: "a" }], "STOP", { promptTokenCount: 5, candidatesTokenCount: 1, totalTokenCount: 17 })],
    {
      usage: usageOf({ prompt: 5, completion: 1 }),
      unread: [{ part: "usage", detail: "17 total tokens, but 5 prompt tokens and 1 completion tokens" }]
    }
  )
  addsUp(
    "parts of no interest, candidates of no interest",
    [
      { candidates: [{ content: { parts: [{ toolCall: {} }, { executableCode: {} }, null, { text: "a" }] } }] },
      { candidates: [{ groundingMetadata: {}, safetyRatings: [] }], modelVersion: "x" },
      { candidates: [{ finishReason: "STOP" }, { index: 1, content: { parts: [{ text: "other" }] } }] }
    ],
    { content: "a", finish: "stop" }
  )
  addsUp(
    "usage of every chunk: the last one counts, with thoughts and searches in it",
    [
      { ...said("a"), usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 1 } },
      {
        ...said("b", "STOP"),
        usageMetadata: {
          promptTokenCount: 10,
          toolUsePromptTokenCount: 3,
          cachedContentTokenCount: 4,
          candidatesTokenCount: 2,
          thoughtsTokenCount: 7,
          totalTokenCount: 22
        }
      }
    ],
    { usage: { prompt: 13, completion: 9, cached: 4, cacheWrite: 0, reasoning: 7 } }
  )

  const grounded = (...webSearchQueries: ReadonlyArray<unknown>): Chunk => ({
    candidates: [{ groundingMetadata: { webSearchQueries } }],
    usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 1 }
  })
  const searches = [said("a"), grounded("x", "y"), grounded("y", "", null, "z"), said("b", "STOP")]
  addsUp("each query once as a search", searches, { usage: counts({ webSearches: 3 }) })
  addsUp("no search where the host made none", [said("a"), grounded(), said("b", "STOP")], { usage: counts() })
  addsUp(
    "one search of a request whose searches have one fee",
    searches,
    { usage: counts({ webSearches: 1 }) },
    { options: { search_fee: "request" } }
  )

  const names = ({ toolCalls }: ChatAnswer) => toolCalls.map((call) => call.function.name)

  check(
    "tool indexes count calls, not parts; ids are the host's where it has good ones",
    function* (adapter, fake, route) {
      const chunks = [
        thought("hm"),
        said("first"),
        calling("f", { id: "one" }),
        said("then"),
        chunk([{ functionCall: { name: "g", args: { b: [1] }, id: "" } }, { functionCall: { name: "h", id: "one" } }]),
        calling("i", { id: "x".repeat(65) }),
        stop
      ]
      yield* fake.script(Fake.sse(...chunks.map(Fake.event)))
      const { events } = yield* hear(adapter, route, request())
      const opened = events.filter((event) => event.type === "tool_call")
      assert.deepStrictEqual(
        opened.map(({ arguments: input, index, name }) => [index, name, input]),
        [
          [0, "f", "{}"],
          [1, "g", '{"b":[1]}'],
          [2, "h", "{}"],
          [3, "i", "{}"]
        ]
      )
      const [first, ...others] = opened.map(({ id = "" }) => id)
      assert.strictEqual(first, "one")
      for (const id of others) assert.match(id, /^call_[0-9a-f]{32}$/)
      assert.strictEqual(new Set(others).size, 3)
      assert.strictEqual(joined(events).finish, "tool_calls")
    }
  )

  addsUp(
    "of several calls only the first, where the client can take one",
    [calling("f"), calling("g"), stop],
    { finish: "tool_calls" },
    { asked: request({ parallelToolCalls: false }) }
  )
  check("of several calls only the first", function* (adapter, fake, route) {
    const both = chunk([{ functionCall: { name: "f" } }, { functionCall: { name: "g" } }], "STOP")
    yield* fake.script(Fake.json(200, both), Fake.json(200, both))
    assert.deepStrictEqual(names(yield* adapter.complete(route, request({ parallelToolCalls: false }))), ["f"])
    assert.deepStrictEqual(names(yield* adapter.complete(route, request({ parallelToolCalls: true }))), ["f", "g"])
  })

  addsUp(
    "stop sequences beyond what the host takes are cut here",
    [said("One, two, "), said("END and more", "STOP")],
    { content: "One, two, ", finish: "stop" },
    { asked: request({ stop: ["a1", "a2", "a3", "a4", "a5", "END"] }) }
  )

  survivesCuts([Fake.event(said("Grüße 你好 👋🏽")), Fake.event(stop)], { content: "Grüße 你好 👋🏽" })

  const a = Fake.event(said("a"))
  const error = (code: number, status: string) => Fake.event({ error: { code, status, message: "m" } })

  const ending = (reason: string) => Fake.event(chunk([], reason))
  breaks([
    ["an end without a finishReason", [a], "network", 200, [text("a")]],
    ["a cut without a finishReason", [a, Fake.cut], "network", 200, [text("a")]],
    ["an empty body", [], "network", 200],
    ["garbage in the middle", [a, 'data: {"cand\n\n'], "retry", 200, [text("a")]],
    ["an error chunk at the start", [error(429, "RESOURCE_EXHAUSTED")], "limit", 429],
    ["an error chunk on the way", [a, error(503, "UNAVAILABLE")], "retry", 503, [text("a")]],
    ["a call without a name", [Fake.event(chunk([{ functionCall: {} }]))], "retry", 200],
    ["an empty candidate", [Fake.event(stop)], "retry", 200],
    ["a [DONE] without a finishReason", [a, Fake.done], "retry", 200, [text("a")]],
    ["RECITATION before a word", [ending("RECITATION")], "retry", 200]
  ])
  for (const reason of ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "OTHER"]) {
    breaks([
      [reason, [ending(reason)], "retry", 200],
      [`${reason} on the way`, [a, ending(reason)], "retry", 200, [text("a")]]
    ])
  }
  for (const reason of ["SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII"]) {
    breaks([[`${reason} before a word`, [ending(reason)], "moderation", 200]])
  }
  for (const blockReason of ["SAFETY", "OTHER", "PROHIBITED_CONTENT"]) {
    const blocked = Fake.event({ promptFeedback: { blockReason } })
    breaks([[`a prompt refused for ${blockReason}`, [blocked], "moderation", 200]])
  }

  check("what was counted before a failure is told with it", function* (adapter, fake, route) {
    const usageMetadata = { promptTokenCount: 9, thoughtsTokenCount: 3 }
    const spent = { prompt: 9, completion: 3, cached: 0, cacheWrite: 0, reasoning: 3 }
    const malformed = { ...chunk([], "MALFORMED_FUNCTION_CALL"), usageMetadata }
    const blocked = { promptFeedback: { blockReason: "SAFETY" }, usageMetadata }
    for (const body of [malformed, blocked]) {
      yield* fake.script(Fake.sse(Fake.event(body)), Fake.json(200, body))
      assert.deepStrictEqual((yield* hear(adapter, route, request())).failure?.spent, spent)
      assert.deepStrictEqual((yield* Effect.flip(adapter.complete(route, request()))).spent, spent)
    }
  })

  const first = Fake.event({ usageMetadata: { promptTokenCount: 3 } })
  streamsAs([
    ["is whole by a finishReason, cut or not", [a, Fake.event(stop), Fake.cut], [text("a"), finished("stop")]],
    [
      "is whole with a [DONE] of others' making",
      [a, Fake.event(stop), Fake.done, Effect.never],
      [text("a"), finished("stop")]
    ],
    [
      "passes the first event on, even one without output",
      [first, Fake.event(said("a", "STOP"))],
      [countedSoFar({ prompt: 3 }), text("a"), counted({ prompt: 3 }), finished("stop"), counted({ prompt: 3 })]
    ]
  ])
})
