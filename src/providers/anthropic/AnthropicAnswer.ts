import { Predicate, Schema } from "effect"
import type { ChatEvent, Usage } from "../../domain/Chat.ts"
import {
  Arguments,
  answerDecoder,
  argumentsText,
  encodeArguments,
  finishOf,
  pushEnd,
  pushUnread,
  pushUsage,
  records,
  requestedStop,
  Text,
  unreadableArguments,
  usageOf
} from "../chat/AnswerReaders.ts"
import { type StreamedCall, StreamedCalls } from "../chat/CallArguments.ts"
import type { ChatCall } from "../chat/ChatClient.ts"
import { endReasons, failureReasons, readEnd, UnreadBlocks, unknownTypes } from "../chat/EndReasons.ts"
import { citationOf, collectSources, rangeOf, Sources } from "../chat/Sources.ts"
import type { ChatDecoder, StreamOutcome } from "../chat/WireStream.ts"
import {
  amendFailure,
  type Classification,
  type DecodeFailure,
  decodeFailure as decodeDefault,
  hasFailedStatus
} from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { asCount, asFields, asList, asRecords, asText, type Fields, parseJson } from "../client/JsonFields.ts"
import { toLoggable } from "../client/Upstream.ts"
import type { Options } from "./AnthropicRequest.ts"

/** Stop reasons of Anthropic, and of providers with a compatible endpoint, for example GLM. */
const reasons = endReasons({
  complete: ["end_turn", "stop_sequence", "tool_use"],
  length: ["max_tokens", "model_context_window_exceeded"],
  content_filter: ["refusal", "sensitive", "content_filter"],
  // The client sends the answer back to get the rest. Only this wire format supports that.
  unfinished: ["pause_turn", "compaction"],
  failure: failureReasons
})

/** Content blocks that mean nothing to clients of other wire formats: the provider's own tools and signed thinking. */
const silentBlocks: ReadonlySet<unknown> = new Set([
  "redacted_thinking",
  "server_tool_use",
  "web_search_tool_result",
  "web_fetch_tool_result",
  "code_execution_tool_result",
  "bash_code_execution_tool_result",
  "text_editor_code_execution_tool_result",
  "tool_search_tool_result",
  "advisor_tool_result",
  "mcp_tool_use",
  "mcp_tool_result",
  "container_upload",
  "compaction",
  "fallback"
])

/** Blocks that the gateway reads or may ignore. */
const knownBlocks: ReadonlySet<unknown> = new Set([...silentBlocks, "text", "thinking", "tool_use"])

/** The value of `billed_refusals` for refusals without a category. */
const noCategory = "none"

/** The vendor does not charge for a refusal before any output, except for the categories in `billed_refusals`. */
const isUnbilledRefusal = (details: unknown, usage: Usage | undefined, { billed_refusals }: Options): boolean =>
  (usage?.completion ?? 0) === 0 && billed_refusals?.includes(asText(asFields(details).category) || noCategory) !== true

/** In this wire format, the three counts of the prompt don't overlap. */
export const decodeUsage = (usage: unknown): Usage | undefined => {
  const counts = asFields(usage)
  const cached = asCount(counts.cache_read_input_tokens)
  const { ephemeral_1h_input_tokens, ephemeral_5m_input_tokens } = asFields(counts.cache_creation)
  const cacheWriteHour = asCount(ephemeral_1h_input_tokens)
  const writesByLifetime = asCount(ephemeral_5m_input_tokens) + cacheWriteHour
  const cacheWrite = Math.max(asCount(counts.cache_creation_input_tokens), writesByLifetime)
  return usageOf({
    prompt: asCount(counts.input_tokens) + cached + cacheWrite,
    completion: asCount(counts.output_tokens),
    cached,
    cacheWrite,
    cacheWriteHour,
    reasoning: asCount(asFields(counts.output_tokens_details).thinking_tokens),
    webSearches: asCount(asFields(counts.server_tool_use).web_search_requests)
  })
}

