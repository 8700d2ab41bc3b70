import OpenAI from "openai"
import type { Response } from "openai/resources/responses/responses"
import type { Answer } from "../../contracts/ChatHarness.ts"
import { officialClientContract } from "../../contracts/OfficialChatClient.ts"
import { calling, thrownBy } from "../../harness/client/OfficialClients.ts"
import { assert, describe, it } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { errors } from "../openai-chat/Wire.ts"
import { begun, failedWith, openAiResponses, written } from "./Wire.ts"

const chatRequest = { model: "vendor/model-1", input: "Say something." }
const clientOf = (origin: string) => new OpenAI({ baseURL: `${origin}/v1`, apiKey: "k", maxRetries: 0 })

/** `shown` is the streamed output. The rest comes from the response. */
const answerOf = (
  { incomplete_details, output, status, usage }: Response,
  shown: Pick<Answer, "content" | "reasoning" | "toolCalls">
): Answer => {
  const cut = incomplete_details?.reason === "content_filter" ? "content_filter" : "length"
  const hasCalls = output.some(({ type }) => type === "function_call")
  return {
    ...shown,
    finish: status === "incomplete" ? cut : hasCalls ? "tool_calls" : "stop",
    usage: usage && {
      prompt: usage.input_tokens,
      completion: usage.output_tokens,
      cached: usage.input_tokens_details.cached_tokens,
      cacheWrite: usage.input_tokens_details.cache_write_tokens,
      reasoning: usage.output_tokens_details.reasoning_tokens
    }
  }
}

const wholeOf = (response: Response): Answer =>
  answerOf(response, {
    content: response.output_text,
    reasoning: response.output.flatMap((item) => (item.type === "reasoning" ? item.summary : []))[0]?.text,
    toolCalls: response.output.flatMap((item) => {
      return item.type === "function_call" ? [{ id: item.call_id, name: item.name, arguments: item.arguments }] : []
    })
  })

const fromDeltas = async (origin: string): Promise<Answer> => {
  let content = ""
  let reasoning = ""
  const calls = new Map<number, { readonly id: string; readonly name: string; arguments: string }>()
  for await (const event of await clientOf(origin).responses.create({ ...chatRequest, stream: true })) {
    if (event.type === "response.output_text.delta") content += event.delta
    if (event.type === "response.reasoning_summary_text.delta") reasoning += event.delta
    if (event.type === "response.output_item.added" && event.item.type === "function_call") {
      calls.set(event.output_index, { id: event.item.call_id, name: event.item.name, arguments: "" })
    }
    if (event.type === "response.function_call_arguments.delta") {
      const call = calls.get(event.output_index)
      if (call !== undefined) call.arguments += event.delta
    }
    if (event.type === "response.completed" || event.type === "response.incomplete") {
      return answerOf(event.response, { content, reasoning: reasoning || undefined, toolCalls: [...calls.values()] })
    }
  }
  return assert.fail("the stream has no end")
}

officialClientContract(openAiResponses, {
  readers: {
    "in one piece": async (origin) => wholeOf(await clientOf(origin).responses.create(chatRequest)),
    "as a stream": async (origin) => wholeOf(await clientOf(origin).responses.stream(chatRequest).finalResponse()),
    "from its deltas alone": fromDeltas
  },
  assertRefusal: (error, refusal) => {
    const { error: said, status } = errors[refusal]
    assert.deepInclude(Object(error), { status, code: said.code, type: said.type })
  }
})

describe("the vendor's own client of the Responses API", () => {
  it.scopedLive("reads a failed response and a break", function* () {
    const fake = yield* Fake.make
    const { responses } = clientOf(fake.url)
    const failed = failedWith("server_error")
    const created = { type: "response.created", response: begun } as const
    yield* fake.script(
      Fake.json(200, failed),
      Fake.sse(...written([created, { type: "response.failed", response: failed }])),
      Fake.sse(...written([created, { type: "error", code: "server_error", message: "boom", param: null }]))
    )
    assert.strictEqual((yield* calling(() => responses.create(chatRequest))).error?.code, "server_error")
    assert.strictEqual((yield* calling(() => responses.stream(chatRequest).finalResponse())).status, "failed")
    const broken = yield* thrownBy(() => responses.stream(chatRequest).finalResponse())
    assert.deepInclude(broken, { code: "server_error", message: "boom" })
  })
})
