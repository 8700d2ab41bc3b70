import { Effect } from "effect"
import { turn } from "../contracts/ChatHarness.ts"
import { comesOut, isNative, type Pair, Payer, pairs, pairsWith, served } from "../contracts/Pairs.ts"
import { make } from "../fetching/ForeignServer.ts"
import { badRequest, type Refusal } from "../harness/client/HttpCalls.ts"
import { thrownBy } from "../harness/client/OfficialClients.ts"
import { dataUrl, png } from "../harness/fixtures/TinyMedia.ts"
import { assert, withLayer } from "../harness/It.ts"

const question = turn("user", "Weather in Bern and Oslo?")
const plain = { content: "Grüße aus Zürich, 你好 👋", finish: "stop" } as const
const stop = ["END", "STOP"]
const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"], additionalProperties: false }
const tool = {
  name: "get_weather",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
}
const calls = ["Bern", "Oslo"].map((city, at) => {
  return { id: `call_${at}`, name: tool.name, arguments: JSON.stringify({ city }) }
})

const noFormat = ({ inbound, model }: Pair): Refusal =>
  inbound.native === undefined
    ? badRequest(`\`response_format\` is not available for \`${model}\`.`, "response_format")
    : badRequest(`\`text.format\` is not available for \`${model}\`.`, "text.format")

withLayer(served)("a dialect of clients over a wire", (it) => {
  it.effect.each(pairs)("carries text, the system's words, the cap and each count: $from over $over", function* (pair) {
    const [first, second] = yield* comesOut(
      pair,
      { system: "Be brief.", maxTokens: 77 },
      { turns: [turn("user", "Hello")], answer: plain },
      { turns: [turn("user", "And again")], answer: { content: "Servus.", finish: "stop" } }
    )
    assert.deepInclude(first, { system: "Be brief.", maxTokens: 77, turns: [turn("user", "Hello")] })
    assert.deepStrictEqual(second?.turns, [
      turn("user", "Hello"),
      turn("assistant", plain.content),
      turn("user", "And again")
    ])
  })

  it.effect.each(pairsWith("reasoning"))("shows reasoning to a client that asks for it: $from over $over", (pair) =>
    comesOut(
      pair,
      { reasons: true },
      { turns: [question], answer: { ...plain, reasoning: "Let me see." } },
      { turns: [turn("user", "Sure?")], answer: { ...plain, reasoning: "Once more." } }
    ).pipe(Effect.map(([, second]) => assert.lengthOf(second?.turns ?? [], 3)))
  )

  it.effect.each(pairs)("tells why an answer ended early: $from over $over", function* (pair) {
    yield* comesOut(pair, { maxTokens: 20 }, { turns: [question], answer: { content: "a b", finish: "length" } })
    if (!pair.wire.has.withholding) return
    yield* comesOut(pair, {}, { turns: [question], answer: { content: "I was", finish: "content_filter" } })
  })

  it.scoped.each(pairsWith("vision"))(
    "shows pictures to the model, sent or linked: $from over $over",
    function* (pair) {
      const host = yield* make((_, response) => response.end(png))
      const shown = dataUrl(png, "image/png")
      for (const url of [shown, `${host.url}/dot.png`]) {
        const looking = turn("user", "What is this?", { images: [url] })
        const [sent] = yield* comesOut(pair, {}, { turns: [looking], answer: { content: "A dot.", finish: "stop" } })
        assert.deepStrictEqual(sent?.turns, [turn("user", "What is this?", { images: [shown] })])
      }
      assert.strictEqual(host.connections(), 2)
    }
  )

  it.effect.each(pairsWith("tools"))("carries parallel calls and their results: $from over $over", function* (pair) {
    const reasons = pair.wire.has.features.includes("reasoning")
    const results = calls.map(({ id }) => turn("tool", `sunny for ${id}`, { answers: id }))
    const [first, second] = yield* comesOut(
      pair,
      { tools: [tool], toolChoice: "auto", reasons },
      {
        turns: [question],
        answer: { reasoning: reasons ? "Both." : "", content: "Let me look.", toolCalls: calls, finish: "tool_calls" }
      },
      { turns: results, answer: { content: "Sunny.", finish: "stop" } }
    )
    assert.deepStrictEqual([first?.tools, first?.toolChoice ?? "auto"], [[tool], "auto"])
    const made = calls.map((call) => ({ ...call, arguments: JSON.parse(call.arguments) }))
    assert.deepStrictEqual(second?.turns, [question, turn("assistant", "Let me look.", { calls: made }), ...results])
  })

  it.effect.each(pairsWith("tools"))("makes the model call one tool, any or none: $from over $over", function* (pair) {
    for (const toolChoice of [{ name: tool.name }, "required", "none"] as const) {
      const [sent] = yield* comesOut(pair, { tools: [tool], toolChoice }, { turns: [question], answer: plain })
      const isNamed = typeof toolChoice !== "object" || pair.wire.has.namedChoice !== false
      assert.deepStrictEqual(sent?.toolChoice, isNamed ? toolChoice : "required")
    }
  })

  const translated = pairsWith("response_format")
  const formats = pairs.filter((pair) => translated.includes(pair) || isNative(pair))
  it.effect.each(formats)("follows a schema: $from over $over", function* (pair) {
    const [sent] = yield* comesOut(pair, { schema }, { turns: [question], answer: { content: '{"n":3}' } })
    assert.deepStrictEqual(sent?.schema, schema)
  })

  it.effect.each(pairs.filter((pair) => !formats.includes(pair)))(
    "refuses a schema that no host could follow: $from over $over",
    function* (pair) {
      const { inbound, model } = pair
      const payer = yield* Payer
      for (const stream of [false, true]) {
        const thrown = yield* thrownBy(() => inbound.open(payer, { model, schema }, stream).say(question))
        inbound.assertRefused(thrown, noFormat(pair))
      }
    }
  )

  it.effect.each(pairs.filter(({ inbound }) => inbound.hasStop))(
    "stops before a text of the client: $from over $over",
    function* (pair) {
      if (pair.wire.has.stop) {
        const [sent] = yield* comesOut(pair, { stop }, { turns: [question], answer: plain })
        assert.deepStrictEqual(sent?.stop, stop)
        return
      }
      const answer = { content: "One. END Two.", finish: "length" } as const
      const cut = { content: "One. ", finish: "stop" } as const
      yield* comesOut(pair, { stop }, { turns: [question], answer, cut })
    }
  )
})