/** Adds the citations of a text block that spans `start` to `end` of the content. */
const takeCitations = (
  blockCitations: unknown,
  [start, end]: readonly [start: number, end: number],
  sources: Sources,
  out: Array<ChatEvent>
): void => {
  for (const { cited_text: quote, source, title, type, url } of asRecords(blockCitations)) {
    const citation = citationOf({ url: url ?? source, title, quote }, rangeOf(start, end))
    if (citation === undefined) sources.takeUnread(`citation ${asText(type)}`, out)
    else sources.take(citation, out)
  }
}

const Block = Schema.Struct({
  type: Schema.Unknown,
  citations: Schema.Unknown,
  text: Text,
  thinking: Text,
  id: Text,
  name: Text,
  input: Arguments(encodeArguments)
})

const Answer = Schema.Struct({
  content: Schema.Array(Schema.Unknown).pipe(Schema.compose(records(Block))),
  stop_reason: Schema.Unknown,
  stop_details: Schema.Unknown,
  stop_sequence: Schema.Unknown,
  usage: Schema.Unknown
})

type Call = Pick<ChatCall<Options>, "native" | "options" | "request">

export const decodeAnswer = answerDecoder(Answer, "no content", (body, { native, options, request }: Call) => {
  const { content, stop_details, stop_reason, stop_sequence } = body
  const end = readEnd(reasons, stop_reason)
  if (end.isFailure) return `stop_reason ${String(stop_reason)}`
  const usage = decodeUsage(body.usage)
  const joinBlocks = (type: "text" | "thinking") =>
    content.map((block) => (block.type === type ? block[type] : "")).join("")
  return {
    text: joinBlocks("text"),
    reasoning: joinBlocks("thinking"),
    calls: content
      .filter(({ type }) => type === "tool_use")
      .map(({ id, input, name }) => ({ id, name, arguments: input })),
    finish: end.finish,
    unread: [end.unread, ...unknownTypes(content, knownBlocks)],
    isFree: stop_reason === "refusal" && content.length === 0 && isUnbilledRefusal(stop_details, usage, options),
    stopSequence: requestedStop(stop_sequence, request.stop),
    sources: collectSources((sources, out) => {
      let start = 0
      for (const { citations, text, type } of content) {
        if (type !== "text") continue
        takeCitations(citations, [start, start + text.length], sources, out)
        start += text.length
      }
    }, native !== undefined),
    usage
  }
})

export const errorIn = (body: Fields): Fields | undefined =>
  body.type === "error" || Boolean(body.error) || hasFailedStatus(body) ? body : undefined

interface ProviderError {
  readonly type: string
  /** The error's code, which is more specific than its type. Empty if the provider sends none. */
  readonly code: string
  readonly message: string
}

const readError = (body: string): ProviderError => {
  const { details, message, type } = asFields(asFields(parseJson(body)).error)
  return { type: asText(type), code: asText(asFields(details).error_code), message: asText(message) }
}

/** Codes that concern the operator's account, whatever the status. */
const accountCode =
  /spend_limit_reached$|^organization_(on_hold|type_not_supported)$|^parent_organization_required$|billing|^cmek_|^claude_code_|^sandbox_egress_restricted$/

/** Matches only the start of a 400's message, because the rest may quote the customer. */
const accountMessage =
  /^(your (credit|organization|workspace|account|api key|plan)|you have (reached|exceeded|run out)|this (organization|workspace|account|api key))\b/i

const imageMessage = /\bimage\.source\b|^could not process image|^unable to download the file|^(the )?image\b/i

const classify = (
  status: number | undefined,
  { code, message, type }: ProviderError
): Pick<Classification, "class" | "param"> | undefined => {
  if (type === "billing_error" || accountCode.test(code)) return { class: "account", param: undefined }
  // Betas come only from the customer's headers, so a message about them means a wrong request.
  if ((status === 400 || status === 403) && /\bbetas?\b/i.test(message)) return { class: "request", param: undefined }
  if (type !== "invalid_request_error") return undefined
  if (accountMessage.test(message)) return { class: "account", param: undefined }
  if (/^output blocked by content filter/i.test(message)) return { class: "moderation", param: undefined }
  return status === 400 && imageMessage.test(message) ? { class: "request", param: "messages" } : undefined
}

