import { Either } from "effect"
import type { ChatEvent, Usage } from "../../domain/Chat.ts"
import { noUsage } from "../../domain/Pricing.ts"
import type { ProviderFailure } from "../../services/routing/Provider.ts"
import { argumentsText, eventsOf, finishOf, pushEnd, pushUnread, unreadableArguments } from "../chat/Answer.ts"
import type { ChatCall } from "../chat/ChatFormat.ts"
import type { ChatDecoder, StreamOutcome } from "../chat/ChatStream.ts"
import { UnreadBlocks } from "../chat/EndReasons.ts"
import { Sources } from "../chat/Sources.ts"
import { type StreamedCall, StreamedCalls } from "../chat/StreamedCalls.ts"
import { asFields, asList, asText, type Fields } from "../client/Json.ts"
import { withStatedCost } from "../client/StatedCost.ts"
import type { Options } from "./Options.ts"
import {
  callIdOf,
  countSearches,
  decodeAnswer,
  decodeUsage,
  errorIn,
  isCall,
  isSearch,
  isTextCall,
  knownItems,
  knownParts,
  paragraph,
  readStatus,
  takeSources,
  textIn,
  unexplainedUsage
} from "./Response.ts"

/** Deltas name their item or, where item ids change, its output position. */
const makeCallDecoder = (newId: () => string) => {
  const calls = new StreamedCalls()
  const byCallId = new Map<unknown, StreamedCall>()
  const byItem = new Map<unknown, StreamedCall>()
  const byPosition = new Map<unknown, StreamedCall>()

  const find = (item: unknown, position: unknown) => byItem.get(item) ?? byPosition.get(position)

  /** A call's item begins, or is there as a whole. */
  const takeItem = (event: Fields, item: Fields, out: Array<ChatEvent>): StreamOutcome => {
    const hasCallId = asText(item.call_id) !== ""
    const known = hasCallId ? byCallId.get(item.call_id) : find(item.id, event.output_index)
    const text = argumentsText(item.arguments ?? item.input)
    if (text === undefined) return unreadableArguments
    if (known !== undefined) return calls.restate(known, text, out)
    const name = asText(item.name)
    if (name === "") return "a tool call without a name"
    const call = calls.begin(isTextCall(item))
    if (hasCallId) byCallId.set(item.call_id, call)
    if (typeof item.id === "string") byItem.set(item.id, call)
    if (typeof event.output_index === "number") byPosition.set(event.output_index, call)
    return calls.open(call, callIdOf(item) || newId(), name, text, out)
  }

  const takePiece = (event: Fields, piece: unknown, out: Array<ChatEvent>): StreamOutcome => {
    const call = find(event.item_id, event.output_index)
    const text = argumentsText(piece)
    if (call === undefined) return "arguments of a call that never began"
    if (text === undefined) return unreadableArguments
    return calls.append(call, text, out)
  }

  const takeEnd = (event: Fields, out: Array<ChatEvent>): StreamOutcome => {
    const call = find(event.item_id, event.output_index)
    const text = argumentsText(event.arguments ?? event.input)
    if (text === undefined) return unreadableArguments
    return call === undefined ? undefined : calls.restate(call, text, out)
  }

  /** Takes the calls that only the whole response has, and the rest of those that it alone completes. */
  const takeOutput = (output: ReadonlyArray<unknown>, out: Array<ChatEvent>): StreamOutcome => {
    const items = output.map((item, output_index): Fields => ({ ...asFields(item), output_index }))
    const given = items.filter(isCall)
    for (const item of given) {
      const known = byCallId.get(item.call_id)
      const isLeft = known === undefined ? find(item.id, item.output_index) === undefined : !known.isComplete
      const broken = isLeft ? takeItem(item, item, out) : undefined
      if (broken !== undefined) return broken
    }
    return undefined
  }

  return { calls, takeItem, takePiece, takeEnd, takeOutput }
}

