import { Predicate } from "effect"
import type { ChatEvent } from "../../domain/Chat.ts"
import {
  argumentsText,
  askedStop,
  encodeArguments,
  finishOf,
  pushEnd,
  pushUnread,
  pushUsage,
  unreadableArguments
} from "../chat/Answer.ts"
import type { ChatCall } from "../chat/ChatFormat.ts"
import type { ChatDecoder, StreamOutcome } from "../chat/ChatStream.ts"
import { readEnd, UnreadBlocks } from "../chat/EndReasons.ts"
import { Sources } from "../chat/Sources.ts"
import { type StreamedCall, StreamedCalls } from "../chat/StreamedCalls.ts"
import { asCount, asFields, asList, asText, type Fields } from "../client/Json.ts"
import { reasons } from "./EndReasons.ts"
import type { Options } from "./Options.ts"
import { decodeUsage, isUnbilledRefusal, knownBlocks, takeCitations } from "./Response.ts"

interface CallBlock {
  readonly call: StreamedCall
  /** The block's initial input, used where no delta follows. */
  readonly input: string
}

/** Usage is passed on as it is told, for streams that are cut short. */
export const makeDecoder = ({
  native,
  newId,
  options,
  request
}: Pick<ChatCall<Options>, "native" | "newId" | "options" | "request">): Omit<ChatDecoder, "isCountable"> => {
  const unreadBlocks = new UnreadBlocks()
  const calls = new StreamedCalls()
  const blocks = new Map<unknown, CallBlock>()
  const sources = new Sources(native !== undefined)
  /** The citations of the present text block; they support all of it. */
  let citations: Array<unknown> = []
  let blockStart = 0
  let length = 0
  let stopSequence: string | undefined
  let reason: unknown
  let details: unknown
  let hasContent = false
  let counts: Fields = {}
  let searches = 0

  const openBlock = (index: unknown, block: Fields, out: Array<ChatEvent>): StreamOutcome => {
    hasContent = true
    if (!knownBlocks.has(block.type)) unreadBlocks.add(block.type, out)
    if (block.type === "server_tool_use" && block.name === "web_search") {
      searches += 1
      counts = { ...counts, server_tool_use: { web_search_requests: searches } }
      return tellUsage(out)
    }
    if (block.type === "text") {
      blockStart = length
      citations = [...asList(block.citations)]
    }
    if (block.type !== "tool_use") return takeDelta({ ...block, type: `${String(block.type)}_delta` }, undefined, out)
    const name = asText(block.name)
    if (name === "") return "a tool call without a name"
    const input = encodeArguments(block.input)
    if (input === undefined) return unreadableArguments
    const call = calls.begin()
    blocks.set(index, { call, input })
    return calls.open(call, asText(block.id) || newId(), name, "", out)
  }

  const takeDelta = (delta: Fields, block: CallBlock | undefined, out: Array<ChatEvent>): StreamOutcome => {
    const text = asText(delta.text)
    const thinking = asText(delta.thinking)
    if (delta.type === "text_delta" && text !== "") {
      length += text.length
      out.push({ type: "content", text })
    } else if (delta.type === "citations_delta") citations.push(delta.citation)
    else if (delta.type === "thinking_delta" && thinking !== "") out.push({ type: "reasoning", text: thinking })
    else if (delta.type === "input_json_delta" && block !== undefined) {
      const piece = argumentsText(delta.partial_json)
      if (piece === undefined) return unreadableArguments
      return calls.append(block.call, piece, out)
    }
    return undefined
  }

  const pushCitations = (out: Array<ChatEvent>): void => {
    if (citations.length > 0) takeCitations(citations, [blockStart, length], sources, out)
    citations = []
  }

  const closeBlock = (index: unknown, out: Array<ChatEvent>): StreamOutcome => {
    pushCitations(out)
    const block = blocks.get(index)
    if (block === undefined) return undefined
    blocks.delete(index)
    // The pieces may be an empty object.
    const isMissing = block.input !== "" && !block.call.isComplete
    const broken = isMissing ? calls.restate(block.call, block.input, out) : undefined
    return broken ?? calls.end(block.call, out)
  }

  /** Counts are cumulative: a given one replaces the former unless it is zero; searches may fall to zero. */
  const count = (given: unknown): undefined => {
    const isKnown = ([name, value]: readonly [string, unknown]): boolean => {
      if (name === "cache_creation") return Object.values(asFields(value)).some((written) => asCount(written) > 0)
      return Predicate.isRecord(value) || asCount(value) > 0
    }
    const known = Object.entries(asFields(given)).filter(isKnown)
    counts = { ...counts, ...Object.fromEntries(known) }
  }

  const tellUsage = (out: Array<ChatEvent>): undefined => pushUsage(out, decodeUsage(counts))

  const takeEnd = (end: Fields, usage: unknown, out: Array<ChatEvent>): StreamOutcome => {
    const { stop_details, stop_reason, stop_sequence } = end
    reason = stop_reason ?? reason
    stopSequence = askedStop(stop_sequence, request.stop) ?? stopSequence
    details = stop_details ?? details
    count(usage)
    tellUsage(out)
    return readEnd(reasons, reason).isBreak ? `stop_reason ${String(reason)}` : undefined
  }

  const closeMessage = (out: Array<ChatEvent>): StreamOutcome => {
    if (reason === undefined) return "message_stop without a stop_reason"
    pushCitations(out)
    for (const index of blocks.keys()) {
      const broken = closeBlock(index, out)
      if (broken !== undefined) return broken
    }
    const { finish, unread } = readEnd(reasons, reason)
    pushUnread(out, unread)
    const usage = decodeUsage(counts)
    const isUnbilled = reason === "refusal" && !hasContent && isUnbilledRefusal(details, usage, options)
    return pushEnd(out, finishOf(finish, calls.ended), usage, { isUnbilled, stopSequence })
  }

  return {
    take: (event, out) => {
      switch (event.type) {
        case "message_start":
          count(asFields(event.message).usage)
          // Only `message_delta` knows the output's count.
          counts = { ...counts, output_tokens: 0 }
          return tellUsage(out)
        case "content_block_start":
          return openBlock(event.index, asFields(event.content_block), out)
        case "content_block_delta":
          return takeDelta(asFields(event.delta), blocks.get(event.index), out)
        case "content_block_stop":
          return closeBlock(event.index, out)
        case "message_delta":
          return takeEnd(asFields(event.delta), event.usage, out)
        case "message_stop":
          return closeMessage(out)
        default:
          return undefined
      }
    },
    begins: ({ type }) => asText(type).startsWith("content_block_"),
    usage: () => undefined
  }
}
