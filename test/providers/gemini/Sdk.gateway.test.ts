import { ApiError, FinishReason, type GenerateContentResponse, GoogleGenAI, ThinkingLevel } from "@google/genai"
import { Effect } from "effect"
import { make } from "../../../src/providers/gemini/index.ts"
import { type Answer, request, weatherTool } from "../../contracts/ChatHarness.ts"
import { hostOver, secret } from "../../contracts/ChatHosts.ts"
import { scenarios } from "../../contracts/ChatScenarios.ts"
import { request as draw, picture } from "../../contracts/ImageHarness.ts"
import { base64, services } from "../../contracts/MediaHarness.ts"
import { officialClientContract } from "../../contracts/OfficialChatClient.ts"
import { calling, drained } from "../../harness/client/OfficialClients.ts"
import { assert, describe, it, liveOver } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { ownHost as ownPainter } from "./ImageHosts.ts"
import { errors, gemini, wire } from "./Wire.ts"

const clientOf = (baseUrl = "", vertexai = false) =>
  new GoogleGenAI({ apiKey: secret, vertexai, httpOptions: { baseUrl, retryOptions: { attempts: 1 } } })

const chatRequest = { model: gemini.model, contents: "Say something." }

/** Builds the answer from the chunks of a response. */
const answerOf = (chunks: ReadonlyArray<GenerateContentResponse>): Answer => {
  const parts = chunks.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? [])
  const texts = (isThought: boolean) =>
    parts.flatMap(({ text = "", thought = false }) => (thought === isThought ? [text] : [])).join("")
  const calls = parts.flatMap(({ functionCall }) => (functionCall === undefined ? [] : [functionCall]))
  const usage = chunks.at(-1)?.usageMetadata
  const { candidatesTokenCount = 0, thoughtsTokenCount = 0 } = usage ?? {}
  const isCut = chunks.at(-1)?.candidates?.[0]?.finishReason === FinishReason.MAX_TOKENS
  return {
    content: texts(false),
    reasoning: texts(true) || undefined,
    toolCalls: calls.map(({ args, id = "", name = "" }) => ({ id, name, arguments: JSON.stringify(args) })),
    finish: isCut ? "length" : calls.length > 0 ? "tool_calls" : "stop",
    usage: usage && {
      prompt: usage.promptTokenCount ?? 0,
      completion: candidatesTokenCount + thoughtsTokenCount,
      cached: usage.cachedContentTokenCount ?? 0,
      cacheWrite: 0,
      reasoning: thoughtsTokenCount
    }
  }
}

officialClientContract(gemini, {
  readers: {
    "in one piece": async (url) => answerOf([await clientOf(url).models.generateContent(chatRequest)]),
    "as a stream": async (url) => {
      const chunks: Array<GenerateContentResponse> = []
      for await (const chunk of await clientOf(url).models.generateContentStream(chatRequest)) chunks.push(chunk)
      return answerOf(chunks)
    }
  },
  assertRefusal: (thrown, refusal) => {
    if (!(thrown instanceof ApiError) || refusal === "moderation")
      return assert.fail(`not an API error: ${String(thrown)}`)
    assert.strictEqual(thrown.status, errors[refusal].code)
    assert.include(thrown.message, errors[refusal].status)
  }
})