export const decodeFailure: DecodeFailure = (account, response, nowMillis) => {
  const failure = decodeDefault(account, response, nowMillis)
  const error = readError(response.body)
  const detail = toLoggable(account, `${error.code} ${failure.detail}`)
  return amendFailure(failure, { ...classify(failure.status, error), detail })
}

export const refusesThinking = ({ body, status }: UpstreamResponse): boolean => {
  const { message, type } = readError(body)
  return status === 400 && type === "invalid_request_error" && /\bthinking\b/i.test(message)
}

interface CallBlock {
  readonly call: StreamedCall
  /** The initial input of the block, used if no delta follows. */
  readonly input: string
}

/** Returns a decoder that reports usage as soon as the provider sends it, because the stream may break. */
export const makeDecoder = ({ native, newId, options, request }: ChatCall<Options>): ChatDecoder => {
  const unreadBlocks = new UnreadBlocks()
  const calls = new StreamedCalls()
  const blocks = new Map<unknown, CallBlock>()
  const sources = new Sources(native !== undefined)
  /** The citations of the current text block. They apply to all of it. */
  let citations: Array<unknown> = []
  let blockStart = 0
  let length = 0
  let stopSequence: string | undefined
  let stopReason: unknown
  let stopDetails: unknown
  let hasContent = false
  let counts: Fields = {}
  let searches = 0

  const openBlock = (index: unknown, block: Fields, out: Array<ChatEvent>): StreamOutcome => {
    hasContent = true
    if (!knownBlocks.has(block.type)) unreadBlocks.add(block.type, out)
    if (block.type === "server_tool_use" && block.name === "web_search") {
      searches += 1
      counts = { ...counts, server_tool_use: { web_search_requests: searches } }
      return reportUsage(out)
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
    // If the pieces form only an empty object, the initial input counts.
    const isMissing = block.input !== "" && !block.call.isComplete
    const error = isMissing ? calls.completeArguments(block.call, block.input, out) : undefined
    return error ?? calls.end(block.call, out)
  }

  /** Counts are cumulative. A new count replaces the previous one unless it is zero; searches may become zero. */
  const mergeCounts = (usage: unknown): undefined => {
    const isPresent = ([name, value]: readonly [string, unknown]): boolean => {
      if (name === "cache_creation") return Object.values(asFields(value)).some((written) => asCount(written) > 0)
      return Predicate.isRecord(value) || asCount(value) > 0
    }
    const changes = Object.entries(asFields(usage)).filter(isPresent)
    counts = { ...counts, ...Object.fromEntries(changes) }
  }

  const reportUsage = (out: Array<ChatEvent>): undefined => pushUsage(out, decodeUsage(counts))

  const takeEnd = (end: Fields, usage: unknown, out: Array<ChatEvent>): StreamOutcome => {
    const { stop_details, stop_reason, stop_sequence } = end
    stopReason = stop_reason ?? stopReason
    stopSequence = requestedStop(stop_sequence, request.stop) ?? stopSequence
    stopDetails = stop_details ?? stopDetails
    mergeCounts(usage)
    reportUsage(out)
    return readEnd(reasons, stopReason).isFailure ? `stop_reason ${String(stopReason)}` : undefined
  }

  const closeMessage = (out: Array<ChatEvent>): StreamOutcome => {
    if (stopReason === undefined) return "message_stop without a stop_reason"
    pushCitations(out)
    for (const index of blocks.keys()) {
      const error = closeBlock(index, out)
      if (error !== undefined) return error
    }
    const { finish, unread } = readEnd(reasons, stopReason)
    pushUnread(out, unread)
    const usage = decodeUsage(counts)
    const isFree = stopReason === "refusal" && !hasContent && isUnbilledRefusal(stopDetails, usage, options)
    return pushEnd(out, finishOf(finish, calls.endState), usage, { isFree, stopSequence })
  }

  return {
    take: (event, out) => {
      switch (event.type) {
        case "message_start":
          mergeCounts(asFields(event.message).usage)
          // The output count of this event is preliminary. `message_delta` has the final one.
          counts = { ...counts, output_tokens: 0 }
          return reportUsage(out)
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
    startsGeneration: ({ type }) => asText(type).startsWith("content_block_"),
    usage: () => undefined
  }
}
