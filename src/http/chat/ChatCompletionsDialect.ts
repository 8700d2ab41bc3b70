import {
  type ChatAnswer,
  type ChatEvent,
  type Citation,
  encodeCallId,
  type FinishReason,
  type ToolCall,
  type Usage
} from "../../domain/Chat.ts"
import { type NanoUsd, toUsd } from "../../domain/Money.ts"
import { isObject, type JsonObject } from "../body/Guards.ts"
import type { Envelope } from "../errors/ErrorMessages.ts"
import { servedPath } from "../schema/Endpoints.ts"
import { decodeChatBody } from "./ChatBody.ts"
import type { AnswerHead, ChatDialect } from "./ChatDialect.ts"
import { type CacheUse, type ChatCompletion, type CompletionUsage, completeChat } from "./ChatSchema.ts"
import { readCustomInput } from "./ChatTools.ts"
import type { StreamEncoder } from "./Sse.ts"

const isCost = /cost|byok/i

/** Removes costs from a provider's reported usage, because only the operator may see them. */
export const removeCosts = (usage: unknown): JsonObject =>
  isObject(usage) ? Object.fromEntries(Object.entries(usage).filter(([name]) => !isCost.test(name))) : {}

export const cacheUseJson = ({ cached, cacheWrite, cacheWriteHour }: Usage): typeof CacheUse.Type => ({
  cached_tokens: cached,
  cache_write_tokens: cacheWrite,
  ...(cacheWriteHour && { cache_write_1h_tokens: cacheWriteHour })
})

export const toolUseJson = ({ webSearches }: Usage) =>
  webSearches ? { server_tool_use: { web_search_requests: webSearches } } : {}

/** Encodes usage. `charge` is undefined unless the client requested it with `usage.include`. */
const usageJson = (usage: Usage, charge?: NanoUsd): CompletionUsage => ({
  prompt_tokens: usage.prompt,
  completion_tokens: usage.completion,
  total_tokens: usage.prompt + usage.completion,
  prompt_tokens_details: cacheUseJson(usage),
  completion_tokens_details: { reasoning_tokens: usage.reasoning },
  ...toolUseJson(usage),
  ...(charge === undefined ? undefined : { cost: toUsd(charge) })
})

/** Always includes a title and a range, because clients require them. The range 0 to 0 means that none is known. */
export const citationFields = ({ end = 0, start = 0, title, url }: Citation) => ({
  url,
  title: title ?? url,
  start_index: start,
  end_index: end
})

const annotationJson = (citation: Citation) => ({
  type: "url_citation" as const,
  url_citation: citationFields(citation)
})

type CustomTools = ReadonlySet<string> | undefined

const toolCallJson = ({ function: { arguments: text, name }, id, signature }: ToolCall, customTools: CustomTools) => {
  const clientId = encodeCallId(id, signature)
  return customTools?.has(name) === true
    ? { id: clientId, type: "custom" as const, custom: { name, input: readCustomInput(text) } }
    : { id: clientId, type: "function" as const, function: { name, arguments: text } }
}

export const completionJson = (
  { created, id, model }: AnswerHead,
  answer: ChatAnswer,
  usage: Usage,
  charge?: NanoUsd,
  customTools?: CustomTools
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
        ...(answer.toolCalls.length === 0
          ? undefined
          : { tool_calls: answer.toolCalls.map((call) => toolCallJson(call, customTools)) }),
        ...(answer.citations?.length ? { annotations: answer.citations.map(annotationJson) } : undefined)
      },
      logprobs: null,
      finish_reason: answer.finish
    }
  ],
  usage: usageJson(usage, charge)
})

const doneFrame = "data: [DONE]\n\n"

const hiddenTypes = ["begin", "citation", "native", "unread", "usage"] as const
type VisibleEvent = Exclude<ChatEvent, { readonly type: (typeof hiddenTypes)[number] }>
type CallEvent = Extract<ChatEvent, { readonly type: "tool_call" }>

const isVisible = (event: ChatEvent): event is VisibleEvent =>
  !hiddenTypes.some((type) => type === event.type) && !(event.type === "content" && event.text === "")

/** Encodes a stream. Each delta is concatenated with precomputed JSON, which is faster than `JSON.stringify` of a chunk. */
export class SseEncoder implements StreamEncoder {
  private hasOpened = false
  private readonly head: string
  private readonly tail: string
  private readonly usageHead: string
  private readonly includeUsage: boolean
  private readonly includeCost: boolean
  private readonly customTools: CustomTools
  /** The received arguments of custom tool calls, by index. Their input is sent when the arguments are complete. */
  private readonly customCalls = new Map<number, string>()
  private citations: Array<Citation> | undefined
  /** The finish reason is sent last, because sources may still arrive after the gateway has cut off the text. */
  private finishReason: FinishReason | undefined

