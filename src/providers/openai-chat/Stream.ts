import { Predicate } from "effect"
import type { ChatEvent, Usage } from "../../domain/Chat.ts"
import { finishOf, pushEnd, pushUsage } from "../chat/Answer.ts"
import type { ChatCall } from "../chat/ChatClient.ts"
import type { ChatDecoder, StreamOutcome } from "../chat/ChatStream.ts"
import { Sources } from "../chat/Sources.ts"
import { asFields, asList, asText, type Fields } from "../client/Json.ts"
import { withStatedCost } from "../client/StatedCost.ts"
import { makeCallDecoder } from "./Calls.ts"
import type { Options } from "./Options.ts"
import { decodeUsage, finishReason, hasLists, isBreak, stopOf, takeLists, textOf } from "./Response.ts"

/** Counts come twice from some hosts, and what they cost with the first. */
const keepStated = (counted: Usage | undefined, before: Usage | undefined): Usage | undefined => {
  if (counted === undefined || before?.statedCost === undefined || counted.statedCost !== undefined)
    return counted ?? before
  return { ...counted, statedCost: before.statedCost }
}

/** The finish comes last, once the stream is complete; usage also where it is told. */
export const makeDecoder = (call: ChatCall<Options>): ChatDecoder => {
  const { close: closeCalls, hasCalls, take: takeCall } = makeCallDecoder(call.newId, call.request.tools)
  const sources = new Sources()
  /** The last chunk with a list of sources, which some hosts repeat in every chunk. */
  let listed: Fields | undefined
  let stopSequence: string | undefined
  let reason: string | undefined
  let usage: Usage | undefined
  let hasText = false
  let isRefusal = false

  const takeDelta = (delta: Fields, out: Array<ChatEvent>): StreamOutcome => {
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
    if (delta.annotations !== undefined) sources.takeAnnotations(delta.annotations, 0, out)
    for (const fragment of asList(delta.tool_calls)) {
      const broken = takeCall(fragment, out)
      if (broken !== undefined) return broken
    }
    return undefined
  }

  return {
    take: (chunk, out) => {
      const choice = asFields(asList(chunk.choices)[0])
      const counted = decodeUsage(choice.usage, call) ?? decodeUsage(chunk.usage, call)
      usage = keepStated(withStatedCost(counted, chunk, call.options), usage)
      if (isBreak(choice.finish_reason)) return `finish_reason ${String(choice.finish_reason)}`
      const finished = asText(choice.finish_reason)
      reason = finished || reason
      if (finished !== "") stopSequence = stopOf(choice, call.request.stop) ?? stopSequence
      if (hasLists(chunk)) listed = chunk
      if (counted !== undefined || finished !== "") pushUsage(out, usage, reason === undefined)
      return takeDelta(asFields(choice.delta), out)
    },
    finish: (out) => {
      if (reason === undefined) return undefined
      if (listed !== undefined) takeLists(listed, sources, out)
      return (
        closeCalls(out) ?? pushEnd(out, finishOf(finishReason(reason), hasCalls(), isRefusal), usage, { stopSequence })
      )
    },
    begins: ({ choices }) => Predicate.isRecord(asList(choices)[0]),
    usage: () => usage
  }
}
