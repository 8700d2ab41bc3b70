import { Effect, Exit } from "effect"
import { type ChatEvent, type Citation, encodeCallId, type Usage, unsignedMark } from "../../domain/Chat.ts"
import { stringify } from "../../domain/JsonSource.ts"
import { JsonScanner } from "../../domain/JsonText.ts"
import { noUsage } from "../../domain/Pricing.ts"
import { ChatCompletions } from "../../services/chat/ChatCompletions.ts"
import { makeBoundedKeyedSemaphore } from "../../services/runtime/KeyedSemaphore.ts"
import type { Admission, Endpoint } from "../admission/Admission.ts"
import { isObject, type JsonObject } from "../body/Guards.ts"
import { removeCosts } from "../chat/ChatCompletionsDialect.ts"
import type { AnswerHead, ChatDialect } from "../chat/ChatDialect.ts"
import { makeTaskReader } from "../chat/ChatTasks.ts"
import { encodeFrame, readEventName, type StreamEncoder } from "../chat/Sse.ts"
import type { Envelope } from "../errors/ErrorMessages.ts"
import { json } from "../HttpAnswer.ts"
import { servedPath } from "../schema/Endpoints.ts"
import {
  billedUsage,
  citationJson,
  encodeMessagesError,
  encodeStop,
  messageJson,
  messagesError,
  messagesFieldNames,
  messagesIdHeader,
  showsThinking,
  usageJson
} from "./MessagesAnswer.ts"
import { decodeMessagesBody } from "./MessagesBody.ts"
import { countTokens, createMessage } from "./MessagesSchema.ts"

const encodeEventFrame = (event: JsonObject): string => encodeFrame(String(event.type), stringify(event))

type CallEvent = Extract<ChatEvent, { readonly type: "tool_call" }>
type TextKind = "text" | "thinking"

interface QueuedText {
  readonly kind: TextKind
  text: string
  readonly citations: Array<Citation>
}

interface QueuedCall {
  readonly kind: "tool_use"
  text: string
  readonly call: CallEvent
}

const openings: Readonly<Record<TextKind, string>> = {
  text: `{"type":"text","text":""}`,
  thinking: `{"type":"thinking","thinking":"","signature":""}`
}

const deltas = {
  text: `"type":"text_delta","text":`,
  thinking: `"type":"thinking_delta","thinking":`,
  tool_use: `"type":"input_json_delta","partial_json":`
} as const

/** No model's whole output is longer. `StreamOutput` has the same limit. */
const maxQueuedCharacters = 16_000_000

/**
 * Encodes the blocks of a stream. Only one block is open at a time, and clients run a call when its block stops. While the
 * arguments of the open call are incomplete JSON, other blocks therefore wait in the order of their first events. At the end
 * of the stream, all are written.
 */
class BlockStream {
  private count = 0
  private open: TextKind | "tool_use" | undefined
  private openCall: number | undefined
  private head = ""
  private scanner = new JsonScanner()
  private readonly queue: Array<QueuedText | QueuedCall> = []
  private queuedCharacters = 0
  private readonly queuedCalls = new Map<number, QueuedCall>()
  private readonly begunCalls = new Set<number>()
  /** Sources that arrived while no text was open. */
  private citations: Array<Citation> = []

  /** Adds text that is not empty. */
  addText(kind: TextKind, text: string): string {
    if (this.open === kind) return this.delta(text)
    if (!this.mustWait()) return this.begin(kind, openings[kind]) + this.delta(text)
    const last = this.queue.at(-1)
    if (last?.kind === kind) last.text += text
    else this.queue.push({ kind, text, citations: this.takeCitations(kind) })
    return this.countQueued(text)
  }

  /** Adds a part of a call. If the call's block has stopped, its arguments were complete, so the part is dropped. */
  addCall(event: CallEvent): string {
    const { arguments: text, index } = event
    if (index === this.openCall) return this.argumentsDelta(text) + this.writeQueue(false)
    const call = this.queuedCalls.get(index)
    if (call !== undefined) {
      call.text += text
      return this.countQueued(text)
    }
    if (this.begunCalls.has(index)) return ""
    if (!this.mustWait()) return this.beginCall(event, text)
    const block: QueuedCall = { kind: "tool_use", text, call: event }
    this.queue.push(block)
    this.queuedCalls.set(index, block)
    return this.countQueued(text)
  }

  /** Adds a source to the open text block, or else to the next one. */
  addCitation(citation: Citation): string {
    if (this.open === "text") return this.citationDelta(citation)
    const last = this.queue.at(-1)
    const list = last?.kind === "text" ? last.citations : this.citations
    list.push(citation)
    return ""
  }

