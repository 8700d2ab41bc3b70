/** `replyOf`: what a host answers in a case, on its wire, whole or streamed. */

import { Predicate } from "effect"
import type { Answer } from "../contracts/ChatHarness.ts"
import { type ChatWire, record } from "../contracts/ChatHosts.ts"
import { event as anthropicEvent } from "../providers/anthropic/Wire.ts"
import { chunk } from "../providers/openai-chat/Wire.ts"
import type { Call, ChatWireName, RawReply, Reply, Usage, Wire } from "./Case.ts"
import { write } from "./Exact.ts"

export interface Bytes {
  readonly status: number
  readonly type: string
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  /** The connection breaks after the text. */
  readonly cut: boolean
}

export const usageOf = ({
  cache_write = 0,
  cache_write_hour,
  cached = 0,
  completion = 0,
  prompt = 0,
  reasoning = 0
}: Usage): NonNullable<Answer["usage"]> => {
  return { prompt, completion, cached, cacheWrite: cache_write, cacheWriteHour: cache_write_hour, reasoning }
}

const defaults = { prompt: 40, completion: 9 }
export const usageIn = ({ usage = defaults }: Reply): Usage => usage

/** How the vendor writes an ending. */
const fields: Readonly<Record<ChatWireName, { readonly finish: string; readonly usage: string }>> = {
  "openai-chat": { finish: "finish_reason", usage: "usage" },
  "openai-responses": { finish: "status", usage: "usage" },
  anthropic: { finish: "stop_reason", usage: "usage" },
  gemini: { finish: "finishReason", usage: "usageMetadata" }
}

/** The same JSON with the vendor's own finish reason and usage, wherever it has one. */
const override = (value: unknown, wire: ChatWireName, raw: RawReply): unknown => {
  if (Array.isArray(value)) return value.map((item) => override(item, wire, raw))
  if (!Predicate.isRecord(value)) return value
  const { finish, usage } = fields[wire]
  return Object.fromEntries(
    Object.entries(value).map(([key, field]) => {
      if (key === finish && raw.finish !== undefined && field !== null) return [key, raw.finish]
      if (key === usage && raw.usage !== undefined && field !== null) return [key, raw.usage]
      return [key, override(field, wire, raw)]
    })
  )
}

const overrideEvent = (event: string, wire: ChatWireName, raw: RawReply): string =>
  event.replace(
    /^data: (\{.*\})$/m,
    (_, data: string) => `data: ${JSON.stringify(override(JSON.parse(data), wire, raw))}`
  )

export const callId = ({ id }: Call, index: number): string => id ?? `call_${index}`

const answerOf = (reply: Reply, toolNames: ReadonlyArray<string>, given: (text: string) => string): Answer => {
  const { calls, finish, reasoning, text } = reply
  return {
    content: text,
    reasoning,
    finish: finish ?? (calls === undefined ? "stop" : "tool_calls"),
    usage: usageOf(usageIn(reply)),
    ...(calls !== undefined && {
      toolCalls: calls.map((call, index) => ({
        id: callId(call, index),
        name: call.name ?? toolNames[call.tool ?? 0] ?? "no such tool",
        arguments: given(call.arguments ?? "{}")
      }))
    })
  }
}

/** An answer in no vendor's words, as the wire's own encoder writes it, with the arguments digit for digit. */
const neutral = (
  wire: ChatWire,
  adapter: ChatWireName,
  reply: Reply,
  toolNames: ReadonlyArray<string>,
  stream: boolean
) => {
  const raw = reply[adapter] ?? {}
  const isText = adapter === "openai-chat" || adapter === "openai-responses" || (adapter === "anthropic" && stream)
  const kept: Array<string> = []
  const mark = (text: string) => JSON.stringify({ "@raw": kept.push(text) - 1 })
  const answer = answerOf(reply, toolNames, isText ? (text) => text : mark)
  const { body, end, opening, output } = wire.encode(answer)
  const restore = (text: string) => text.replace(/\{"@raw":(\d+)\}/g, (_, index: string) => kept[Number(index)] ?? "")
  if (!stream) return restore(JSON.stringify(override(body, adapter, raw)))
  const events = [...opening, ...output, ...(raw.cut === true || reply.cut === true ? [] : end)]
  return restore(events.map((event) => overrideEvent(event, adapter, raw)).join(""))
}

/** A raw event: text as it stands, an object as data; on openai-chat `delta` stands for a chunk with it. */
const eventText = (wire: Wire, event: unknown): string => {
  if (typeof event === "string") return event.endsWith("\n") ? event : `${event}\n\n`
  const data = record(event)
  if (wire === "openai-chat" && "delta" in data) {
    const { delta, finish_reason, ...more } = data
    return chunk(delta, typeof finish_reason === "string" ? finish_reason : null, more)
  }
  const text = write(data)
  if (wire === "anthropic") return anthropicEvent({ type: "", ...data }).replace(/^data: .*$/m, () => `data: ${text}`)
  return wire === "openai-responses" ? `event: ${String(data.type)}\ndata: ${text}\n\n` : `data: ${text}\n\n`
}

/** Whether a reply says what the host answers to a request of this kind. */
export const hasReply = (reply: Reply, wire: Wire, stream: boolean): boolean => {
  const raw = reply[wire]
  const isNeutral =
    reply.text !== undefined || reply.calls !== undefined || reply.refuse !== undefined || reply.reasoning !== undefined
  if (isNeutral || reply.finish !== undefined) return true
  if (raw === undefined) return false
  if (raw.status !== undefined && raw.status !== 200) return true
  return stream ? raw.events !== undefined : raw.body !== undefined
}

export const replyOf = (
  wire: ChatWire,
  adapter: ChatWireName,
  reply: Reply,
  toolNames: ReadonlyArray<string>,
  stream: boolean
): Bytes => {
  const raw = reply[adapter] ?? {}
  const cut = raw.cut === true || reply.cut === true
  if (reply.refuse !== undefined) {
    const { body, headers = {}, status } = wire.refuse(reply.refuse)
    return { status, type: "application/json", headers, text: JSON.stringify(body), cut: false }
  }
  const { headers = {}, status = 200 } = raw
  const isStream = stream && status === 200 && !(raw.events === undefined && raw.body !== undefined)
  const type = isStream ? "text/event-stream" : "application/json"
  const substitute = (text: string) =>
    text.replace(/\$tool(\d+)/g, (_, index: string) => toolNames[Number(index)] ?? "no such tool")
  if (isStream && raw.events !== undefined) {
    const text = raw.events.map((event) => eventText(adapter, event)).join("")
    return { status, type, headers, text: substitute(text), cut }
  }
  if (!isStream && raw.body !== undefined) {
    const text = typeof raw.body === "string" ? raw.body : write(raw.body)
    return { status, type, headers, text: substitute(text), cut }
  }
  return { status, type, headers, text: neutral(wire, adapter, reply, toolNames, isStream), cut }
}

/** The reply of a host that no chat reaches. */
export const plainReply = (reply: RawReply | undefined): Bytes => {
  const { body, headers = {}, status = 200 } = reply ?? {}
  const text = typeof body === "string" ? body : write(body)
  return { status, type: "application/json", headers, text, cut: reply?.cut === true }
}