describe("Google's own client", () => {
  scenarios(gemini).check("sends what the adapter sends, whole and streamed", function* (adapter, fake, route) {
    const { body, end, output } = wire({ content: "Sunny.", finish: "stop" })
    yield* fake.script(Fake.json(200, body), Fake.sse(...output, ...end), Fake.json(200, body))
    const { models } = clientOf(fake.url)
    const { description = "", name, parameters: parametersJsonSchema } = weatherTool.function
    const theirs = {
      model: route.model,
      contents: [{ role: "user", parts: [{ text: "Zürich?" }] }],
      config: {
        systemInstruction: { parts: [{ text: "Be brief." }] },
        maxOutputTokens: 77,
        stopSequences: ["END"],
        thinkingConfig: { includeThoughts: true, thinkingLevel: ThinkingLevel.LOW },
        responseMimeType: "application/json",
        responseJsonSchema: { type: "object" },
        tools: [{ functionDeclarations: [{ name, description, parametersJsonSchema }] }]
      }
    }
    yield* calling(() => models.generateContent(theirs))
    yield* drained(yield* calling(() => models.generateContentStream(theirs)))
    yield* adapter.complete(
      route,
      request({
        messages: [
          { role: "system", content: "Be brief." },
          { role: "user", content: "Zürich?" }
        ],
        maxTokens: 77,
        stop: ["END"],
        tools: [weatherTool],
        reasoningEffort: "low",
        responseFormat: { type: "json_schema", json_schema: { name: "n", schema: { type: "object" } } }
      })
    )
    const received = [yield* fake.received, yield* fake.received, yield* fake.received]
    const [whole, streamed, ours] = received.map(gemini.understand)
    assert.deepStrictEqual(ours, whole)
    assert.deepStrictEqual(streamed, { ...ours, stream: true })
  })

  it.scopedLive("reads a refused prompt, and an error in a stream", function* () {
    const fake = yield* Fake.make
    const host = hostOver(gemini, fake)
    const { models } = clientOf(fake.url)
    yield* host.fail("moderation")
    const refused = yield* calling(() => models.generateContent(chatRequest))
    assert.strictEqual(refused.promptFeedback?.blockReason, "PROHIBITED_CONTENT")
    yield* host.fail("error inside")
    const { error } = yield* drained(yield* calling(() => models.generateContentStream(chatRequest)))
    assert.instanceOf(error, ApiError)
  })

  const painter = Effect.flatMap(make, ({ image }) =>
    image === undefined ? Effect.dieMessage("no images") : Effect.succeed(image)
  )
  const painting = { bytes: picture("image/png", 1).bytes, where: "inside" } as const
  const reference = picture("image/webp", 2)

  liveOver(services)(
    "gives the official client a picture of generateContent, and takes its request for ours",
    function* () {
      const host = yield* ownPainter("generate")
      const { editModel: model = "" } = host.route
      yield* host.answer(painting)
      const answer = yield* calling(() =>
        clientOf(host.fake.url).models.generateContent({
          model,
          contents: [
            {
              role: "user",
              parts: [{ text: "Blue" }, { inlineData: { mimeType: reference.type, data: base64(reference.bytes) } }]
            }
          ],
          config: { responseModalities: ["IMAGE"], imageConfig: { imageSize: "2K" } }
        })
      )
      assert.strictEqual(answer.data, base64(painting.bytes))
      const theirs = yield* host.fake.received
      yield* host.answer(painting)
      yield* (yield* painter).generate(host.route, draw({ prompt: "Blue", resolution: "2K", references: [reference] }))
      const ours = yield* host.fake.received
      assert.deepStrictEqual([ours.path, ours.body], [theirs.path, theirs.body])
    }
  )

  liveOver(services)("gives the official client a picture of predict, and takes its request for ours", function* () {
    const host = yield* ownPainter("predict")
    // The client supports this method only for Google's enterprise platform, which has another path.
    const client = clientOf(host.fake.url, true)
    const config = { numberOfImages: 1, includeRaiReason: true, imageSize: "2K" }
    const chatRequest = { model: host.route.model, prompt: "A dot", config }
    yield* host.answer(painting)
    const drawn = yield* calling(() => client.models.generateImages(chatRequest))
    assert.strictEqual(drawn.generatedImages?.[0]?.image?.imageBytes, base64(painting.bytes))
    const theirs = yield* host.fake.received
    yield* host.fail("moderation")
    const refused = yield* calling(() => client.models.generateImages(chatRequest))
    assert.isString(refused.generatedImages?.[0]?.raiFilteredReason)
    yield* host.fake.received
    yield* host.answer(painting)
    yield* (yield* painter).generate(host.route, draw({ prompt: "A dot", resolution: "2K" }))
    assert.deepStrictEqual((yield* host.fake.received).body, theirs.body)
  })
})
