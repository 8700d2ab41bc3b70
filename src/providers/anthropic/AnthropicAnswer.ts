import { Predicate, Schema } from "effect"
import type { ChatEvent, Usage } from "../../domain/Chat.ts"
import {
  Arguments,
  answerDecoder,
  argumentsText,
  askedStop,
  encodeArguments,
  finishOf,
  pushEnd,
  pushUnread,
  pushUsage,
  records,
  Text,
  unreadableArguments,
  usageOf
} from "../chat/Answer.ts"
import { type StreamedCall, StreamedCalls } from "../chat/CallArguments.ts"
import type { ChatCall } from "../chat/ChatClient.ts"
import type { ChatDecoder, StreamOutcome } from "../chat/ChatStream.ts"
import { brokenOff, endReasons, readEnd, UnreadBlocks, unknownTypes } from "../chat/EndReasons.ts"
import { citationOf, collectSources, rangeOf, Sources } from "../chat/Sources.ts"
import {
  amendFailure,
  type Classification,
  type DecodeFailure,
  decodeFailure as decodeConvention,
  hasFailedStatus
} from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { asCount, asFields, asList, asRecords, asText, type Fields, parseJson } from "../client/Json.ts"
import { toLoggable } from "../client/Upstream.ts"
import type { Options } from "./AnthropicRequest.ts"

/** Reasons of Anthropic, and of hosts with such an endpoint, for example GLM. */
const reasons = endReasons({
  complete: ["end_turn", "stop_sequence", "tool_use"],
  length: ["max_tokens", "model_context_window_exceeded"],
  content_filter: ["refusal", "sensitive", "content_filter"],
  // The client sends the answer back to get the rest. Only this wire has that.
  unfinished: ["pause_turn", "compaction"],
  break: brokenOff
})

/** Content blocks that mean nothing to a client of another wire: the host's own tools, and signed thinking. */
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

/** Blocks that the gateway reads, or that hold nothing. */
const knownBlocks: ReadonlySet<unknown> = new Set([...silentBlocks, "text", "thinking", "tool_use"])

/** The option's name for a refusal without a category. */
const noCategory = "none"

/** The vendor charges nothing for a refusal before any output, except for the categories that the route names. */
const isUnbilledRefusal = (details: unknown, usage: Usage | undefined, { billed_refusals }: Options): boolean =>
  (usage?.completion ?? 0) === 0 && billed_refusals?.includes(asText(asFields(details).category) || noCategory) !== true

/** The three counts of the prompt are disjoint on this wire. */
export const decodeUsage = (usage: unknown): Usage | undefined => {
  const counts = asFields(usage)
  const cached = asCount(counts.cache_read_input_tokens)
  const { ephemeral_1h_input_tokens, ephemeral_5m_input_tokens } = asFields(counts.cache_creation)
  const cacheWriteHour = asCount(ephemeral_1h_input_tokens)
  const divided = asCount(ephemeral_5m_input_tokens) + cacheWriteHour
  const cacheWrite = Math.max(asCount(counts.cache_creation_input_tokens), divided)
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

/** Takes the citations of a text block, which lies from `start` to `end` in the content. */
const takeCitations = (
  given: unknown,
  [start, end]: readonly [start: number, end: number],
  sources: Sources,
  out: Array<ChatEvent>
): void => {
  for (const { cited_text: quote, source, title, type, url } of asRecords(given)) {
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
  if (end.isBreak) return `stop_reason ${String(stop_reason)}`
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
    isUnbilled: stop_reason === "refusal" && content.length === 0 && isUnbilledRefusal(stop_details, usage, options),
    stopSequence: askedStop(stop_sequence, request.stop),
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

interface HostError {
  readonly type: string
  /** More precise than the type, where the host gives it. */
  readonly code: string
  readonly message: string
}

const readError = (body: string): HostError => {
  const { details, message, type } = asFields(asFields(parseJson(body)).error)
  return { type: asText(type), code: asText(asFields(details).error_code), message: asText(message) }
}

/** Codes that blame the operator's account, whatever the status. */
const accountCode =
  /spend_limit_reached$|^organization_(on_hold|type_not_supported)$|^parent_organization_required$|billing|^cmek_|^claude_code_|^sandbox_egress_restricted$/

/** Only a 400's first words: later ones quote the customer. */
const toOperator =
  /^(your (credit|organization|workspace|account|api key|plan)|you have (reached|exceeded|run out)|this (organization|workspace|account|api key))\b/i

const imageFault = /\bimage\.source\b|^could not process image|^unable to download the file|^(the )?image\b/i

const classify = (
  status: number | undefined,
  { code, message, type }: HostError
): Pick<Classification, "class" | "param"> | undefined => {
  if (type === "billing_error" || accountCode.test(code)) return { class: "account", param: undefined }
  // Only a customer's own headers name a beta.
  if ((status === 400 || status === 403) && /\bbetas?\b/i.test(message)) return { class: "request", param: undefined }
  if (type !== "invalid_request_error") return undefined
  if (toOperator.test(message)) return { class: "account", param: undefined }
  if (/^output blocked by content filter/i.test(message)) return { class: "moderation", param: undefined }
  return status === 400 && imageFault.test(message) ? { class: "request", param: "messages" } : undefined
}

export const decodeFailure: DecodeFailure = (account, response, nowMillis) => {
  const failure = decodeConvention(account, response, nowMillis)
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
  /** The block's initial input, used where no delta follows. */
  readonly input: string
}

/** Usage is passed on as it is told, for streams that are cut short. */
export const makeDecoder = ({ native, newId, options, request }: ChatCall<Options>): ChatDecoder => {
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
