import { callIdOnWire, unsigned } from "../../domain/CallId.ts"
import type { ChatEvent, Citation, Usage } from "../../domain/Chat.ts"
import { JsonScanner } from "../../domain/JsonScanner.ts"
import { stringify } from "../../domain/JsonSource.ts"
import { noUsage } from "../../domain/Pricing.ts"
import { isObject, type JsonObject } from "../body/Guards.ts"
import { reportedUsage } from "../chat/ChatCompletionsDialect.ts"
import type { AnswerName } from "../chat/ChatDialect.ts"
import { frame, nameOf, type StreamEncoder } from "../chat/Sse.ts"
import type { Envelope } from "../errors/ErrorMessages.ts"
import { billedUsage, citationJson, endOf, usageJson } from "./MessagesAnswer.ts"
import { messagesError } from "./MessagesErrors.ts"

const frameOf = (event: JsonObject): string => frame(String(event.type), stringify(event))

type CallEvent = Extract<ChatEvent, { readonly type: "tool_call" }>
type TextKind = "text" | "thinking"

interface WaitingText {
  readonly kind: TextKind
  text: string
  readonly citations: Array<Citation>
}

interface WaitingCall {
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

/** In characters. No model writes more; `StreamOutput` has the same limit. */
const maxWaiting = 16_000_000

/**
 * Writes the blocks of a stream, of which one is open at a time: clients run a call when its block stops. Other blocks
 * wait, in the order of their first events, until the arguments of the open call are complete JSON or the stream ends.
 */
class BlockStream {
  private count = 0
  private open: TextKind | "tool_use" | undefined
  private openCall: number | undefined
  private head = ""
  private scanner = new JsonScanner()
  private readonly waiting: Array<WaitingText | WaitingCall> = []
  private waitingCharacters = 0
  private readonly waitingCalls = new Map<number, WaitingCall>()
  private readonly begunCalls = new Set<number>()
  /** Sources that came while no text was open. */
  private citations: Array<Citation> = []

  /** `text` is not empty. */
  text(kind: TextKind, text: string): string {
    if (this.open === kind) return this.delta(text)
    if (!this.mustWait()) return this.begin(kind, openings[kind]) + this.delta(text)
    const last = this.waiting.at(-1)
    if (last?.kind === kind) last.text += text
    else this.waiting.push({ kind, text, citations: this.takeCitations(kind) })
    return this.hold(text)
  }

  /** A piece of a call whose block has stopped is dropped: its arguments were complete. */
  call(event: CallEvent): string {
    const { arguments: text, index } = event
    if (index === this.openCall) return this.piece(text) + this.release(false)
    const waiting = this.waitingCalls.get(index)
    if (waiting !== undefined) {
      waiting.text += text
      return this.hold(text)
    }
    if (this.begunCalls.has(index)) return ""
    if (!this.mustWait()) return this.beginCall(event, text)
    const block: WaitingCall = { kind: "tool_use", text, call: event }
    this.waiting.push(block)
    this.waitingCalls.set(index, block)
    return this.hold(text)
  }

  /** The source belongs to the open text, or else to the next one. */
  citation(citation: Citation): string {
    if (this.open === "text") return this.citationDelta(citation)
    const last = this.waiting.at(-1)
    const list = last?.kind === "text" ? last.citations : this.citations
    list.push(citation)
    return ""
  }

  /** Writes the waiting blocks, and stops the last one. */
  end(): string {
    const released = this.release(true)
    const sources = this.citations.length === 0 ? "" : this.begin("text", openings.text)
    return released + sources + this.close()
  }

  private hold(text: string): string {
    this.waitingCharacters += text.length
    return this.waitingCharacters > maxWaiting ? this.release(true) : ""
  }

  private mustWait(): boolean {
    return this.open === "tool_use" && this.scanner.state !== "complete"
  }

  private release(isEnd: boolean): string {
    if (this.waiting.length === 0) return ""
    let text = ""
    let released = 0
    for (const block of this.waiting) {
      if (!isEnd && this.mustWait()) break
      released++
      this.waitingCharacters -= block.text.length
      text += this.write(block)
    }
    this.waiting.splice(0, released)
    return text
  }

  private write(block: WaitingText | WaitingCall): string {
    if (block.kind === "tool_use") {
      this.waitingCalls.delete(block.call.index)
      return this.beginCall(block.call, block.text)
    }
    let text = this.begin(block.kind, openings[block.kind]) + this.delta(block.text)
    for (const citation of block.citations) text += this.citationDelta(citation)
    return text
  }

  private beginCall({ id, index, name, signature }: CallEvent, text: string): string {
    const onWire = callIdOnWire(id ?? `call_${index}`, signature)
    const opening = this.begin(
      "tool_use",
      JSON.stringify({ type: "tool_use", id: onWire, name: name ?? "", input: {} })
    )
    this.openCall = index
    this.begunCalls.add(index)
    this.scanner = new JsonScanner()
    return opening + this.piece(text)
  }

