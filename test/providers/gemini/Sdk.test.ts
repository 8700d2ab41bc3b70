import { assert, describe, it } from "@effect/vitest"
import { ApiError, GoogleGenAI, ThinkingLevel } from "@google/genai"
import { Effect } from "effect"
import type { Usage } from "../../../src/domain/Chat.ts"
import * as Gemini from "../../../src/providers/gemini/Gemini.ts"
import { type Answer, request, weatherTool } from "../../contracts/ChatHarness.ts"
import { request as draw, picture } from "../../contracts/ImageHarness.ts"
import { calling, drained, thrownBy } from "../../harness/client/OfficialClients.ts"
import { layer, ownHost } from "./Hosts.ts"
import { base64, ownHost as ownPainter, services } from "./ImageHosts.ts"
import { errors, secret } from "./Wire.ts"

const clientOf = (baseUrl = "", vertexai = false) =>
  new GoogleGenAI({ apiKey: secret, vertexai, httpOptions: { baseUrl, retryOptions: { attempts: 1 } } })

const half = <A>(found: A | undefined) =>
  found === undefined ? Effect.dieMessage("no such half") : Effect.succeed(found)
const chatter = Effect.flatMap(Gemini.make, ({ chat }) => half(chat))
const painter = Effect.flatMap(Gemini.make, ({ image }) => half(image))

const usage: Usage = { prompt: 21, completion: 13, cached: 8, cacheWrite: 0, reasoning: 5 }
const answer: Answer = { reasoning: "Let me see.", content: "Grüße 👋", finish: "stop", usage }
const calls: Answer = {
  toolCalls: [
    { id: "a", name: "get_weather", arguments: '{"city":"Bern"}' },
    { id: "b", name: "get_weather", arguments: '{"city":"Oslo"}' }
  ],
  finish: "tool_calls"
}
const metadata = {
  promptTokenCount: 21,
  cachedContentTokenCount: 8,
  candidatesTokenCount: 8,
  thoughtsTokenCount: 5,
  totalTokenCount: 34
}

