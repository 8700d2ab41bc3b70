import OpenAI, { APIError } from "openai"
import type {
  ChatCompletion,
  ChatCompletionCreateParamsNonStreaming,
  ChatCompletionMessageParam
} from "openai/resources/chat/completions"
import type { Usage } from "../../../src/domain/Chat.ts"
import { assertClientError } from "../../harness/client/OfficialClients.ts"
import { assert } from "../../harness/It.ts"
import type { Answer, Turn } from "../ChatHarness.ts"
import { record, string } from "../ChatHosts.ts"
import type { Asked, Inbound } from "./Inbound.ts"

const messagesOf = ({ answers, images, role, text }: Turn): ChatCompletionMessageParam => {
  assert.notStrictEqual(role, "assistant", "the conversation keeps what was answered")
  if (role === "tool") return { role, tool_call_id: answers ?? "", content: text }
  if (images.length === 0) return { role: "user", content: text }
  const pictures = images.map((url) => ({ type: "image_url" as const, image_url: { url } }))
  return { role: "user", content: [{ type: "text", text }, ...pictures] }
}

const choiceOf = (choice: Exclude<Asked["toolChoice"], undefined>) =>
  typeof choice === "string" ? choice : { type: "function" as const, function: choice }

const bodyOf = (asked: Asked, messages: Array<ChatCompletionMessageParam>): ChatCompletionCreateParamsNonStreaming => {
  const { maxTokens, model, reasons, schema, stop, system, toolChoice, tools } = asked
  return {
    model,
    messages: system === undefined ? messages : [{ role: "system", content: system }, ...messages],
    ...(maxTokens !== undefined && { max_tokens: maxTokens }),
    ...(stop && { stop: [...stop] }),
    ...(reasons && { reasoning_effort: "low" }),
    ...(toolChoice && { tool_choice: choiceOf(toolChoice) }),
    ...(tools && {
      tools: tools.map(({ name, parameters }) => {
        return { type: "function" as const, function: { name, parameters: { ...record(parameters) } } }
      })
    }),
    ...(schema && { response_format: { type: "json_schema", json_schema: { name: "count", schema, strict: true } } })
  }
}

const usageOf = ({ usage }: ChatCompletion): Usage | undefined =>
  usage && {
    prompt: usage.prompt_tokens,
    completion: usage.completion_tokens,
    cached: usage.prompt_tokens_details?.cached_tokens ?? 0,
    cacheWrite: Number(record(usage.prompt_tokens_details).cache_write_tokens),
    reasoning: usage.completion_tokens_details?.reasoning_tokens ?? 0
  }

const reasoningOf = (message: unknown): string => string(record(message).reasoning_content)

/** The client's own accumulator keeps of fields that it does not know only the last piece. */
const complete = async (openai: OpenAI, body: ChatCompletionCreateParamsNonStreaming, stream: boolean) => {
  if (!stream) {
    const completion = await openai.chat.completions.create(body)
    return { completion, reasoning: reasoningOf(completion.choices[0]?.message) }
  }
  let reasoning = ""
  const running = openai.chat.completions.stream({ ...body, stream: true, stream_options: { include_usage: true } })
  running.on("chunk", ({ choices }) => {
    reasoning += reasoningOf(choices[0]?.delta)
  })
  return { completion: await running.finalChatCompletion(), reasoning }
}

const finishOf = (reason: string | undefined): Answer["finish"] => {
  if (reason === "length" || reason === "tool_calls" || reason === "content_filter") return reason
  assert.strictEqual(reason, "stop")
  return "stop"
}

export const chat: Inbound = {
  name: "chat",
  native: undefined,
  hasStop: true,
  open: ({ openai }, asked, stream) => {
    const messages: Array<ChatCompletionMessageParam> = []
    return {
      say: async (...turns) => {
        messages.push(...turns.map(messagesOf))
        const { completion, reasoning } = await complete(openai, bodyOf(asked, messages), stream)
        assert.match(completion.id, /^chatcmpl-[0-9a-f]{32}$/)
        assert.strictEqual(completion.model, asked.model)
        const [choice] = completion.choices
        const { content, tool_calls = [] } = choice?.message ?? assert.fail("no choice")
        const again = { role: "assistant" as const, content, reasoning_content: reasoning }
        messages.push(tool_calls.length === 0 ? again : { ...again, tool_calls })
        const usage = usageOf(completion)
        return {
          content: content ?? "",
          reasoning,
          toolCalls: tool_calls.flatMap((call) => (call.type === "function" ? { id: call.id, ...call.function } : [])),
          finish: finishOf(choice?.finish_reason),
          usage
        }
      }
    }
  },
  brokenType: "api_error",
  breakOff: async ({ openai }, asked) => {
    const stream = await openai.chat.completions.create({
      ...bodyOf(asked, [{ role: "user", content: "hi" }]),
      stream: true
    })
    let text = ""
    try {
      for await (const { choices } of stream) text += choices[0]?.delta.content ?? ""
    } catch (error) {
      assert.instanceOf(error, APIError)
      return { text, type: error.type ?? "", message: error.message }
    }
    return assert.fail("the stream ended well")
  },
  // Other people's words are none of this dialect's.
  assertRefused: assertClientError
}