  private piece(text: string): string {
    if (text === "") return ""
    this.scanner.take(text)
    return this.delta(text)
  }

  private delta(text: string): string {
    return `${this.head}${JSON.stringify(text)}}}\n\n`
  }

  private citationDelta(citation: Citation): string {
    const delta = { type: "citations_delta", citation: citationJson(citation) }
    return frameOf({ type: "content_block_delta", index: this.count - 1, delta })
  }

  private takeCitations(kind: TextKind): Array<Citation> {
    if (kind !== "text" || this.citations.length === 0) return []
    const taken = this.citations
    this.citations = []
    return taken
  }

  private begin(kind: TextKind | "tool_use", block: string): string {
    const closing = this.close()
    const index = this.count++
    this.open = kind
    this.head = `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{${deltas[kind]}`
    const start = `{"type":"content_block_start","index":${index},"content_block":${block}}`
    let text = closing + frame("content_block_start", start)
    if (kind === "text") for (const citation of this.takeCitations(kind)) text += this.citationDelta(citation)
    return text
  }

  private close(): string {
    if (this.open === undefined) return ""
    const index = this.count - 1
    const signed =
      this.open === "thinking"
        ? frameOf({ type: "content_block_delta", index, delta: { type: "signature_delta", signature: unsigned } })
        : ""
    this.open = undefined
    this.openCall = undefined
    return signed + frame("content_block_stop", `{"type":"content_block_stop","index":${index}}`)
  }
}

const unset = { stop_sequence: null, stop_details: null, container: null }

const messageStop = frame("message_stop", `{"type":"message_stop"}`)

/** A host may tell its end in parts. */
const merge = (before: unknown, now: unknown): JsonObject => ({
  ...(isObject(before) && before),
  ...(isObject(now) && now)
})

/** Concatenates around the text, so that a delta costs one string. A host's own events pass; the last two wait for the charge. */
export class MessagesEncoder implements StreamEncoder {
  private opened = false
  private isNative = false
  private lastNative = ""
  private messageDelta: JsonObject | undefined
  private end = endOf("stop")
  private readonly blocks = new BlockStream()
  private readonly name: AnswerName
  private readonly showsThinking: boolean

  constructor(name: AnswerName, showsThinking: boolean) {
    this.name = name
    this.showsThinking = showsThinking
  }

  encode(events: ReadonlyArray<ChatEvent>): string {
    let text = ""
    for (const event of events) {
      if (event.type === "native") text += this.native(event.event)
      else if (!this.isNative) text += this.one(event)
    }
    if (this.isNative || this.opened) return text
    return this.start(events) + text
  }

  finish(usage: Usage): string {
    if (this.isNative) {
      const { messageDelta } = this
      const counted = messageDelta && frameOf({ ...messageDelta, usage: billedUsage(messageDelta.usage, usage) })
      return (counted ?? "") + (this.lastNative || messageStop)
    }
    const before = (this.opened ? "" : this.start([])) + this.blocks.end()
    const delta = { ...unset, ...this.end }
    return before + frameOf({ type: "message_delta", delta, usage: usageJson(usage) }) + messageStop
  }

  error(body: Envelope, reason?: string): string {
    return frameOf(messagesError(body, reason))
  }

  private native(event: JsonObject): string {
    this.isNative = true
    if (nameOf(event) === undefined) return ""
    if (event.type === "message_stop") {
      this.lastNative = frameOf(event)
      return ""
    }
    if (event.type === "message_delta") {
      const { delta, usage } = this.messageDelta ?? {}
      this.messageDelta = { ...event, delta: merge(delta, event.delta), usage: merge(usage, event.usage) }
      return ""
    }
    if (event.type !== "message_start" || !isObject(event.message)) return frameOf(event)
    const { id, model } = this.name
    const usage = isObject(event.message.usage) ? reportedUsage(event.message.usage) : usageJson(noUsage)
    return frameOf({ ...event, message: { ...event.message, usage, id, model } })
  }

  /** With the prompt's counts where the host tells them so early. */
  private start(events: ReadonlyArray<ChatEvent>): string {
    this.opened = true
    const { id, model } = this.name
    const known = events.findLast((event) => event.type === "usage")?.usage ?? noUsage
    const usage = usageJson({ ...known, completion: 0, reasoning: 0 })
    const empty = { content: [], stop_reason: null, ...unset, usage }
    return frameOf({ type: "message_start", message: { id, type: "message", role: "assistant", model, ...empty } })
  }

  private one(event: Exclude<ChatEvent, { readonly type: "native" }>): string {
    switch (event.type) {
      case "content":
        return event.text === "" ? "" : this.blocks.text("text", event.text)
      case "reasoning":
        return event.text === "" || !this.showsThinking ? "" : this.blocks.text("thinking", event.text)
      case "tool_call":
        return this.blocks.call(event)
      case "citation":
        return this.blocks.citation(event.citation)
      case "finish":
        this.end = endOf(event.reason, event.stopSequence)
        return this.blocks.end()
      default:
        return ""
    }
  }
}
