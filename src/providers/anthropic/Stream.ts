import type { ChatEvent } from "../../domain/Chat.ts"
import type { ChatDecoder, StreamOutcome } from "../chat/ChatStream.ts"
import { asFields, asText, type Fields } from "../client/Json.ts"
import { decodeCallHead, decodeFinish, decodeUsage, inputText } from "./Response.ts"

interface Call {
  readonly index: number
  /** The input of the block's start: it counts where no piece follows. */
  readonly input: string
  isEmpty: boolean
}

/** The usage of the prompt is passed on at the start as well, for streams that are cut short. */
export const makeDecoder = (newId: () => string): ChatDecoder => {
  const calls = new Map<unknown, Call>()
  let callCount = 0
  let reason: unknown
  let counts: Fields = {}
  let isRecounted = false

  const openBlock = (index: unknown, block: Fields, out: Array<ChatEvent>): StreamOutcome => {
    if (block.type !== "tool_use") return takeDelta({ ...block, type: `${String(block.type)}_delta` }, undefined, out)
    const call = decodeCallHead(block, newId)
    if (call === undefined) return "a tool call without a name"
    calls.set(index, { index: callCount, input: inputText(block.input) || "{}", isEmpty: true })
    out.push({ type: "tool_call", index: callCount, ...call, arguments: "" })
    callCount++
    return undefined
  }

  const takeDelta = (delta: Fields, call: Call | undefined, out: Array<ChatEvent>): undefined => {
    const text = asText(delta.text)
    const thinking = asText(delta.thinking)
    const json = asText(delta.partial_json)
    if (delta.type === "text_delta" && text !== "") out.push({ type: "content", text })
    else if (delta.type === "thinking_delta" && thinking !== "") out.push({ type: "reasoning", text: thinking })
    else if (delta.type === "input_json_delta" && json !== "" && call !== undefined) {
      call.isEmpty = false
      out.push({ type: "tool_call", index: call.index, arguments: json })
    }
  }

  const closeBlock = (index: unknown, out: Array<ChatEvent>): undefined => {
    const call = calls.get(index)
    if (call?.isEmpty === true) out.push({ type: "tool_call", index: call.index, arguments: call.input })
    calls.delete(index)
  }

  /** Counts are those so far, not those since the last: what is given replaces what was. */
  const count = (given: unknown): undefined => {
    const known = Object.entries(asFields(given)).filter(([, value]) => value !== null)
    counts = { ...counts, ...Object.fromEntries(known) }
  }

  const pushUsage = (out: Array<ChatEvent>): undefined => {
    const usage = decodeUsage(counts)
    if (usage !== undefined) out.push({ type: "usage", usage })
  }

  const closeMessage = (out: Array<ChatEvent>): StreamOutcome => {
    if (reason === undefined) return "message_stop without a stop_reason"
    for (const index of calls.keys()) closeBlock(index, out)
    out.push({ type: "finish", reason: decodeFinish(reason, callCount > 0) })
    pushUsage(out)
    return "whole"
  }

  return {
    take: (event, out) => {
      switch (event.type) {
        case "message_start":
          count(asFields(event.message).usage)
          // Of the output only `message_delta` knows: a stream without one is counted by the gateway.
          counts = { ...counts, output_tokens: 0 }
          return pushUsage(out)
        case "content_block_start":
          return openBlock(event.index, asFields(event.content_block), out)
        case "content_block_delta":
          return takeDelta(asFields(event.delta), calls.get(event.index), out)
        case "content_block_stop":
          return closeBlock(event.index, out)
        case "message_delta":
          reason = asFields(event.delta).stop_reason ?? reason
          isRecounted = true
          return count(event.usage)
        case "message_stop":
          return closeMessage(out)
        default:
          return undefined
      }
    },
    usage: () => (isRecounted ? decodeUsage(counts) : undefined)
  }
}