  /** Writes all queued blocks, and stops the last block. */
  end(): string {
    const blocks = this.writeQueue(true)
    const sources = this.citations.length === 0 ? "" : this.begin("text", openings.text)
    return blocks + sources + this.close()
  }

  private countQueued(text: string): string {
    this.queuedCharacters += text.length
    return this.queuedCharacters > maxQueuedCharacters ? this.writeQueue(true) : ""
  }

  private mustWait(): boolean {
    return this.open === "tool_use" && this.scanner.state !== "complete"
  }

  private writeQueue(isEnd: boolean): string {
    if (this.queue.length === 0) return ""
    let text = ""
    let count = 0
    for (const block of this.queue) {
      if (!isEnd && this.mustWait()) break
      count++
      this.queuedCharacters -= block.text.length
      text += this.write(block)
    }
    this.queue.splice(0, count)
    return text
  }

  private write(block: QueuedText | QueuedCall): string {
    if (block.kind === "tool_use") {
      this.queuedCalls.delete(block.call.index)
      return this.beginCall(block.call, block.text)
    }
    let text = this.begin(block.kind, openings[block.kind]) + this.delta(block.text)
    for (const citation of block.citations) text += this.citationDelta(citation)
    return text
  }

  private beginCall({ id, index, name, signature }: CallEvent, text: string): string {
    const clientId = encodeCallId(id ?? `call_${index}`, signature)
    const start = this.begin(
      "tool_use",
      JSON.stringify({ type: "tool_use", id: clientId, name: name ?? "", input: {} })
    )
    this.openCall = index
    this.begunCalls.add(index)
    this.scanner = new JsonScanner()
    return start + this.argumentsDelta(text)
  }

  private argumentsDelta(text: string): string {
    if (text === "") return ""
    this.scanner.take(text)
    return this.delta(text)
  }

  private delta(text: string): string {
    return `${this.head}${JSON.stringify(text)}}}\n\n`
  }

  private citationDelta(citation: Citation): string {
    const delta = { type: "citations_delta", citation: citationJson(citation) }
    return encodeEventFrame({ type: "content_block_delta", index: this.count - 1, delta })
  }

  private takeCitations(kind: TextKind): Array<Citation> {
    if (kind !== "text" || this.citations.length === 0) return []
    const { citations } = this
    this.citations = []
    return citations
  }

  private begin(kind: TextKind | "tool_use", block: string): string {
    const closing = this.close()
    const index = this.count++
    this.open = kind
    this.head = `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{${deltas[kind]}`
    const start = `{"type":"content_block_start","index":${index},"content_block":${block}}`
    let text = closing + encodeFrame("content_block_start", start)
    if (kind === "text") for (const citation of this.takeCitations(kind)) text += this.citationDelta(citation)
    return text
  }

  private close(): string {
    if (this.open === undefined) return ""
    const index = this.count - 1
    const signature =
      this.open === "thinking"
        ? encodeEventFrame({
            type: "content_block_delta",
            index,
            delta: { type: "signature_delta", signature: unsignedMark }
          })
        : ""
    this.open = undefined
    this.openCall = undefined
    return signature + encodeFrame("content_block_stop", `{"type":"content_block_stop","index":${index}}`)
  }
}

const nullFields = { stop_sequence: null, stop_details: null, container: null }

const messageStop = encodeFrame("message_stop", `{"type":"message_stop"}`)

/** Merges two parts of `message_delta`, because a provider may send it in parts. */
const mergeObjects = (previous: unknown, next: unknown): JsonObject => ({
  ...(isObject(previous) && previous),
  ...(isObject(next) && next)
})

/**
 * Encodes a stream. It forwards a provider's native events and translates all others. `message_delta` and `message_stop` are
 * held back until the settlement, because they contain the billed usage.
 */
export class MessagesEncoder implements StreamEncoder {
  private hasStarted = false
  private isNative = false
  private lastNative = ""
  private messageDelta: JsonObject | undefined
  private stop = encodeStop("stop")
  private readonly blocks = new BlockStream()
  private readonly answerHead: AnswerHead
  private readonly showsThinking: boolean

  constructor(answerHead: AnswerHead, showsThinking: boolean) {
    this.answerHead = answerHead
    this.showsThinking = showsThinking
  }

  encode(events: ReadonlyArray<ChatEvent>): string {
    let text = ""
    for (const event of events) {
      if (event.type === "native") text += this.native(event.event)
      else if (!this.isNative) text += this.encodeEvent(event)
    }
    if (this.isNative || this.hasStarted) return text
    return this.start(events) + text
  }

