import { Schema } from "effect"
import type { ChatEvent, Usage } from "../../domain/Chat.ts"
import type { ProviderAccount } from "../../domain/Model.ts"
import type { FailureClass, ProviderFailure } from "../../services/routing/Provider.ts"
import { answerDecoder, askedStop, encodeArguments, usageOf } from "../chat/Answer.ts"
import type { ChatCall } from "../chat/ChatFormat.ts"
import { readEnd, unknownTypes } from "../chat/EndReasons.ts"
import { citationOf, collectSources, rangeOf, type Sources } from "../chat/Sources.ts"
import { Arguments, records, Text } from "../chat/WireSchema.ts"
import { amendFailure, decodeFailure as decodeConvention, hasFailedStatus } from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { asCount, asFields, asRecords, asText, type Fields, parseJson } from "../client/Json.ts"
import { toLoggable } from "../client/Upstream.ts"
import { reasons, silentBlocks } from "./EndReasons.ts"
import type { Options } from "./Options.ts"

/** Blocks that the gateway reads, or that hold nothing. */
export const knownBlocks: ReadonlySet<unknown> = new Set([...silentBlocks, "text", "thinking", "tool_use"])

/** The option's name for a refusal without a category. */
const noCategory = "none"

/** The vendor charges nothing for a refusal before any output, except for the categories that the route names. */
export const isUnbilledRefusal = (details: unknown, usage: Usage | undefined, { billed_refusals }: Options): boolean =>
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
export const takeCitations = (
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

interface Classified {
  readonly class: FailureClass
  readonly param: string | undefined
}

const classify = (status: number | undefined, { code, message, type }: HostError): Classified | undefined => {
  if (type === "billing_error" || accountCode.test(code)) return { class: "account", param: undefined }
  // Only a customer's own headers name a beta.
  if ((status === 400 || status === 403) && /\bbetas?\b/i.test(message)) return { class: "request", param: undefined }
  if (type !== "invalid_request_error") return undefined
  if (toOperator.test(message)) return { class: "account", param: undefined }
  if (/^output blocked by content filter/i.test(message)) return { class: "moderation", param: undefined }
  return status === 400 && imageFault.test(message) ? { class: "request", param: "messages" } : undefined
}

export const decodeFailure = (
  account: ProviderAccount,
  response: UpstreamResponse,
  nowMillis: number
): ProviderFailure => {
  const failure = decodeConvention(account, response, nowMillis)
  const error = readError(response.body)
  const detail = toLoggable(account, `${error.code} ${failure.detail}`)
  return amendFailure(failure, { ...classify(failure.status, error), detail })
}

export const refusesThinking = ({ body, status }: UpstreamResponse): boolean => {
  const { message, type } = readError(body)
  return status === 400 && type === "invalid_request_error" && /\bthinking\b/i.test(message)
}
