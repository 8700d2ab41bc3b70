import { generateText, streamText } from "ai"
import { Struct } from "effect"
import { completeRefusal, envelopeOf, hintIn, type Refusal, refusals } from "../harness/client/HttpCalls.ts"
import { calling, drained, leaving, thrownBy } from "../harness/client/OfficialClients.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { callError, customer } from "./AiSdk.ts"
import { costOf, gateway, model as modelId } from "./SandboxChat.ts"

withLayer(gateway)("the AI SDK when requests fail", (it) => {
  const refusedCases: ReadonlyArray<{
    readonly title: string
    readonly account?: Parameters<typeof customer>[0]
    readonly id?: string
    readonly prompt?: string
    readonly retryable: boolean
    readonly told: Refusal
  }> = [
    {
      title: "a model that does not exist",
      id: "nobody",
      retryable: false,
      told: refusals.noModel("nobody")
    },
    {
      title: "no credits",
      account: { nanoUsd: 0n },
      retryable: false,
      told: refusals.insufficient
    },
    {
      title: "no scope",
      account: { scopes: ["videos"] },
      retryable: false,
      told: refusals.scope
    },
    { title: "a refusal by moderation", prompt: "[sandbox moderation]", retryable: false, told: refusals.moderated },
    {
      title: "no provider",
      prompt: "[sandbox status=500]",
      retryable: true,
      told: refusals.allFailed("sandbox-b", 500)
    }
  ]

  const assertCallError = (thrown: unknown, { retryable, told }: (typeof refusedCases)[number]) => {
    const error = callError(thrown)
    const envelope: unknown = JSON.parse(error.responseBody ?? "")
    const complete = completeRefusal(told, hintIn(error.responseBody ?? ""))
    const { code, message, param = null, status, type } = complete
    assert.deepStrictEqual(envelope, envelopeOf(complete))
    assert.deepStrictEqual(
      { status: error.statusCode, message: error.message, data: error.data, retryable: error.isRetryable },
      { status, message, data: { error: { message, type, param, code } }, retryable }
    )
    assert.match(error.responseHeaders?.["x-request-id"] ?? "", /^req_/)
  }

  for (const refusal of refusedCases) {
    it.effect(`reports ${refusal.title}`, function* () {
      const { provider, spent } = yield* customer(refusal.account)
      const asked = { model: provider(refusal.id ?? modelId), prompt: refusal.prompt ?? "Hello", maxRetries: 0 }
      assertCallError(yield* thrownBy(() => generateText(asked)), refusal)
      const errors: Array<unknown> = []
      const { items } = yield* drained(
        streamText({ ...asked, onError: ({ error }) => void errors.push(error) }).fullStream
      )
      assert.lengthOf(errors, 1)
      assertCallError(errors[0], refusal)
      assert.notInclude(items.map(Struct.get("type")), "text-delta")
      assert.strictEqual(yield* spent, 0n)
    })
  }

  it.effect("reports the exceeded rate with the time to wait", function* () {
    const { model } = yield* customer({ rpm: 1 })
    const asked = { model, prompt: "Hello", maxRetries: 0 }
    yield* calling(() => generateText(asked))
    const error = callError(yield* thrownBy(() => generateText(asked)))
    assert.deepInclude(error, { statusCode: 429, isRetryable: true, message: "Rate limit exceeded." })
    assert.strictEqual(error.responseHeaders?.["retry-after"], "60")
  })

  it.effect("gets an error after the text of a broken stream, at no charge", function* () {
    const { model, spent } = yield* customer()
    const stream = streamText({ model, prompt: "[sandbox cut=3]", maxRetries: 0, onError: () => {} })
    const { items } = yield* drained(stream.fullStream)
    const kinds = items.map(({ type }) => type)
    assert.strictEqual(items.map((part) => (part.type === "text-delta" ? part.text : "")).join(""), "This is a")
    assert.isAbove(kinds.indexOf("error"), kinds.lastIndexOf("text-delta"))
    const broken = items.find((part) => part.type === "error")
    assert.include(JSON.stringify(broken), "The upstream provider returned an error.")
    assert.deepInclude(items.at(-1), { type: "finish", finishReason: "error" })
    assert.strictEqual(yield* spent, 0n)
  })

  it.effect("pays for what it received when it leaves a stream", function* () {
    const { model, spentInTheEnd } = yield* customer()
    const headers = { "x-request-id": "ai-sdk-leaving" }
    let heard = ""
    const { thrown } = leaving(async (abortSignal, leave) => {
      const stream = streamText({ model, prompt: "[sandbox gap=100] Hello", maxRetries: 0, headers, abortSignal })
      for await (const part of stream.fullStream) {
        if (part.type === "text-delta") heard += part.text
        if (heard.includes("sandbox")) leave()
        if (part.type === "abort") throw new Error("aborted")
      }
    })
    assert.instanceOf(yield* thrown, Error)
    const row = yield* Served.logged(headers["x-request-id"])
    assert.deepStrictEqual([row.status, row.code, row.notes], [499, "client_closed", ["usage_estimated"]])
    assert.isAbove(row.completionTokens ?? 0, 0)
    assert.strictEqual(yield* spentInTheEnd, costOf(row.promptTokens, row.completionTokens))
  })
})
