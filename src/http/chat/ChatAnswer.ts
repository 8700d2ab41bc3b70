import type { ChatAnswer, ChatEvent, ToolCall, Usage } from "../../domain/Chat.ts"
import { callIdOnWire } from "../../domain/Chat.ts"
import { type NanoUsd, toUsd } from "../../domain/Money.ts"
import type { Envelope } from "../errors/ErrorMessages.ts"
import type { AnswerName } from "./ChatDialect.ts"
import type { CacheUse, ChatCompletion, CompletionUsage } from "./CompletionSchema.ts"
import type { StreamEncoder } from "./Sse.ts"

export const cacheUseJson = ({ cached, cacheWrite, cacheWriteHour }: Usage): typeof CacheUse.Type => ({
  cached_tokens: cached,
  cache_write_tokens: cacheWrite,
  ...(cacheWriteHour && { cache_write_1h_tokens: cacheWriteHour })
})

export const toolUseJson = ({ webSearches }: Usage) =>
  webSearches ? { server_tool_use: { web_search_requests: webSearches } } : {}

/** `charge` where the client asked for it. */
const usageJson = (usage: Usage, charge?: NanoUsd): CompletionUsage => ({
  prompt_tokens: usage.prompt,
  completion_tokens: usage.completion,
  total_tokens: usage.prompt + usage.completion,
  prompt_tokens_details: cacheUseJson(usage),
  completion_tokens_details: { reasoning_tokens: usage.reasoning },
  ...toolUseJson(usage),
  ...(charge === undefined ? undefined : { cost: toUsd(charge) })
})

const toolCallJson = ({ function: called, id, signature }: ToolCall) => ({
  id: callIdOnWire(id, signature),
  type: "function" as const,
  function: { name: called.name, arguments: called.arguments }
})

export const completionJson = (
  { created, id, model }: AnswerName,
  answer: ChatAnswer,
  usage: Usage,
  charge?: NanoUsd
): ChatCompletion => ({
  id,
  object: "chat.completion",
  created,
  model,
  choices: [
    {
      index: 0,
      message: {
        role: "assistant",
        content: answer.toolCalls.length > 0 && answer.content === "" ? null : answer.content,
        refusal: null,
        ...(answer.reasoning === undefined ? undefined : { reasoning_content: answer.reasoning }),
        ...(answer.toolCalls.length === 0 ? undefined : { tool_calls: answer.toolCalls.map(toolCallJson) })
      },
      logprobs: null,
      finish_reason: answer.finish
    }
  ],
  usage: usageJson(usage, charge)
})

const done = "data: [DONE]\n\n"

const hidden = ["begin", "citation", "native", "unread", "usage"] as const
type Shown = Exclude<ChatEvent, { readonly type: (typeof hidden)[number] }>

const isShown = (event: ChatEvent): event is Shown =>
  !hidden.some((type) => type === event.type) && !(event.type === "content" && event.text === "")

/** Concatenates around the text, so that a delta costs one string. */
export class SseEncoder implements StreamEncoder {
  private opened = false
  private readonly head: string
  private readonly tail: string
  private readonly usageHead: string
  private readonly includeUsage: boolean
  private readonly includeCost: boolean

  constructor({ created, id, model }: AnswerName, includeUsage: boolean, includeCost = false) {
    const common = JSON.stringify({ id, object: "chat.completion.chunk", created, model }).slice(0, -1)
    this.includeUsage = includeUsage
    this.includeCost = includeCost
    this.head = `data: ${common},"choices":[{"index":0,"delta":{`
    this.tail = includeUsage ? `}],"usage":null}\n\n` : "}]}\n\n"
    this.usageHead = `data: ${common},"choices":[],"usage":`
  }

  encode(events: ReadonlyArray<ChatEvent>): string {
    let text = ""
    for (const event of events) if (isShown(event)) text += this.one(event)
    if (text === "" || this.opened) return text
    this.opened = true
    return this.chunk(`"role":"assistant","content":""`) + text
  }

  finish(usage: Usage, charge: NanoUsd): string {
    if (!this.includeUsage) return done
    const counted = usageJson(usage, this.includeCost ? charge : undefined)
    return `${this.usageHead}${JSON.stringify(counted)}}\n\n${done}`
  }

  /** Clients take a chunk without `choices` for an error, and notice the missing end mark. */
  error(body: Envelope): string {
    return `data: ${JSON.stringify(body)}\n\n`
  }

  private one(event: Shown): string {
    switch (event.type) {
      case "content":
        return this.chunk(`"content":${JSON.stringify(event.text)}`)
      case "reasoning":
        return this.chunk(`"reasoning_content":${JSON.stringify(event.text)}`)
      case "tool_call":
        return this.chunk(`"tool_calls":[${toolDelta(event)}]`)
      default:
        return this.chunk("", `"${event.reason}"`)
    }
  }

  private chunk(delta: string, finishReason = "null"): string {
    return `${this.head}${delta}},"logprobs":null,"finish_reason":${finishReason}${this.tail}`
  }
}

const toolDelta = (event: Extract<ChatEvent, { readonly type: "tool_call" }>): string => {
  const args = `"arguments":${JSON.stringify(event.arguments)}`
  const name = event.name === undefined ? "" : `"name":${JSON.stringify(event.name)},`
  const id = event.id === undefined ? undefined : callIdOnWire(event.id, event.signature)
  const opening = id === undefined ? "" : `"id":${JSON.stringify(id)},"type":"function",`
  return `{"index":${event.index},${opening}"function":{${name}${args}}}`
}
