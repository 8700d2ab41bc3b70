import { Predicate } from "effect"
import type { ChatEvent } from "../../domain/Chat.ts"
import type { ProviderAccount } from "../../domain/Model.ts"
import { ProviderFailure } from "../../services/routing/Provider.ts"
import type { ChatDecoder } from "../chat/ChatStream.ts"
import { malformed, parse } from "../client/Classification.ts"
import { finishOf, inputText, type NewId, opened, textIn, usageOf } from "./Answer.ts"
import { failureOf } from "./Failure.ts"

interface Call {
  readonly index: number
  /** What the block brought along at its start: it counts where no piece follows. */
  readonly input: string
  empty: boolean
}

type Fields = Readonly<Record<string, unknown>>

const fieldsOf = (value: unknown): Fields => (Predicate.isRecord(value) ? value : {})

/**
 * Reads the events of one message. Its finish is told once `message_stop` has said that it is whole, and its usage after
 * that; that of the prompt at the start as well, for streams that are cut short.
 */
export const decoder = (account: ProviderAccount, newId: NewId): ChatDecoder => {
  const calls = new Map<unknown, Call>()
  let counted = 0
  let reason: unknown
  let usage: Fields = {}
  let recounted = false
  let heard = false

  const broken = (what: string) => malformed(account, 200, what)

  const start = (index: unknown, block: Fields, out: Array<ChatEvent>): ProviderFailure | undefined => {
    if (block.type !== "tool_use") return part({ ...block, type: `${String(block.type)}_delta` }, undefined, out)
    const call = opened(block, newId)
    if (call === undefined) return broken("a tool call without a name")
    calls.set(index, { index: counted, input: inputText(block.input) || "{}", empty: true })
    out.push({ type: "tool_call", index: counted, ...call, arguments: "" })
    counted++
    return undefined
  }

  const part = (delta: Fields, call: Call | undefined, out: Array<ChatEvent>): undefined => {
    const text = textIn(delta.text)
    const thinking = textIn(delta.thinking)
    const json = textIn(delta.partial_json)
    if (delta.type === "text_delta" && text !== "") out.push({ type: "content", text })
    else if (delta.type === "thinking_delta" && thinking !== "") out.push({ type: "reasoning", text: thinking })
    else if (delta.type === "input_json_delta" && json !== "" && call !== undefined) {
      call.empty = false
      out.push({ type: "tool_call", index: call.index, arguments: json })
    }
  }

  const close = (index: unknown, out: Array<ChatEvent>): undefined => {
    const call = calls.get(index)
    if (call?.empty === true) out.push({ type: "tool_call", index: call.index, arguments: call.input })
    calls.delete(index)
  }

  /** Counts are those so far, not those since the last: what is given replaces what was. */
  const count = (given: unknown): undefined => {
    const known = Object.entries(fieldsOf(given)).filter(([, value]) => value !== null)
    usage = { ...usage, ...Object.fromEntries(known) }
  }

  const tell = (out: Array<ChatEvent>): undefined => {
    const told = usageOf(usage)
    if (told !== undefined) out.push({ type: "usage", usage: told })
  }

  const whole = (out: Array<ChatEvent>): ProviderFailure | "whole" => {
    if (reason === undefined) return broken("message_stop without a stop_reason")
    for (const index of calls.keys()) close(index, out)
    out.push({ type: "finish", reason: finishOf(reason, counted > 0) })
    tell(out)
    return "whole"
  }

  const step = (said: Fields, out: Array<ChatEvent>): ProviderFailure | "whole" | undefined => {
    switch (said.type) {
      case "message_start":
        count(fieldsOf(said.message).usage)
        // Of the output only `message_delta` knows: a stream without one is counted by the gateway.
        usage = { ...usage, output_tokens: 0 }
        return tell(out)
      case "content_block_start":
        return start(said.index, fieldsOf(said.content_block), out)
      case "content_block_delta":
        return part(fieldsOf(said.delta), calls.get(said.index), out)
      case "content_block_stop":
        return close(said.index, out)
      case "message_delta":
        reason = fieldsOf(said.delta).stop_reason ?? reason
        recounted = true
        return count(said.usage)
      case "message_stop":
        return whole(out)
      default:
        return undefined
    }
  }

  return {
    take: ({ data, event }, out) => {
      const said = parse(data)
      if (!Predicate.isRecord(said)) return broken("an event that is no message's")
      if (event === "error" || said.type === "error" || Predicate.isRecord(said.error)) {
        // A body has no headers of its own, hence no Retry-After that would need the time.
        return failureOf(account, { status: 200, headers: {}, body: data }, 0)
      }
      const outcome = step(said, out)
      // From the host's first event on its work is paid for, so even one without output is told.
      if (!heard && outcome === undefined && out.length === 0) out.push({ type: "content", text: "" })
      heard = true
      return outcome
    },
    close: (_, cause) => cause ?? new ProviderFailure({ class: "network", status: 200, detail: "stream ended early" }),
    overflow: () => broken("an event is too large"),
    used: () => (recounted ? usageOf(usage) : undefined)
  }
}
