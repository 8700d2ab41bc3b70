import type { ChatEvent, Usage } from "../../domain/Chat.ts"
import { noUsage } from "../../domain/Pricing.ts"
import { isObject, type JsonObject } from "../body/Guards.ts"
import type { AnswerName } from "../chat/ChatDialect.ts"
import { reportedUsage } from "../chat/ReportedUsage.ts"
import { frame, nameOf, type StreamEncoder } from "../chat/Sse.ts"
import type { Envelope } from "../errors/ErrorMessages.ts"
import { billedUsage, endOf, usageJson } from "./Answer.ts"
import { BlockStream, frameOf } from "./BlockStream.ts"
import { messagesError } from "./Errors.ts"

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
