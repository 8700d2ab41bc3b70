import type {
  Response,
  ResponseCreateParamsNonStreaming,
  ResponseInput,
  ResponseInputItem
} from "openai/resources/responses/responses"
import { assertClientError } from "../../harness/client/OfficialClients.ts"
import { assert } from "../../harness/It.ts"
import type { Answer, Turn } from "../ChatHarness.ts"
import { record } from "../ChatHosts.ts"
import type { Asked, Inbound } from "./Inbound.ts"

const itemOf = ({ answers, images, role, text }: Turn): ResponseInputItem => {
  assert.notStrictEqual(role, "assistant", "the conversation keeps what was answered")
  if (role === "tool") return { type: "function_call_output", call_id: answers ?? "", output: text }
  if (images.length === 0) return { role: "user", content: text }
  const pictures = images.map((url) => ({ type: "input_image" as const, image_url: url, detail: "auto" as const }))
  return { role: "user", content: [{ type: "input_text", text }, ...pictures] }
}

const choiceOf = (choice: Exclude<Asked["toolChoice"], undefined>) =>
  typeof choice === "string" ? choice : { type: "function" as const, ...choice }

const bodyOf = (asked: Asked, input: ResponseInput): ResponseCreateParamsNonStreaming => {
  const { maxTokens, model, reasons, schema, system, toolChoice, tools } = asked
  return {
    model,
    input,
    ...(system !== undefined && { instructions: system }),
    ...(maxTokens !== undefined && { max_output_tokens: maxTokens }),
    ...(reasons && { reasoning: { effort: "low", summary: "auto" } }),
    ...(toolChoice && { tool_choice: choiceOf(toolChoice) }),
    ...(tools && {
      tools: tools.map(({ name, parameters }) => {
        return { type: "function" as const, name, parameters: { ...record(parameters) }, strict: false }
      })
    }),
    ...(schema && { text: { format: { type: "json_schema", name: "count", schema, strict: true } } })
  }
}

const finishOf = ({ incomplete_details, output, status }: Response): Answer["finish"] => {
  if (status === "incomplete") {
    const { reason } = incomplete_details ?? {}
    if (reason === "content_filter") return reason
    assert.strictEqual(reason, "max_output_tokens")
    return "length"
  }
  assert.strictEqual(status, "completed")
  return output.some(({ type }) => type === "function_call") ? "tool_calls" : "stop"
}

const answerOf = (response: Response): Answer => {
  const { output, output_text: content, usage } = response
  return {
    content,
    reasoning: output
      .flatMap((item) => (item.type === "reasoning" ? item.summary.map(({ text }) => text) : []))
      .join(""),
    toolCalls: output.flatMap((item) =>
      item.type === "function_call" ? { id: item.call_id, name: item.name, arguments: item.arguments } : []
    ),
    finish: finishOf(response),
    usage: usage && {
      prompt: usage.input_tokens,
      completion: usage.output_tokens,
      cached: usage.input_tokens_details.cached_tokens,
      cacheWrite: usage.input_tokens_details.cache_write_tokens,
      reasoning: usage.output_tokens_details.reasoning_tokens
    }
  }
}

export const responses: Inbound = {
  name: "responses",
  native: "openai-responses",
  hasStop: false,
  open: ({ openai }, asked, stream) => {
    const input: ResponseInput = []
    return {
      say: async (...turns) => {
        input.push(...turns.map(itemOf))
        const body = bodyOf(asked, input)
        const response = stream
          ? await openai.responses.stream({ ...body, stream: true }).finalResponse()
          : await openai.responses.create(body)
        assert.match(response.id, /^resp_[0-9a-f]{32}$/)
        assert.strictEqual(response.model, asked.model)
        for (const item of response.output) {
          if (item.type === "message" || item.type === "reasoning" || item.type === "function_call") input.push(item)
        }
        return answerOf(response)
      }
    }
  },
  brokenType: "server_error",
  breakOff: async ({ openai }, asked) => {
    const stream = await openai.responses.create({ ...bodyOf(asked, [{ role: "user", content: "hi" }]), stream: true })
    let text = ""
    for await (const event of stream) {
      if (event.type === "response.output_text.delta") text += event.delta
      if (event.type !== "response.failed") continue
      const { code, message } = event.response.error ?? assert.fail("no error")
      return { text, type: code, message }
    }
    return assert.fail("the stream ended well")
  },
  assertRefused: (thrown, refusal, reason) =>
    assertClientError(thrown, {
      ...refusal,
      ...(refusal.param === "messages" && { param: "input" }),
      ...(reason && { message: reason.message, code: reason.code ?? refusal.code })
    })
}
