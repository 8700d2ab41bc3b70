import { callIdOnWire } from "../../domain/CallId.ts"
import type { ChatAnswer, ChatEvent, Citation, FinishReason, ToolCall, Usage } from "../../domain/Chat.ts"
import { type NanoUsd, toUsd } from "../../domain/Money.ts"
import { isObject, type JsonObject } from "../body/Guards.ts"
import type { Envelope } from "../errors/ErrorMessages.ts"
import { servedPath } from "../schema/Endpoints.ts"
import { decodeChatBody } from "./ChatBody.ts"
import type { AnswerName, ChatDialect } from "./ChatDialect.ts"
import { type CacheUse, type ChatCompletion, type CompletionUsage, completeChat } from "./ChatSchema.ts"
import { customInput } from "./ChatTools.ts"
import type { StreamEncoder } from "./Sse.ts"

const isCost = /cost|byok/i

/** What a host reports of its own answer's usage, without what it charges for it: that is the operator's alone. */
export const reportedUsage = (usage: unknown): JsonObject =>
  isObject(usage) ? Object.fromEntries(Object.entries(usage).filter(([name]) => !isCost.test(name))) : {}

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

/** Clients demand a title and both places: without them the source belongs to no part of the text. */
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

const toolCallJson = ({ function: called, id, signature }: ToolCall, custom: CustomTools) => {
  const onWire = callIdOnWire(id, signature)
  const { arguments: text, name } = called
  return custom?.has(name) === true
    ? { id: onWire, type: "custom" as const, custom: { name, input: customInput(text) } }
    : { id: onWire, type: "function" as const, function: { name, arguments: text } }
}

export const completionJson = (
  { created, id, model }: AnswerName,
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

const done = "data: [DONE]\n\n"

const hidden = ["begin", "citation", "native", "unread", "usage"] as const
type ShownEvent = Exclude<ChatEvent, { readonly type: (typeof hidden)[number] }>
type CallEvent = Extract<ChatEvent, { readonly type: "tool_call" }>

const isShown = (event: ChatEvent): event is ShownEvent =>
  !hidden.some((type) => type === event.type) && !(event.type === "content" && event.text === "")

/** Concatenates around the text, so that a delta costs one string. */
export class SseEncoder implements StreamEncoder {
  private opened = false
  private readonly head: string
  private readonly tail: string
  private readonly usageHead: string
  private readonly includeUsage: boolean
  private readonly includeCost: boolean
  private readonly customTools: CustomTools
  /** The arguments of calls of custom tools by their index: their input is read once it is whole. */
  private readonly customCalls = new Map<number, string>()
  private citations: Array<Citation> | undefined
  /** Sent last: sources may follow the text of an answer that the gateway cut. */
  private finishReason: FinishReason | undefined

  constructor(
    { created, id, model }: AnswerName,
    includeUsage: boolean,
    includeCost = false,
    customTools?: CustomTools
  ) {
    const common = JSON.stringify({ id, object: "chat.completion.chunk", created, model }).slice(0, -1)
    this.includeUsage = includeUsage
    this.includeCost = includeCost
    this.customTools = customTools
    this.head = `data: ${common},"choices":[{"index":0,"delta":{`
    this.tail = includeUsage ? `}],"usage":null}\n\n` : "}]}\n\n"
    this.usageHead = `data: ${common},"choices":[],"usage":`
  }

  encode(events: ReadonlyArray<ChatEvent>): string {
    let text = ""
    for (const event of events) {
      if (isShown(event)) text += this.one(event)
      else if (event.type === "citation") (this.citations ??= []).push(event.citation)
    }
    return this.open(text)
  }

  finish(usage: Usage, charge: NanoUsd): string {
    const last = this.end()
    if (!this.includeUsage) return last + done
    const counted = usageJson(usage, this.includeCost ? charge : undefined)
    return `${last}${this.usageHead}${JSON.stringify(counted)}}\n\n${done}`
  }

  /** Clients take a chunk without `choices` for an error, and notice the missing end mark. */
  error(body: Envelope): string {
    return `data: ${JSON.stringify(body)}\n\n`
  }

  private one(event: ShownEvent): string {
    switch (event.type) {
      case "content":
        return this.chunk(`"content":${JSON.stringify(event.text)}`)
      case "reasoning":
        return this.chunk(`"reasoning_content":${JSON.stringify(event.text)}`)
      case "tool_call":
        return this.call(event)
      default:
        this.finishReason = event.reason
        return ""
    }
  }

  private call(event: CallEvent): string {
    const given = this.customCalls.get(event.index)
    if (given === undefined && this.customTools?.has(event.name ?? "") !== true) {
      return this.chunk(`"tool_calls":[${toolDelta(event)}]`)
    }
    this.customCalls.set(event.index, (given ?? "") + event.arguments)
    return given === undefined ? this.chunk(`"tool_calls":[${customOpening(event)}]`) : ""
  }

  private end(): string {
    const { finishReason } = this
    const text = this.last() + (finishReason === undefined ? "" : this.chunk("", `"${finishReason}"`))
    return this.open(text)
  }

  private open(text: string): string {
    if (text === "" || this.opened) return text
    this.opened = true
    return this.chunk(`"role":"assistant","content":""`) + text
  }

  /** The inputs of custom tools, and all sources at once: clients keep only one list of them. */
  private last(): string {
    let text = ""
    for (const [index, given] of this.customCalls) {
      const input = JSON.stringify(customInput(given))
      text += this.chunk(`"tool_calls":[{"index":${index},"custom":{"input":${input}}}]`)
    }
    this.customCalls.clear()
    const { citations } = this
    this.citations = undefined
    return citations === undefined
      ? text
      : text + this.chunk(`"annotations":${JSON.stringify(citations.map(annotationJson))}`)
  }

  private chunk(delta: string, finishReason = "null"): string {
    return `${this.head}${delta}},"logprobs":null,"finish_reason":${finishReason}${this.tail}`
  }
}

const customOpening = ({ id, index, name, signature }: CallEvent): string => {
  const onWire = callIdOnWire(id ?? `call_${index}`, signature)
  return JSON.stringify({ index, id: onWire, type: "custom", custom: { name, input: "" } })
}

const toolDelta = (event: CallEvent): string => {
  const args = `"arguments":${JSON.stringify(event.arguments)}`
  const name = event.name === undefined ? "" : `"name":${JSON.stringify(event.name)},`
  const id = event.id === undefined ? undefined : callIdOnWire(event.id, event.signature)
  const opening = id === undefined ? "" : `"id":${JSON.stringify(id)},"type":"function",`
  return `{"index":${event.index},${opening}"function":{${name}${args}}}`
}

export const chatCompletions: ChatDialect = {
  path: servedPath(completeChat),
  idPrefix: "chatcmpl",
  hasFittedHold: false,
  decode: decodeChatBody,
  encodeAnswer: (name, { customTools, includeCost = false }, answer, usage, charge) =>
    completionJson(name, answer, usage, includeCost ? charge : undefined, customTools),
  encoder: (name, { customTools, includeCost, includeUsage }) =>
    new SseEncoder(name, includeUsage, includeCost, customTools)
}