/** The fake hosts of the contracts, seen by Google's own client: only then do their words count. */
describe("our own Gemini host", () => {
  it.scopedLive("gives the official client an answer, whole and streamed, and takes its request for ours", () =>
    Effect.gen(function* () {
      const host = yield* ownHost
      const { model, provider } = host.route
      const client = clientOf(provider.baseUrl)
      const asked = {
        model,
        contents: [{ role: "user", parts: [{ text: "Zürich?" }] }],
        config: {
          systemInstruction: { parts: [{ text: "Be brief." }] },
          maxOutputTokens: 77,
          stopSequences: ["END"],
          thinkingConfig: { includeThoughts: true, thinkingLevel: ThinkingLevel.LOW },
          responseMimeType: "application/json",
          responseJsonSchema: { type: "object" }
        }
      }
      yield* host.answers(answer)
      const whole = yield* calling(() => client.models.generateContent(asked))
      assert.strictEqual(whole.text, answer.content)
      assert.strictEqual(whole.candidates?.[0]?.finishReason, "STOP")
      assert.deepInclude(whole.usageMetadata, metadata)
      const theirs = yield* host.understood

      yield* host.answers(answer)
      const stream = yield* calling(() => client.models.generateContentStream(asked))
      const { error, items } = yield* drained(stream)
      assert.isUndefined(error)
      assert.strictEqual(items.map(({ text = "" }) => text).join(""), answer.content)
      assert.deepInclude(items.at(-1)?.usageMetadata, metadata)
      assert.deepStrictEqual(yield* host.understood, { ...theirs, stream: true })

      yield* host.answers(answer)
      yield* (yield* chatter).complete(
        host.route,
        request({
          messages: [
            { role: "system", content: "Be brief." },
            { role: "user", content: "Zürich?" }
          ],
          maxTokens: 77,
          stop: ["END"],
          reasoningEffort: "low",
          responseFormat: { type: "json_schema", json_schema: { name: "n", schema: { type: "object" } } }
        })
      )
      assert.deepStrictEqual(yield* host.understood, theirs)
    }).pipe(Effect.provide(layer))
  )

  it.scopedLive("gives the official client tool calls, whole and streamed", () =>
    Effect.gen(function* () {
      const host = yield* ownHost
      const { model, provider } = host.route
      const client = clientOf(provider.baseUrl)
      const { description = "", name, parameters: parametersJsonSchema } = weatherTool.function
      const asked = {
        model,
        contents: "Weather?",
        config: { tools: [{ functionDeclarations: [{ name, description, parametersJsonSchema }] }] }
      }
      yield* host.answers(calls)
      const whole = yield* calling(() => client.models.generateContent(asked))
      assert.deepStrictEqual((yield* host.understood).tools, [{ name, parameters: parametersJsonSchema }])
      yield* host.answers(calls)
      const { items } = yield* drained(yield* calling(() => client.models.generateContentStream(asked)))
      const expected = [
        { id: "a", name, args: { city: "Bern" } },
        { id: "b", name, args: { city: "Oslo" } }
      ]
      assert.deepStrictEqual(whole.functionCalls, expected)
      assert.deepStrictEqual(
        items.flatMap(({ functionCalls = [] }) => functionCalls),
        expected
      )
    })
  )

  for (const weather of ["limit", "funds", "key", "request", "image", "server", "missing"] as const) {
    it.scopedLive(`says ${weather} as the official client reads it`, () =>
      Effect.gen(function* () {
        const host = yield* ownHost
        yield* host.meets(weather)
        const client = clientOf(host.route.provider.baseUrl)
        const thrown = yield* thrownBy(() => client.models.generateContent({ model: "x", contents: "x" }))
        if (!(thrown instanceof ApiError)) return assert.fail(`not an API error: ${String(thrown)}`)
        assert.strictEqual(thrown.status, errors[weather].code)
        assert.include(thrown.message, errors[weather].status)
      })
    )
  }

  it.scopedLive("refuses a prompt, and says so in a stream, as the official client reads it", () =>
    Effect.gen(function* () {
      const host = yield* ownHost
      const client = clientOf(host.route.provider.baseUrl)
      yield* host.meets("moderation")
      const refused = yield* calling(() => client.models.generateContent({ model: "x", contents: "x" }))
      assert.strictEqual(refused.promptFeedback?.blockReason, "PROHIBITED_CONTENT")
      yield* host.meets("error inside")
      const stream = yield* calling(() => client.models.generateContentStream({ model: "x", contents: "x" }))
      const { error } = yield* drained(stream)
      assert.instanceOf(error, ApiError)
    })
  )

  const painting = { bytes: picture("image/png", 1).bytes, where: "inside" } as const
  const reference = picture("image/webp", 2)

  it.scopedLive("gives the official client a picture of generateContent, and takes its request for ours", () =>
    Effect.gen(function* () {
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
    }).pipe(Effect.provide(services))
  )

  it.scopedLive("gives the official client a picture of predict, and takes its request for ours", () =>
    Effect.gen(function* () {
      const host = yield* ownPainter("predict")
      // The client has this method for Google's enterprise platform alone, which differs in its path.
      const client = clientOf(host.fake.url, true)
      const config = { numberOfImages: 1, includeRaiReason: true, imageSize: "2K" }
      const asked = { model: host.route.model, prompt: "A dot", config }
      yield* host.answer(painting)
      const drawn = yield* calling(() => client.models.generateImages(asked))
      assert.strictEqual(drawn.generatedImages?.[0]?.image?.imageBytes, base64(painting.bytes))
      const theirs = yield* host.fake.received
      yield* host.fail("moderation")
      const refused = yield* calling(() => client.models.generateImages(asked))
      assert.isString(refused.generatedImages?.[0]?.raiFilteredReason)
      yield* host.fake.received
      yield* host.answer(painting)
      yield* (yield* painter).generate(host.route, draw({ prompt: "A dot", resolution: "2K" }))
      assert.deepStrictEqual((yield* host.fake.received).body, theirs.body)
    }).pipe(Effect.provide(services))
  )
})