  finish(usage: Usage): string {
    if (this.isNative) {
      const { messageDelta } = this
      const lastDelta =
        messageDelta && encodeEventFrame({ ...messageDelta, usage: billedUsage(messageDelta.usage, usage) })
      return (lastDelta ?? "") + (this.lastNative || messageStop)
    }
    const blocks = (this.hasStarted ? "" : this.start([])) + this.blocks.end()
    const delta = { ...nullFields, ...this.stop }
    return blocks + encodeEventFrame({ type: "message_delta", delta, usage: usageJson(usage) }) + messageStop
  }

  error(body: Envelope, reason?: string): string {
    return encodeEventFrame(messagesError(body, reason))
  }

  private native(event: JsonObject): string {
    this.isNative = true
    if (readEventName(event) === undefined) return ""
    if (event.type === "message_stop") {
      this.lastNative = encodeEventFrame(event)
      return ""
    }
    if (event.type === "message_delta") {
      const { delta, usage } = this.messageDelta ?? {}
      this.messageDelta = { ...event, delta: mergeObjects(delta, event.delta), usage: mergeObjects(usage, event.usage) }
      return ""
    }
    if (event.type !== "message_start" || !isObject(event.message)) return encodeEventFrame(event)
    const { id, model } = this.answerHead
    const usage = isObject(event.message.usage) ? removeCosts(event.message.usage) : usageJson(noUsage)
    return encodeEventFrame({ ...event, message: { ...event.message, usage, id, model } })
  }

  /** Encodes `message_start`, with the prompt's token counts if the provider reports them before the first content. */
  private start(events: ReadonlyArray<ChatEvent>): string {
    this.hasStarted = true
    const { id, model } = this.answerHead
    const reportedUsage = events.findLast((event) => event.type === "usage")?.usage ?? noUsage
    const usage = usageJson({ ...reportedUsage, completion: 0, reasoning: 0 })
    const emptyMessage = { content: [], stop_reason: null, ...nullFields, usage }
    return encodeEventFrame({
      type: "message_start",
      message: { id, type: "message", role: "assistant", model, ...emptyMessage }
    })
  }

  private encodeEvent(event: Exclude<ChatEvent, { readonly type: "native" }>): string {
    switch (event.type) {
      case "content":
        return event.text === "" ? "" : this.blocks.addText("text", event.text)
      case "reasoning":
        return event.text === "" || !this.showsThinking ? "" : this.blocks.addText("thinking", event.text)
      case "tool_call":
        return this.blocks.addCall(event)
      case "citation":
        return this.blocks.addCitation(event.citation)
      case "finish":
        this.stop = encodeStop(event.reason, event.stopSequence)
        return this.blocks.end()
      default:
        return ""
    }
  }
}

export const messages: ChatDialect = {
  path: servedPath(createMessage),
  idPrefix: "msg",
  canReduceHold: true,
  namesUserInMetadata: true,
  idHeader: messagesIdHeader,
  decode: decodeMessagesBody,
  encodeAnswer: messageJson,
  encoder: (answerHead, request) => new MessagesEncoder(answerHead, showsThinking(request)),
  fieldNames: messagesFieldNames,
  encodeError: encodeMessagesError
}

/** The maximum of concurrent token counts per organization. Counts are free, but need time and memory. */
const maxConcurrentCounts = 2
/** The maximum of waiting token counts per organization. Agents send some dozens in parallel. */
const maxWaitingCounts = 64

/** Counts tokens for free: without a hold, a charge or a row in the request log. */
export const countTokensEndpoint = Effect.gen(function* () {
  const chat = yield* ChatCompletions
  const readTask = yield* makeTaskReader
  const withPermitOf = makeBoundedKeyedSemaphore(maxConcurrentCounts, maxWaitingCounts)

  const count = (admission: Admission) =>
    Effect.flatMap(readTask(messages, admission), (task) =>
      Effect.zipRight(admission.checkFunds, chat.countTokens(task))
    )

  const endpoint: Endpoint = {
    path: servedPath(countTokens),
    surface: "chat",
    admitsWithHold: false,
    idHeader: messages.idHeader,
    encodeError: encodeMessagesError,
    handle: (admission) => {
      const { departure, headers, record } = admission
      record.add({ type: "unlogged" })
      const counting = departure.interruptOnLeave(withPermitOf(record.facts.caller.org)(count(admission)))
      return Effect.flatMap(counting, (exit) =>
        departure.hasLeft && Exit.isInterrupted(exit)
          ? Effect.succeed(undefined)
          : Effect.map(exit, (tokens) => json(200, { input_tokens: tokens }, headers()))
      )
    }
  }
  return endpoint
})