/** `isShort`: the gateway can count the prompt. */
export const makeDecoder = (
  call: Pick<ChatCall<Options>, "native" | "newId" | "options">,
  isShort: boolean,
  failureIn: (error: Fields) => ProviderFailure
): ChatDecoder => {
  const { newId, options } = call
  const { calls, takeEnd, takeItem, takeOutput, takePiece } = makeCallDecoder(newId)
  const unreadBlocks = new UnreadBlocks()
  // Reasoning or a search, which the stream does not show in full.
  let hasHidden = false
  let hasText = false
  let hasRefusal = false
  const sources = new Sources(call.native !== undefined)
  /** Where the present part of the content begins, at which its annotations count. */
  let partStart = 0
  let length = 0
  let part: unknown
  let partOutput: unknown
  let reasoningPart: string | undefined
  let usage: Usage | undefined
  let searches = 0

  const pushText = (text: string, out: Array<ChatEvent>) => {
    if (text !== "") out.push({ type: "content", text })
    return text !== ""
  }

  const takeText = (event: Fields, out: Array<ChatEvent>) => {
    const text = asText(event.delta)
    if (event.content_index !== part || event.output_index !== partOutput) {
      part = event.content_index
      partOutput = event.output_index
      partStart = length
    }
    length += text.length
    hasText = pushText(text, out) || hasText
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

  const end = (event: Fields, out: Array<ChatEvent>): StreamOutcome => {
    const response = asFields(event.response)
    const counted = decodeUsage(response.usage, Math.max(searches, countSearches(response.output)))
    usage = withStatedCost(counted, response, options)
    const error = event.type === "response.failed" ? response : errorIn(response)
    if (error !== undefined) return failureIn(error)
    const status = event.type === "response.incomplete" ? "incomplete" : response.status
    const { finish, isBreak, unread } = readStatus(status, asFields(response.incomplete_details).reason)
    if (isBreak) return `a response that ended ${asText(response.status)}`
    if (!hasText && !hasRefusal && !calls.hasAny && Array.isArray(response.output)) {
      const answer = decodeAnswer(response, newId, call)
      if (Either.isLeft(answer)) return answer.left
      const reasoning = reasoningPart === undefined ? answer.right.reasoning : undefined
      out.push(...eventsOf({ ...answer.right, usage, reasoning }))
      return "whole"
    }
    if (!hasText && !hasRefusal) pushText(textIn(response.output), out)
    takeSources(response.output, sources, out)
    const broken = takeOutput(asList(response.output), out) ?? calls.close(out)
    if (broken !== undefined) return broken
    unreadBlocks.take(asList(response.output), knownItems, out)
    pushUnread(out, unread, unexplainedUsage(response.usage))
    return pushEnd(out, finishOf(finish, { ...calls.ended, isRefusal: hasRefusal }), usage)
  }

  const take = (event: Fields, out: Array<ChatEvent>): StreamOutcome => {
    switch (event.type) {
      case "response.output_text.delta":
        takeText(event, out)
        return undefined
      case "response.output_text.annotation.added":
        sources.takeAnnotations([event.annotation], partStart, out)
        return undefined
      case "response.refusal.delta":
        hasRefusal = pushText(asText(event.delta), out) || hasRefusal
        return undefined
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        pushReasoning(event, out)
        return undefined
      case "response.output_item.added":
      case "response.output_item.done": {
        const item = asFields(event.item)
        if (isCall(item)) return takeItem(event, item, out)
        if (item.type !== "message") hasHidden = true
        if (event.type === "response.output_item.done") {
          unreadBlocks.take([item], knownItems, out)
          if (item.type === "message") unreadBlocks.take(asList(item.content), knownParts, out)
        }
        if (event.type === "response.output_item.done" && isSearch(item)) {
          searches += 1
          out.push({ type: "usage", usage: { ...noUsage, webSearches: searches } })
        }
        return undefined
      }
      case "response.function_call_arguments.delta":
      case "response.custom_tool_call_input.delta":
        return takePiece(event, event.delta, out)
      case "response.function_call_arguments.done":
      case "response.custom_tool_call_input.done":
        return takeEnd(event, out)
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
        return end(event, out)
      default:
        return undefined
    }
  }

  const begins = ({ item, output_index }: Fields) => item !== undefined || output_index !== undefined

  return { take, begins, usage: () => usage, isCountable: () => isShort && !hasHidden }
}
