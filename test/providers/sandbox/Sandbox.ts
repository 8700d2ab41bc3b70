import { Effect, Option } from "effect"
import type { ChatAnswer, ChatEvent, ChatRequest, Message, Tool } from "../../../src/domain/Chat.ts"
import type { Route } from "../../../src/domain/Model.ts"
import { make } from "../../../src/providers/sandbox/Sandbox.ts"
import { TokenCounter } from "../../../src/services/chat/TokenCounter.ts"
import type { ChatAdapter, ProviderFailure } from "../../../src/services/routing/Provider.ts"
import { assert, testOver } from "../../harness/It.ts"

export const route = (provider = "sandbox"): Route => ({
  id: `m@${provider}`,
  provider: { name: provider, adapter: "sandbox", baseUrl: undefined, credential: undefined, headers: {} },
  model: "theirs",
  preference: 1,
  weight: 1,
  capabilities: undefined,
  cost: undefined,
  options: {}
})

export const asks = (text: string): ReadonlyArray<Message> => [{ role: "user", content: text }]

export const request = (more: Partial<ChatRequest> = {}): ChatRequest => ({
  model: "gpt-5.2",
  messages: asks("Why is the sky blue?"),
  stream: false,
  includeUsage: false,
  maxTokens: 4096,
  stop: [],
  tools: [],
  webSearch: false,
  ...more
})

export const tool = (name: string, parameters?: Tool["function"]["parameters"]): Tool => ({
  type: "function",
  function: { name, ...(parameters === undefined ? {} : { parameters }) }
})

export const getWeather = tool("get_weather", {
  type: "object",
  properties: { city: { type: "string" }, unit: { enum: ["fahrenheit", "celsius"] } },
  required: ["city", "unit"],
  additionalProperties: false
})
export const getTime = tool("get_time", {
  type: "object",
  properties: { zone: { type: "string" } },
  required: ["zone"]
})

export const chatOf = Effect.flatMap(make, ({ chat }) => Effect.fromNullable(chat)).pipe(Effect.orDie)

export const complete = (overrides: Partial<ChatRequest>, provider?: string) =>
  Effect.flatMap(chatOf, (chat) => chat.complete(route(provider), request(overrides)))

export interface Heard {
  readonly pulls: ReadonlyArray<ReadonlyArray<ChatEvent>>
  readonly failure: ProviderFailure | undefined
}

export const hearFrom = (chat: ChatAdapter, chatRequest: ChatRequest, provider?: string): Effect.Effect<Heard> =>
  Effect.gen(function* () {
    const pulls: Array<ReadonlyArray<ChatEvent>> = []
    const pull = yield* chat.stream(route(provider), chatRequest)
    const listen: Effect.Effect<never, Option.Option<ProviderFailure>> = Effect.forever(
      Effect.map(pull, (events) => pulls.push(events))
    )
    const end = yield* Effect.flip(listen)
    return { pulls, failure: Option.getOrUndefined(end) }
  }).pipe(
    Effect.scoped,
    Effect.catchAll((failure) => Effect.succeed({ pulls: [], failure }))
  )

export const hear = (overrides: Partial<ChatRequest>, provider?: string) =>
  Effect.flatMap(chatOf, (chat) => hearFrom(chat, request({ ...overrides, stream: true }), provider))

export const outputs = (pulls: Heard["pulls"]): ReadonlyArray<ChatEvent> =>
  pulls.flat().filter((event) => event.type !== "finish" && event.type !== "usage")

/** Assembles a stream like a client. */
export const joined = (pulls: Heard["pulls"]): ChatAnswer => {
  let content = ""
  let reasoning = ""
  let finish: ChatAnswer["finish"] | undefined
  let usage: ChatAnswer["usage"]
  const calls: Array<{ id: string; name: string; text: string }> = []
  for (const event of pulls.flat()) {
    if (event.type === "content") content += event.text
    else if (event.type === "reasoning") reasoning += event.text
    else if (event.type === "finish") finish = event.reason
    else if (event.type === "usage") usage = event.usage
    else if (event.type === "tool_call") {
      if (event.id !== undefined) calls[event.index] = { id: event.id, name: event.name ?? "", text: "" }
      const call = calls[event.index]
      assert.isDefined(call, "a tool call opens with its id")
      call.text += event.arguments
    }
  }
  assert.isDefined(finish)
  return {
    content,
    reasoning,
    finish,
    usage,
    toolCalls: calls.map(({ id, name, text }) => ({ id, type: "function", function: { name, arguments: text } }))
  }
}

export const spoken = (answer: ChatAnswer): ChatAnswer => ({
  ...answer,
  content: answer.content ?? "",
  reasoning: answer.reasoning ?? ""
})

export const counted = (answer: ChatAnswer): Effect.Effect<number, never, TokenCounter> =>
  Effect.gen(function* () {
    const { count } = yield* TokenCounter
    const texts = answer.toolCalls.flatMap((call) => [call.function.name, call.function.arguments])
    const counts = yield* Effect.forEach([answer.reasoning ?? "", answer.content ?? "", ...texts], count)
    return counts.reduce((sum, tokens) => sum + tokens, 0)
  })

/** A test of the sandbox with the real tokenizer. */
export const test = testOver(TokenCounter.layer)
