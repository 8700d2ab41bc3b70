import { Effect, Struct } from "effect"
import type { ChatCompletionMessage, ChatCompletionMessageParam } from "openai/resources/chat/completions"
import type { Answer } from "../contracts/ChatHarness.ts"
import { calling } from "../harness/client/OfficialClients.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { weatherTool } from "../harness/upstream/Aimock.ts"
import { answers, type Dialect, DialectHosts, dialects, gateway, routeTo } from "../harness/upstream/Dialects.ts"
import { event, json, type Received, type Reply, sse } from "../harness/upstream/FakeUpstream.ts"
import { chunk } from "../providers/gemini/Wire.ts"
import { strict, toolsIn } from "./DialectRules.ts"

const dialect = (name: string): Dialect => dialects.find((one) => one.name === name) ?? assert.fail(name)

const usage = { prompt: 10, completion: 5, cached: 0, cacheWrite: 0, reasoning: 0 }
const calls = (...made: ReadonlyArray<string>): Answer => ({
  toolCalls: made.map((id, index) => ({
    id,
    name: "get_weather",
    arguments: JSON.stringify({ city: `city ${index}` })
  })),
  finish: "tool_calls",
  usage
})
const farewell: Answer = { content: "Sunny.", finish: "stop", usage }

const signature = `${"c2lnbmF0dXJl".repeat(80)}Cg==`
const signed = (id: string | undefined, city: string, thoughtSignature?: string) => {
  return {
    functionCall: { name: "get_weather", args: { city }, ...(id && { id }) },
    ...(thoughtSignature && { thoughtSignature })
  }
}
const count = { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 }

/** Two calls as Gemini makes them: signed, and one of them without an id. */
const geminiCalls: Reply = (response, received) => {
  const parts = [signed("g.1:a", "Bern", signature), signed(undefined, "Oslo")]
  const stream = dialect("gemini").wantsStream(received)
  return (stream ? sse(event(chunk(parts, "STOP", count))) : json(200, chunk(parts, "STOP", count)))(response, received)
}

interface Maker {
  readonly what: string
  readonly by: Dialect
  /** Two calls, in the first answer of a conversation and in its second. */
  readonly replies: readonly [Reply, Reply]
}

const maker = (what: string, name: string, first: ReadonlyArray<string>, second: ReadonlyArray<string>): Maker => {
  const by = dialect(name)
  return { what, by, replies: [answers(by, calls(...first)), answers(by, calls(...second))] }
}

const makers: ReadonlyArray<Maker> = [
  maker(
    "Anthropic",
    "anthropic",
    ["toolu_01A09q90qw90lq917835lq9", "toolu_01B09q90qw90lq917835lq9"],
    ["toolu_01C09q90qw90lq917835lq9", "toolu_01D09q90qw90lq917835lq9"]
  ),
  { what: "Gemini, with packed signatures", by: dialect("gemini"), replies: [geminiCalls, geminiCalls] },
  maker(
    "the Responses API",
    "openai-responses",
    ["call_12xyzBLAHdfJkLMnO", "call_34xyzBLAHdfJkLMnO"],
    ["call_56xyzBLAHdfJkLMnO", `call_${"x".repeat(80)}`]
  ),
  maker(
    "a host that names calls by their tool",
    "openai-chat",
    ["functions.get_weather:0", "functions.get_weather:1"],
    ["functions.get_weather:2", "functions.get_weather:3"]
  ),
  maker("a host that counts anew in every answer", "openai-chat", ["call_0", "call_1"], ["call_0", "call_1"]),
  maker(
    "a host with long ids",
    "openai-chat",
    ["chatcmpl-tool-0a1b2c3d4e5f60718293a4b5c6d7e8f9", "y".repeat(100)],
    ["chatcmpl-tool-1a1b2c3d4e5f60718293a4b5c6d7e8f9", "z".repeat(100)]
  )
]

const pairs = makers.flatMap((made) => dialects.filter((other) => other !== made.by).map((other) => ({ made, other })))
const modelOf = ({ made, other }: (typeof pairs)[number]) => `${makers.indexOf(made)}-${dialects.indexOf(other)}`
const models = pairs.map(
  (pair) => [modelOf(pair), [routeTo(pair.made.by), routeTo(pair.other, { preference: 2 })]] as const
)

/** The next turn, as clients make it of an answer. */
const results = ({ tool_calls: made = [] }: ChatCompletionMessage): Array<ChatCompletionMessageParam> =>
  made.map((call) => ({ role: "tool", tool_call_id: call.id, content: `sunny for ${call.id.slice(0, 5)}` }))

withLayer(gateway(Object.fromEntries(models)))("a conversation with tools", (it) => {
  const cases = pairs.flatMap((pair) =>
    [false, true].map((stream) => ({
      ...pair,
      stream,
      from: pair.made.what,
      to: pair.other.name,
      as: stream ? "streams" : "JSON"
    }))
  )
  it.effect.each(cases)("continues from $from to $to and back, in $as", function* ({ made, other, stream }) {
    const hosts = yield* DialectHosts
    const { openai } = yield* Served.customer()
    const messages: Array<ChatCompletionMessageParam> = [{ role: "user", content: "How is the weather?" }]
    const says = Effect.fnUntraced(function* () {
      const body = { model: modelOf({ made, other }), messages, tools: [weatherTool] }
      const completion = yield* calling(() =>
        stream ? openai.chat.completions.stream(body).finalChatCompletion() : openai.chat.completions.create(body)
      )
      const message = completion.choices[0]?.message ?? assert.fail("no choice")
      messages.push(message, ...results(message))
      return message
    })
    const first = hosts.of(made.by)
    const second = hosts.of(other)
    const busy = json(503, made.by.error(503))
    const seen: Array<Received> = []
    const keeping =
      (reply: Reply): Reply =>
      (response, received) => {
        seen.push(received)
        return reply(response, received)
      }
    const own = ["own_1", "own_2"] as const

    yield* first.script(made.replies[0])
    assert.lengthOf((yield* says()).tool_calls ?? [], 2)

    yield* first.script(busy)
    yield* second.script(keeping(strict(other, answers(other, calls(...own)))))
    assert.deepStrictEqual((yield* says()).tool_calls?.map(Struct.get("id")), [...own], "calls of the second")

    yield* first.script(strict(made.by, made.replies[1]))
    assert.lengthOf((yield* says()).tool_calls ?? [], 2, "calls of the first again")

    yield* first.script(busy)
    yield* second.script(keeping(strict(other, answers(other, farewell))))
    assert.strictEqual((yield* says()).content, "Sunny.")

    const last = seen.at(-1)
    const { calls: sent, results: answered } = toolsIn(other, last?.body)
    assert.lengthOf(sent, 6)
    assert.deepStrictEqual(answered, [...sent])
    assert.deepStrictEqual(sent.slice(2, 4), [...own])
    const everything = last?.bytes.toString("utf8") ?? ""
    assert.include(everything, "sunny for")
    for (const word of ["~sig~", "c2lnbmF0dXJl", "EqQBCgIYAhIM"]) assert.notInclude(everything, word)
  })
})
