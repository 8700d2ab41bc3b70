import Anthropic, {
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  RateLimitError
} from "@anthropic-ai/sdk"
import type { ChatRequest, FinishReason } from "../../../src/domain/Chat.ts"
import { encodeRequest, options, rulesOf } from "../../../src/providers/anthropic/AnthropicRequest.ts"
import { type Answer, called, request, weatherTool } from "../../contracts/ChatHarness.ts"
import { secret } from "../../contracts/ChatHosts.ts"
import { callTo, scenarios } from "../../contracts/ChatScenarios.ts"
import { officialClientContract } from "../../contracts/OfficialChatClient.ts"
import { calling, thrownBy } from "../../harness/client/OfficialClients.ts"
import { assert, describe, it } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { anthropic, errors, event, stopReasons, wire } from "./Wire.ts"

const clientOf = (baseURL: string) => new Anthropic({ baseURL, apiKey: secret, maxRetries: 0 })
const requestBody: Anthropic.MessageCreateParamsNonStreaming = {
  model: "claude-model-1",
  max_tokens: 4096,
  messages: [{ role: "user", content: "Say something." }]
}

const finishes: ReadonlyArray<FinishReason> = ["stop", "length", "tool_calls", "content_filter"]

const answerOf = ({ content, stop_reason, usage }: Anthropic.Message): Answer => {
  const [thought] = content.flatMap((block) => (block.type === "thinking" ? [block] : []))
  if (thought !== undefined) assert.isNotEmpty(thought.signature)
  const cached = usage.cache_read_input_tokens ?? 0
  const cacheWrite = usage.cache_creation_input_tokens ?? 0
  const counts = {
    prompt: usage.input_tokens + cached + cacheWrite,
    completion: usage.output_tokens,
    cached,
    cacheWrite,
    reasoning: usage.output_tokens_details?.thinking_tokens ?? 0
  }
  return {
    content: content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join(""),
    reasoning: thought?.thinking,
    toolCalls: content.flatMap((block) => {
      return block.type === "tool_use"
        ? [{ id: block.id, name: block.name, arguments: JSON.stringify(block.input) }]
        : []
    }),
    finish: finishes.find((finish) => stopReasons[finish] === stop_reason) ?? "stop",
    usage: counts.completion === 0 ? undefined : counts
  }
}

const thrown = {
  limit: RateLimitError,
  funds: BadRequestError,
  key: AuthenticationError,
  request: BadRequestError,
  image: BadRequestError,
  moderation: BadRequestError,
  server: InternalServerError,
  missing: NotFoundError
} as const

officialClientContract(anthropic, {
  readers: {
    "in one piece": async (url) => answerOf(await clientOf(url).messages.create(requestBody)),
    "as a stream": async (url) => answerOf(await clientOf(url).messages.stream(requestBody).finalMessage())
  },
  assertRefusal: (error, refusal) => {
    assert.instanceOf(error, thrown[refusal])
    const { error: said, status } = errors[refusal]
    assert.deepInclude(Object(error), { status, type: said.type, apiMessage: said.message })
  }
})

describe("the vendor's own client of Anthropic", () => {
  it.scopedLive("reads the code of a spend limit and an error in the midst of a stream", function* () {
    const fake = yield* Fake.make
    const error = { type: "rate_limit_error", message: "no", details: { error_code: "enforced_spend_limit_reached" } }
    const broken = event({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } })
    const { opening, output } = wire({ content: "a", finish: "stop" })
    yield* fake.script(Fake.json(429, { type: "error", error }), Fake.sse(...opening, ...output.slice(0, 2), broken))
    const coded = yield* thrownBy(() => clientOf(fake.url).messages.create(requestBody))
    assert.deepInclude(Object(coded), { errorCode: error.details.error_code })
    const raised = yield* thrownBy(() => clientOf(fake.url).messages.stream(requestBody).finalMessage())
    assert.include(String(raised), "overloaded_error")
  })

  const { description = "", name, parameters } = weatherTool.function

  it("knows every field that the adapter sends", () => {
    const call = callTo(anthropic, { decoder: options, rulesOf }, { thinking: true })
    const text = (text: string) => ({ type: "text", text }) as const
    const messages: ChatRequest["messages"] = [
      { role: "system", content: [text("a"), text("b")] },
      { role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } }] },
      { role: "assistant", content: "Let me look.", tool_calls: [called("toolu_a", name, '{"city":"Bern"}')] },
      { role: "tool", content: "sunny", tool_call_id: "toolu_a" }
    ]
    const everything = { messages, tools: [weatherTool], toolChoice: "required", stop: ["END"] } as const
    const bodies: ReadonlyArray<Anthropic.MessageCreateParams> = [
      call({}),
      call({ ...everything, parallelToolCalls: false }, {}, true),
      call({ reasoningEffort: "low" }, { thinking: "budget" }),
      call({ reasoningEffort: "low" }, { thinking: "adaptive" }),
      call({}, { thinking_off: "between_tools" }),
      call({}, { thinking: "always" }),
      call({ ...everything, tools: [{ ...weatherTool, cache_control: { type: "ephemeral", ttl: "1h" } }] }),
      call({ ...everything, toolChoice: "auto" }, { cache: "auto" })
    ].map(encodeRequest)
    for (const { max_tokens, model } of bodies) assert.deepStrictEqual([max_tokens, model], [4096, "claude-model-1"])
  })

  scenarios(anthropic).check("sends what the adapter sends", function* (adapter, fake, route) {
    const { body } = wire({ content: "Sunny.", finish: "stop" })
    yield* fake.script(Fake.json(200, body), Fake.json(200, body))
    const question = { role: "user", content: "Weather in Bern?" } as const
    yield* calling(() =>
      clientOf(fake.url).messages.create({
        ...requestBody,
        system: "Be brief.",
        messages: [question],
        stop_sequences: ["END"],
        tools: [{ name, description, input_schema: { ...parameters, type: "object" } }],
        tool_choice: { type: "any", disable_parallel_tool_use: true }
      })
    )
    const value = { tools: [weatherTool], toolChoice: "required", parallelToolCalls: false, stop: ["END"] } as const
    const messages = [{ role: "system", content: "Be brief." }, question] as const
    yield* adapter.complete(route, request({ messages, ...value }))
    const [theirs, ours] = [yield* fake.received, yield* fake.received]
    assert.deepStrictEqual(anthropic.understand(ours), anthropic.understand(theirs))
    const about = ({ headers, method, path }: Fake.Received) => [method, path, headers["content-type"]]
    assert.deepStrictEqual(about(ours), about(theirs))
  })
})
