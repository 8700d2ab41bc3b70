import type Anthropic from "@anthropic-ai/sdk"
import { APIError } from "@anthropic-ai/sdk"
import { completeRefusal } from "../../harness/client/HttpCalls.ts"
import { ask, assertThrown } from "../../harness/client/MessagesClient.ts"
import { assert } from "../../harness/It.ts"
import type { Answer, Turn } from "../ChatHarness.ts"
import { record, string } from "../ChatHosts.ts"
import type { Asked, Inbound } from "./Inbound.ts"

const imageOf = (url: string): Anthropic.ImageBlockParam => {
  const data = /^data:image\/png;base64,(.*)$/.exec(url)?.[1]
  if (data === undefined) return { type: "image", source: { type: "url", url } }
  return { type: "image", source: { type: "base64", media_type: "image/png", data } }
}

const blocksOf = ({ answers, images, role, text }: Turn): ReadonlyArray<Anthropic.ContentBlockParam> => {
  assert.notStrictEqual(role, "assistant", "the conversation keeps what was answered")
  if (role === "tool") return [{ type: "tool_result", tool_use_id: answers ?? "", content: text }]
  return [{ type: "text", text }, ...images.map(imageOf)]
}

const choiceOf = (choice: Exclude<Asked["toolChoice"], undefined>): Anthropic.ToolChoice => {
  if (typeof choice !== "string") return { type: "tool", ...choice }
  return { type: choice === "required" ? "any" : choice }
}

const bodyOf = (asked: Asked, messages: Array<Anthropic.MessageParam>): Anthropic.MessageCreateParamsNonStreaming => {
  const { maxTokens = 4_096, model, reasons, schema, stop, system, toolChoice, tools } = asked
  return {
    model,
    messages,
    max_tokens: maxTokens,
    ...(system !== undefined && { system }),
    ...(stop && { stop_sequences: [...stop] }),
    ...(reasons && { thinking: { type: "adaptive" } }),
    ...(toolChoice && { tool_choice: choiceOf(toolChoice) }),
    ...(tools && {
      tools: tools.map(({ name, parameters }) => {
        return { name, input_schema: { ...record(parameters), type: "object" as const } }
      })
    }),
    ...(schema && { output_config: { format: { type: "json_schema", schema: { ...schema } } } })
  }
}

const finishes: Readonly<Record<string, Answer["finish"]>> = {
  end_turn: "stop",
  max_tokens: "length",
  tool_use: "tool_calls",
  refusal: "content_filter",
  stop_sequence: "stop"
}

const answerOf = ({ content, stop_reason: reason, usage }: Anthropic.Message): Answer => {
  const cached = usage.cache_read_input_tokens ?? 0
  const cacheWrite = usage.cache_creation_input_tokens ?? 0
  return {
    content: content.map((block) => (block.type === "text" ? block.text : "")).join(""),
    reasoning: content.map((block) => (block.type === "thinking" ? block.thinking : "")).join(""),
    toolCalls: content.flatMap((block) =>
      block.type === "tool_use" ? { id: block.id, name: block.name, arguments: JSON.stringify(block.input) } : []
    ),
    finish: finishes[reason ?? ""] ?? assert.fail(`stopped by ${reason}`),
    usage: {
      prompt: usage.input_tokens + cached + cacheWrite,
      completion: usage.output_tokens,
      cached,
      cacheWrite,
      reasoning: usage.output_tokens_details?.thinking_tokens ?? 0
    }
  }
}

const types: Readonly<Record<string, string>> = {
  insufficient_quota: "billing_error",
  content_policy_violation: "invalid_request_error"
}

export const messages: Inbound = {
  name: "messages",
  native: "anthropic",
  hasStop: true,
  open: (customer, asked, stream) => {
    const history: Array<Anthropic.MessageParam> = []
    return {
      say: async (...turns) => {
        history.push({ role: "user", content: turns.flatMap(blocksOf) })
        const { message } = await ask(customer, bodyOf(asked, history), stream)
        assert.match(message.id, /^msg_[0-9a-f]{32}$/)
        assert.strictEqual(message.model, asked.model)
        history.push({ role: "assistant", content: message.content })
        return answerOf(message)
      }
    }
  },
  brokenType: "api_error",
  breakOff: async ({ anthropic }, asked) => {
    const body = bodyOf(asked, [{ role: "user", content: "hi" }])
    const stream = await anthropic.messages.create({ ...body, stream: true })
    let text = ""
    try {
      for await (const event of stream) {
        if (event.type === "content_block_delta" && event.delta.type === "text_delta") text += event.delta.text
      }
    } catch (error) {
      assert.instanceOf(error, APIError)
      const { message, type } = record(record(error.error).error)
      return { text, type: string(type), message: string(message) }
    }
    return assert.fail("the stream ended well")
  },
  assertRefused: (thrown, refusal, reason) => {
    const told = Object(Object(Object(thrown).error).error).hint
    const { hint, message, status, type } = completeRefusal(refusal, told)
    assertThrown(thrown, status, types[type] ?? type, reason?.message ?? message, hint)
  }
}
