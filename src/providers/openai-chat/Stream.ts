import { Predicate } from "effect"
import type { ChatEvent, Usage } from "../../domain/Chat.ts"
import { finishOf, type StreamedCall, StreamedCalls } from "../chat/Answer.ts"
import type { ChatDecoder } from "../chat/ChatStream.ts"
import { asFields, asList, asText, type Fields } from "../client/Json.ts"
import { argumentsOf, decodeUsage, finishReason, isBreak, textOf } from "./Response.ts"

interface Call {
  readonly call: StreamedCall
  /** Fragments without an index find their call by the host's id. */
  readonly hostId: string | undefined
  /** Arguments that came before the name. */
  early: string
}

/** Hosts count calls from 0, repeat one index, or send none: a name with a new id opens a call. */
const makeCallDecoder = (newId: () => string) => {
  const calls = new StreamedCalls()
  const byHostIndex = new Map<number, Call>()
  const byHostId = new Map<string, Call>()
  let last: Call | undefined

  const find = (index: unknown, id: string | undefined, isNamed: boolean): Call | undefined => {
    if (id !== undefined) {
      const known = byHostId.get(id)
      if (known !== undefined) return known
      return !isNamed && typeof index === "number" ? byHostIndex.get(index) : undefined
    }
    if (typeof index === "number") return byHostIndex.get(index)
    return isNamed ? undefined : last
  }

  const begin = (index: unknown, hostId: string | undefined): Call => {
    last = { call: calls.begin(), hostId, early: "" }
    if (typeof index === "number") byHostIndex.set(index, last)
    if (hostId !== undefined) byHostId.set(hostId, last)
    return last
  }

  const take = (fragment: unknown, out: Array<ChatEvent>): void => {
    if (!Predicate.isRecord(fragment)) return
    const part = asFields(fragment.function)
    const id = asText(fragment.id) || undefined
    const name = asText(part.name)
    const found = find(fragment.index, id, name !== "") ?? begin(fragment.index, id)
    const text = argumentsOf(part.arguments)
    if (found.call.isOpen) calls.append(found.call, text, out)
    else if (name === "") found.early += text
    else calls.open(found.call, found.hostId ?? newId(), name, found.early + text, out)
  }

  return { calls, take }
}

/** Finish and usage come last, once the stream is complete. */
export const makeDecoder = (newId: () => string): ChatDecoder => {
  const { calls, take: takeCall } = makeCallDecoder(newId)
  let reason: string | undefined
  let usage: Usage | undefined
  let hasText = false
  let isRefusal = false

  const takeDelta = (delta: Fields, out: Array<ChatEvent>) => {
    const reasoning = textOf(delta.reasoning_content) || textOf(delta.reasoning)
    if (reasoning !== "") out.push({ type: "reasoning", text: reasoning })
    const text = textOf(delta.content)
    const refusal = hasText ? "" : textOf(delta.refusal)
    if (text !== "") {
      hasText = true
      out.push({ type: "content", text })
    } else if (refusal !== "") {
      isRefusal = true
      out.push({ type: "content", text: refusal })
    }
    for (const fragment of asList(delta.tool_calls)) takeCall(fragment, out)
  }

  return {
    take: (chunk, out) => {
      usage = decodeUsage(chunk.usage) ?? usage
      const choice = asList(chunk.choices)[0]
      if (!Predicate.isRecord(choice)) return undefined
      usage = decodeUsage(choice.usage) ?? usage
      if (isBreak(choice.finish_reason)) return `finish_reason ${String(choice.finish_reason)}`
      takeDelta(asFields(choice.delta), out)
      reason = asText(choice.finish_reason) || reason
      return undefined
    },
    finish: (out) => {
      if (reason === undefined) return undefined
      if (!calls.close(out)) return "a tool call without a name"
      out.push({ type: "finish", reason: finishOf(finishReason(reason), calls.hasAny, isRefusal) })
      if (usage !== undefined) out.push({ type: "usage", usage })
      return "whole"
    },
    usage: () => usage
  }
}
