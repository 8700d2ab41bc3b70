import { Either } from "effect"
import type { ChatEvent, Usage } from "../../domain/Chat.ts"
import type { ProviderFailure } from "../../services/routing/Provider.ts"
import { type ChatDecoder, eventsOf, type StreamOutcome } from "../chat/ChatStream.ts"
import { asFields, asText, type Fields } from "../client/Json.ts"
import { decodeAnswer, decodeFinish, decodeUsage, errorIn, isOver, paragraph } from "./Response.ts"
import * as ToolCalls from "./ToolCalls.ts"

/** `isShort`: the gateway can count the prompt. */
export const makeDecoder = (
  newId: () => string,
  isShort: boolean,
  failureIn: (error: Fields) => ProviderFailure
): ChatDecoder => {
  const calls = ToolCalls.make(newId)
  // Reasoning or a search, which the stream does not show in full.
  let hasHidden = false
  let hasText = false
  let hasRefusal = false
  let reasoningPart: string | undefined
  let usage: Usage | undefined

  const pushText = (text: string, out: Array<ChatEvent>) => {
    if (text !== "") out.push({ type: "content", text })
    return text !== ""
  }

  const pushReasoning = (event: Fields, out: Array<ChatEvent>) => {
    hasHidden = true
    const text = asText(event.delta)
    if (text === "") return
    const part = [event.output_index, event.summary_index, event.content_index].join(" ")
    const isNext = reasoningPart !== undefined && reasoningPart !== part
    reasoningPart = part
    out.push({ type: "reasoning", text: isNext ? paragraph + text : text })
  }

  const takeItem = (event: Fields, out: Array<ChatEvent>): StreamOutcome => {
    const item = asFields(event.item)
    if (item.type === "function_call") {
      return calls.item(event, item, out) ? undefined : "a function call without a name"
    }
    if (item.type !== "message") hasHidden = true
    return undefined
  }

  const end = (event: Fields, out: Array<ChatEvent>): StreamOutcome => {
    const response = asFields(event.response)
    usage = decodeUsage(response.usage)
    const error = event.type === "response.failed" ? response : errorIn(response)
    if (error !== undefined) return failureIn(error)
    if (!isOver(response)) return `a response that ended ${asText(response.status)}`
    if (!hasText && !hasRefusal && !calls.some && Array.isArray(response.output)) {
      const answer = decodeAnswer(response, newId)
      if (Either.isLeft(answer)) return answer.left
      const reasoning = reasoningPart === undefined ? answer.right.reasoning : undefined
      out.push(...eventsOf({ ...answer.right, reasoning }))
      return "whole"
    }
    calls.close(out)
    const status = event.type === "response.incomplete" ? "incomplete" : response.status
    const holds = { calls: calls.some, refusal: hasRefusal && !hasText }
    out.push({ type: "finish", reason: decodeFinish({ ...response, status }, holds) })
    if (usage !== undefined) out.push({ type: "usage", usage })
    return "whole"
  }

  return {
    take: (event, out) => {
      switch (event.type) {
        case "response.output_text.delta":
          hasText = pushText(asText(event.delta), out) || hasText
          return undefined
        case "response.refusal.delta":
          hasRefusal = (!hasText && pushText(asText(event.delta), out)) || hasRefusal
          return undefined
        case "response.reasoning_summary_text.delta":
        case "response.reasoning_text.delta":
          pushReasoning(event, out)
          return undefined
        case "response.output_item.added":
        case "response.output_item.done":
          return takeItem(event, out)
        case "response.function_call_arguments.delta":
          return calls.piece(event, out) ? undefined : "arguments of a call that never began"
        case "response.function_call_arguments.done":
          calls.whole(event, out)
          return undefined
        case "response.completed":
        case "response.incomplete":
        case "response.failed":
          return end(event, out)
        default:
          return undefined
      }
    },
    usage: () => usage,
    isCountable: () => isShort && !hasHidden
  }
}
