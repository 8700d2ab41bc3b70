import { Effect } from "effect"
import type { ChatEvent } from "../../../src/domain/Chat.ts"
import { chatOf, hear, request } from "../../contracts/ChatHarness.ts"
import { layer, list, routeTo, secret } from "../../contracts/ChatHosts.ts"
import { assert, describe, liveOver } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import * as Anthropic from "../anthropic/Wire.ts"
import * as Responses from "../openai-responses/Wire.ts"

/** Host details beside an answer, and their cleaned form. */
const told = {
  debug: {
    host: "gpu-7.internal:9000",
    "10.0.0.7": ["sk-proj-abc123xyz789", { request: "req_0123456789abcdef" }],
    key: secret,
    seconds: 1.5,
    cached: true,
    note: null
  },
  routed_to: "https://eu.host.test/v1"
}
const cleaned = {
  debug: {
    host: "[host]",
    "[host]": ["[key]", { request: "[id]" }],
    key: "[key]",
    seconds: 1.5,
    cached: true,
    note: null
  },
  routed_to: "[url]"
}
const content = `See https://a.test/x, ${"a long text, ".repeat(40)}req_0123456789abcdef at 10.0.0.7.`
const answer = {
  content,
  finish: "stop",
  usage: { prompt: 3, completion: 2, cached: 0, cacheWrite: 0, reasoning: 0 }
} as const

const wires = [
  {
    wire: Responses.openAiResponses,
    native: { dialect: "responses" as const, body: { model: "ours", input: "hi" } },
    answerIn: "response"
  },
  {
    wire: Anthropic.anthropic,
    native: {
      dialect: "messages" as const,
      body: { model: "ours", max_tokens: 9, messages: [{ role: "user", content: "hi" }] }
    },
    answerIn: "message"
  }
]

const dataOf = (frame: string): Readonly<Record<string, unknown>> =>
  JSON.parse(frame.slice(frame.indexOf("data: ") + 6))
const nativeIn = (events: ReadonlyArray<ChatEvent>) =>
  events.flatMap((value) => (value.type === "native" ? [value.event] : []))

describe("what a host tells beside its answer in a client's dialect", () => {
  for (const { answerIn, native, wire } of wires) {
    const chatRequest = request({ native: { ...native, headers: {}, extraTokens: 0 } })
    const { body, end, opening, output } = wire.encode(answer)

    liveOver(layer)(`is cleaned in an answer, which stays as it is: ${wire.adapter}`, function* () {
      const fake = yield* Fake.make
      const adapter = yield* Effect.flatMap(wire.make, chatOf)
      yield* fake.script(Fake.json(200, { ...Object(body), ...told }))
      const { native: value } = yield* adapter.complete(routeTo(wire, fake.url), chatRequest)
      assert.deepStrictEqual<unknown>(value, { ...Object(body), ...cleaned })
    })

    liveOver(layer)(`is cleaned in every event of a stream: ${wire.adapter}`, function* () {
      const fake = yield* Fake.make
      const adapter = yield* Effect.flatMap(wire.make, chatOf)
      const events = [...opening, ...output, ...end].map(dataOf)
      const tell = (event: Readonly<Record<string, unknown>>, more: object) =>
        answerIn in event
          ? { ...event, ...more, [answerIn]: { ...Object(event[answerIn]), ...more } }
          : { ...event, ...more }
      const unknown = { type: "of_tomorrow", delta: content }
      const all = [...events.slice(0, 1), unknown, ...events.slice(1)]
      yield* fake.script(Fake.sse(...all.map((event) => Fake.event(tell(event, told)))))
      const heard = yield* hear(adapter, routeTo(wire, fake.url), chatRequest)
      assert.isUndefined(heard.failure)
      assert.deepStrictEqual<unknown>(
        nativeIn(heard.events),
        all.map((event) => tell(event, cleaned))
      )
    })

    liveOver(layer)(`is bounded: ${wire.adapter}`, function* () {
      const fake = yield* Fake.make
      const adapter = yield* Effect.flatMap(wire.make, chatOf)
      const debug = Array.from({ length: 10_000 }, (_, at) => `line ${at}`)
      yield* fake.script(Fake.json(200, { ...Object(body), debug }))
      const { native: value } = yield* adapter.complete(routeTo(wire, fake.url), chatRequest)
      const lines = list(value?.["debug"])
      assert.lengthOf(lines, debug.length)
      assert.isAtMost(lines.filter((line) => line !== "").length, 100)
    })
  }
})