  constructor(
    { created, id, model }: AnswerHead,
    includeUsage: boolean,
    includeCost = false,
    customTools?: CustomTools
  ) {
    const commonFields = JSON.stringify({ id, object: "chat.completion.chunk", created, model }).slice(0, -1)
    this.includeUsage = includeUsage
    this.includeCost = includeCost
    this.customTools = customTools
    this.head = `data: ${commonFields},"choices":[{"index":0,"delta":{`
    this.tail = includeUsage ? `}],"usage":null}\n\n` : "}]}\n\n"
    this.usageHead = `data: ${commonFields},"choices":[],"usage":`
  }

  encode(events: ReadonlyArray<ChatEvent>): string {
    let text = ""
    for (const event of events) {
      if (isVisible(event)) text += this.encodeEvent(event)
      else if (event.type === "citation") (this.citations ??= []).push(event.citation)
    }
    return this.open(text)
  }

  finish(usage: Usage, charge: NanoUsd): string {
    const endFrames = this.end()
    if (!this.includeUsage) return endFrames + doneFrame
    const json = JSON.stringify(usageJson(usage, this.includeCost ? charge : undefined))
    return `${endFrames}${this.usageHead}${json}}\n\n${doneFrame}`
  }

  /** Ends a broken stream without `[DONE]`. Clients treat a chunk without `choices` as an error. */
  error(body: Envelope): string {
    return `data: ${JSON.stringify(body)}\n\n`
  }

  private encodeEvent(event: VisibleEvent): string {
    switch (event.type) {
      case "content":
        return this.chunk(`"content":${JSON.stringify(event.text)}`)
      case "reasoning":
        return this.chunk(`"reasoning_content":${JSON.stringify(event.text)}`)
      case "tool_call":
        return this.encodeCall(event)
      default:
        this.finishReason = event.reason
        return ""
    }
  }

  private encodeCall(event: CallEvent): string {
    const input = this.customCalls.get(event.index)
    if (input === undefined && this.customTools?.has(event.name ?? "") !== true) {
      return this.chunk(`"tool_calls":[${encodeToolDelta(event)}]`)
    }
    this.customCalls.set(event.index, (input ?? "") + event.arguments)
    return input === undefined ? this.chunk(`"tool_calls":[${encodeCustomStart(event)}]`) : ""
  }

  private end(): string {
    const { finishReason } = this
    const text = this.encodeRest() + (finishReason === undefined ? "" : this.chunk("", `"${finishReason}"`))
    return this.open(text)
  }

  private open(text: string): string {
    if (text === "" || this.hasOpened) return text
    this.hasOpened = true
    return this.chunk(`"role":"assistant","content":""`) + text
  }

  /** Encodes the inputs of custom tools, and the sources in a single list, because clients keep only the latest list. */
  private encodeRest(): string {
    let chunks = ""
    for (const [index, text] of this.customCalls) {
      const input = JSON.stringify(readCustomInput(text))
      chunks += this.chunk(`"tool_calls":[{"index":${index},"custom":{"input":${input}}}]`)
    }
    this.customCalls.clear()
    const { citations } = this
    this.citations = undefined
    return citations === undefined
      ? chunks
      : chunks + this.chunk(`"annotations":${JSON.stringify(citations.map(annotationJson))}`)
  }

  private chunk(delta: string, finishReason = "null"): string {
    return `${this.head}${delta}},"logprobs":null,"finish_reason":${finishReason}${this.tail}`
  }
}

const encodeCustomStart = ({ id, index, name, signature }: CallEvent): string => {
  const clientId = encodeCallId(id ?? `call_${index}`, signature)
  return JSON.stringify({ index, id: clientId, type: "custom", custom: { name, input: "" } })
}

const encodeToolDelta = (event: CallEvent): string => {
  const args = `"arguments":${JSON.stringify(event.arguments)}`
  const name = event.name === undefined ? "" : `"name":${JSON.stringify(event.name)},`
  const id = event.id === undefined ? undefined : encodeCallId(event.id, event.signature)
  const idAndType = id === undefined ? "" : `"id":${JSON.stringify(id)},"type":"function",`
  return `{"index":${event.index},${idAndType}"function":{${name}${args}}}`
}

export const chatCompletions: ChatDialect = {
  path: servedPath(completeChat),
  idPrefix: "chatcmpl",
  canReduceHold: false,
  decode: decodeChatBody,
  encodeAnswer: (answerHead, { customTools, includeCost = false }, answer, usage, charge) =>
    completionJson(answerHead, answer, usage, includeCost ? charge : undefined, customTools),
  encoder: (answerHead, { customTools, includeCost, includeUsage }) =>
    new SseEncoder(answerHead, includeUsage, includeCost, customTools)
}
