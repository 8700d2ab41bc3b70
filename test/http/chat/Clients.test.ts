import { createServer } from "node:http"
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { generateText, jsonSchema, streamText, type ToolSet } from "ai"
import { Data, Effect } from "effect"
import OpenAI, { APIError } from "openai"
import type { ChatEvent } from "../../../src/domain/Chat.ts"
import { InsufficientCredits, UpstreamFailed } from "../../../src/domain/Failure.ts"
import { zero } from "../../../src/domain/Money.ts"
import { completionJson } from "../../../src/http/chat/ChatCompletionsDialect.ts"
import { toWire } from "../../../src/http/errors/ErrorMessages.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { callingAnswer, content, encoder, name, reasoning, stop, usage, wireUsage } from "./ChatAnswers.ts"

const messages = [{ role: "user" as const, content: "hi" }]

/** Serves one answer to whatever is asked, in the pieces given. */
const serving = (contentType: string, pieces: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.async<{ readonly url: string; readonly close: () => void }>((resume) => {
      const server = createServer((request, response) => {
        request.resume()
        response.writeHead(200, { "content-type": contentType })
        for (const piece of pieces) response.write(piece)
        response.end()
      })
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        resume(Effect.succeed({ url: `http://127.0.0.1:${port}/v1`, close: () => server.close() }))
      })
    }),
    ({ close }) => Effect.sync(close)
  ).pipe(
    Effect.map(({ url }) => ({
      openai: new OpenAI({ baseURL: url, apiKey: "k", maxRetries: 0 }),
      aiSdk: createOpenAICompatible({ name: "gateway", baseURL: url, apiKey: "k", includeUsage: true })("m-1")
    }))
  )

const servingStream = (pieces: ReadonlyArray<string>) => serving("text/event-stream; charset=utf-8", pieces)

class StreamBroke extends Data.TaggedError("StreamBroke")<{ readonly cause: unknown }> {}

const collect = <A>(stream: AsyncIterable<A>) =>
  Effect.tryPromise({
    try: async () => {
      const all: Array<A> = []
      for await (const item of stream) all.push(item)
      return all
    },
    catch: (cause) => new StreamBroke({ cause })
  })

describe("an answer", () => {
  it.scoped("is understood by the AI SDK", function* () {
    const body = JSON.stringify(completionJson(name, callingAnswer, usage))
    const { aiSdk } = yield* serving("application/json", [body])
    const tools: ToolSet = { weather: { inputSchema: jsonSchema({ type: "object" }) } }
    const result = yield* Effect.promise(() => generateText({ model: aiSdk, prompt: "hi", tools, maxRetries: 0 }))
    assert.strictEqual(result.reasoningText, "Which city?")
    assert.strictEqual(result.finishReason, "tool-calls")
    assert.deepStrictEqual(
      result.toolCalls.map(({ input, toolCallId, toolName }) => ({ input, toolCallId, toolName })),
      [{ input: { city: "Wien" }, toolCallId: "call_a", toolName: "weather" }]
    )
    assert.strictEqual(result.usage.inputTokens, 12)
    assert.strictEqual(result.usage.outputTokens, 7)
    assert.strictEqual(result.usage.cachedInputTokens, 4)
    assert.strictEqual(result.usage.reasoningTokens, 3)
  })
})

describe("a stream", () => {
  const streamOf = (includeUsage: boolean, sent: ReadonlyArray<ChatEvent>) => {
    const sse = encoder(includeUsage)
    return [": keep-alive\n\n", ...sent.map((event) => sse.encode([event])), sse.finish(usage, zero)].filter(
      (text) => text !== ""
    )
  }

  const text = "Grüß Gott 👋\nzeile \u2028 zwei"
  const spoken = [
    reasoning("Hm, "),
    reasoning("ja."),
    ...Array.from(text, content),
    stop,
    { type: "usage", usage } as const
  ]

  it.scoped("is understood by the openai package", function* () {
    const { openai } = yield* servingStream(streamOf(true, spoken))
    const stream = yield* Effect.promise(() =>
      openai.chat.completions.create({ model: "m-1", messages, stream: true, stream_options: { include_usage: true } })
    )
    const chunks = yield* collect(stream)
    assert.strictEqual(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join(""), text)
    assert.deepStrictEqual(chunks[0]?.choices[0]?.delta, { role: "assistant", content: "" })
    assert.deepStrictEqual(JSON.parse(JSON.stringify(chunks.at(-1)?.usage)), wireUsage)
    assert.isTrue(
      chunks.every(({ created, id, model }) => id === name.id && created === name.created && model === name.model)
    )
  })

  it.scoped("is understood by the AI SDK", function* () {
    const { aiSdk } = yield* servingStream(streamOf(true, spoken))
    const result = streamText({ model: aiSdk, prompt: "hi", maxRetries: 0 })
    assert.strictEqual(yield* Effect.promise(() => Promise.resolve(result.text)), text)
    assert.strictEqual(yield* Effect.promise(() => Promise.resolve(result.reasoningText)), "Hm, ja.")
    assert.strictEqual(yield* Effect.promise(() => Promise.resolve(result.finishReason)), "stop")
    const used = yield* Effect.promise(() => Promise.resolve(result.usage))
    assert.strictEqual(used.inputTokens, 12)
    assert.strictEqual(used.outputTokens, 7)
  })

  it.scoped("that fails before any output has the true code", function* () {
    const { openai } = yield* servingStream([
      ": keep-alive\n\n",
      encoder(false).error(toWire(new UpstreamFailed()).body)
    ])
    const stream = yield* Effect.promise(() => openai.chat.completions.create({ model: "m-1", messages, stream: true }))
    const { cause } = yield* Effect.flip(collect(stream))
    assert.instanceOf(cause, APIError)
    assert.strictEqual(cause.code, "upstream_error")
  })

  it.scoped("that fails late has its hint beside the published message", function* () {
    const { body } = toWire(new InsufficientCredits({ needed: undefined, available: 0n }))
    const pieces = [": keep-alive\n\n", encoder(false).error(body)]
    const { aiSdk, openai } = yield* servingStream(pieces)
    const stream = yield* Effect.promise(() => openai.chat.completions.create({ model: "m-1", messages, stream: true }))
    const { cause } = yield* Effect.flip(collect(stream))
    assert.instanceOf(cause, APIError)
    assert.strictEqual(cause.message, "Insufficient credits.")
    assert.deepStrictEqual(cause.error, body.error)
    const errors: Array<unknown> = []
    const onError = ({ error }: { readonly error: unknown }) => void errors.push(error)
    yield* collect(streamText({ model: aiSdk, prompt: "hi", maxRetries: 0, onError }).fullStream)
    assert.match(JSON.stringify(errors), /"Insufficient credits\."/)
  })
})
