import { Predicate } from "effect"
import type { ChatEvent, Usage } from "../../domain/Chat.ts"
import type { ChatDecoder } from "../chat/ChatStream.ts"
import { asFields, asList, type Fields } from "../client/Json.ts"
import { decodeFinish, decodeUsage, isBreak, reasoningOf, textOf } from "./Response.ts"
import * as ToolCalls from "./ToolCalls.ts"

/** Decodes `chat.completion.chunk` events. Finish and usage come last, once the stream is known to be whole. */
export const makeDecoder = (newId: () => string): ChatDecoder => {
  const calls = ToolCalls.make(newId)
  let reason: string | undefined
  let usage: Usage | undefined
  let hasText = false
  let hasRefusal = false

  const takeDelta = (delta: Fields, out: Array<ChatEvent>) => {
    const reasoning = reasoningOf(delta)
    if (reasoning !== "") out.push({ type: "reasoning", text: reasoning })
    const text = textOf(delta.content)
    const refusal = hasText ? "" : textOf(delta.refusal)
    if (text !== "") {
      hasText = true
      out.push({ type: "content", text })
    } else if (refusal !== "") {
      hasRefusal = true
      out.push({ type: "content", text: refusal })
    }
    for (const fragment of asList(delta.tool_calls)) calls.take(fragment, out)
  }

  return {
    take: (chunk, out) => {
      usage = decodeUsage(chunk.usage) ?? usage
      const choice = asList(chunk.choices)[0]
      if (!Predicate.isRecord(choice)) return undefined
      usage = decodeUsage(choice.usage) ?? usage
      if (isBreak(choice.finish_reason)) return `finish_reason ${String(choice.finish_reason)}`
      takeDelta(asFields(choice.delta), out)
      if (typeof choice.finish_reason === "string" && choice.finish_reason !== "") reason = choice.finish_reason
      return undefined
    },
    finish: (out) => {
      if (reason === undefined) return undefined
      if (!calls.close(out)) return "a tool call without a name"
      out.push({ type: "finish", reason: decodeFinish(reason, { calls: calls.some, refusal: hasRefusal }) })
      if (usage !== undefined) out.push({ type: "usage", usage })
      return "whole"
    },
    usage: () => usage
  }
}
