import { type ChatEvent, callIdOnWire, type FinishReason, type Usage, unsigned } from "../../domain/Chat.ts"
import { stringify } from "../../domain/JsonSource.ts"
import { noUsage } from "../../domain/Pricing.ts"
import { isObject, type JsonObject } from "../body/Guards.ts"
import type { AnswerName } from "../chat/ChatDialect.ts"
import { reportedUsage } from "../chat/ReportedUsage.ts"
import { frame, nameOf, type StreamEncoder } from "../chat/Sse.ts"
import type { Envelope } from "../errors/ErrorMessages.ts"
import { billedUsage, stopReasons, usageJson } from "./Answer.ts"
import { messagesError } from "./Errors.ts"

const frameOf = (event: JsonObject): string => frame(String(event.type), stringify(event))

const unset = { stop_sequence: null, stop_details: null, container: null }

const messageStop = frame("message_stop", `{"type":"message_stop"}`)

/** A host may tell its end in parts. */
const merge = (before: unknown, now: unknown): JsonObject => ({
  ...(isObject(before) && before),
  ...(isObject(now) && now)
})

type CallEvent = Extract<ChatEvent, { readonly type: "tool_call" }>
type BlockKind = "text" | "thinking"

const openings: Readonly<Record<BlockKind, string>> = {
  text: `{"type":"text","text":""}`,
  thinking: `{"type":"thinking","thinking":"","signature":""}`
}

/** Concatenates around the text, so that a delta costs one string. A host's own events pass; the last two wait for the charge. */
export class MessagesEncoder implements StreamEncoder {
  private opened = false
  private isNative = false
  private lastNative = ""
  private messageDelta: JsonObject | undefined
  private next = 0
  private open: BlockKind | "tool_use" | undefined
  private head = ""
  private readonly calls = new Map<number, number>()
  private reason: FinishReason = "stop"
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
    const before = (this.opened ? "" : this.start([])) + this.close()
    const delta = { stop_reason: stopReasons[this.reason], ...unset }
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
        return event.text === "" ? "" : this.delta("text", event.text)
      case "reasoning":
        return event.text === "" || !this.showsThinking ? "" : this.delta("thinking", event.text)
      case "tool_call":
        return this.call(event)
      case "finish":
        this.reason = event.reason
        return this.close()
      default:
        return ""
    }
  }

  private delta(kind: BlockKind, text: string): string {
    const opening = this.open === kind ? "" : this.begin(kind, openings[kind])
    return `${opening}${this.head}${JSON.stringify(text)}}}\n\n`
  }

  private call({ arguments: text, id, index, name, signature }: CallEvent): string {
    let opening = ""
    if (!this.calls.has(index)) {
      const onWire = callIdOnWire(id ?? `call_${index}`, signature)
      const block = { type: "tool_use", id: onWire, name: name ?? "", input: {} }
      opening = this.begin("tool_use", JSON.stringify(block))
      this.calls.set(index, this.next - 1)
    }
    return text === ""
      ? opening
      : `${opening}${deltaHead(this.calls.get(index), "tool_use")}${JSON.stringify(text)}}}\n\n`
  }

  private begin(kind: BlockKind | "tool_use", block: string): string {
    const closing = this.close()
    const index = this.next++
    this.open = kind
    this.head = deltaHead(index, kind)
    return (
      closing + frame("content_block_start", `{"type":"content_block_start","index":${index},"content_block":${block}}`)
    )
  }

  private close(): string {
    if (this.open === undefined) return ""
    const index = this.next - 1
    const signed =
      this.open === "thinking"
        ? frameOf({ type: "content_block_delta", index, delta: { type: "signature_delta", signature: unsigned } })
        : ""
    this.open = undefined
    return signed + frame("content_block_stop", `{"type":"content_block_stop","index":${index}}`)
  }
}

const deltas = {
  text: `"type":"text_delta","text":`,
  thinking: `"type":"thinking_delta","thinking":`,
  tool_use: `"type":"input_json_delta","partial_json":`
} as const

const deltaHead = (index: number | undefined, kind: keyof typeof deltas): string =>
  `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{${deltas[kind]}`
