import { Predicate, Schema } from "effect"
import type { ChatEvent, UnknownPart, Usage } from "../../domain/Chat.ts"
import {
  Arguments,
  answerDecoder,
  argumentsText,
  fields,
  finishOf,
  pushEnd,
  pushUnread,
  pushUsage,
  requestedStop,
  Text
} from "../chat/AnswerReaders.ts"
import { isOneHourCache } from "../chat/CacheMarks.ts"
import type { ChatCall } from "../chat/ChatClient.ts"
import { endReasons, failureReasons, googleReasons, readEnd, UnreadBlocks, unknownTypes } from "../chat/EndReasons.ts"
import { findUnexplained, type ProviderCounts, readCacheCounts, readUsage } from "../chat/ProviderUsage.ts"
import { collectSources, Sources } from "../chat/Sources.ts"
import type { ChatDecoder, StreamOutcome } from "../chat/WireStream.ts"
import { hasFailedStatus } from "../client/Classification.ts"
import { asCount, asFields, asList, asText, type Fields } from "../client/JsonFields.ts"
import { withStatedCost } from "../client/RouteOptions.ts"
import { makeCallDecoder } from "./OpenAiCalls.ts"
import type { Options } from "./OpenAiChatRequest.ts"

/** Stop reasons of OpenAI, vLLM, SGLang, TGI, Together, Mistral, Cohere, DeepSeek, GLM, MiniMax, Moonshot and Google's OpenAI endpoint. */
const reasons = endReasons({
  complete: [
    "stop",
    "end",
    "end_turn",
    "eos",
    "eos_token",
    "stop_sequence",
    "stop_token",
    "complete",
    "completed",
    "tool_calls",
    "tool_call",
    "tool_use",
    "function_call",
    "function_calls"
  ],
  length: [
    "length",
    "max_tokens",
    "max_length",
    "max_completion_tokens",
    "max_output_tokens",
    "model_length",
    "model_context_window_exceeded",
    "context_length_exceeded",
    // The provider stopped a repetition loop.
    "repetition",
    "repetition_truncation"
  ],
  content_filter: [
    "content_filter",
    "content_filtered",
    "refusal",
    "sensitive",
    ...googleReasons.content_filter,
    "guardrail_intervened"
  ],
  failure: [
    ...failureReasons,
    // Google sends these for calls with invalid syntax and for unexplained ends.
    "function_call_filter",
    ...googleReasons.failure
  ]
})

const textOf = (content: unknown): string =>
  typeof content === "string"
    ? content
    : asList(content)
        .map((part) => textOf(asFields(part).text))
        .join("")

/** Parts of type `reference` name the sources of the text. */
const knownParts: ReadonlySet<unknown> = new Set(["text", "output_text", "refusal", "thinking", "reference", undefined])

const unknownPartsIn = (content: unknown): ReadonlyArray<UnknownPart> =>
  Array.isArray(content) ? unknownTypes(content, knownParts) : []

/**
 * Returns the stop reason after a failure. OpenRouter sends `stop`, and the reason of the provider that it called in
 * `native_finish_reason`.
 */
const findFailureReason = (...candidates: ReadonlyArray<unknown>): string | undefined => {
  const reason = candidates.find((reason) => asText(reason) !== "" && readEnd(reasons, reason).isFailure)
  return reason === undefined ? undefined : `finish_reason ${asText(reason)}`
}

export const errorIn = (body: Fields): Fields | undefined => {
  if (Boolean(body.error) || body.object === "error" || hasFailedStatus(body)) return body
  const { error } = asFields(asList(body.choices)[0])
  return error ? { error } : undefined
}

/** Returns the stop sequence from the providers' fields. A token number is ignored. */
const stopOf = (choice: Fields, stops: ReadonlyArray<string>): string | undefined =>
  requestedStop(choice.matched_stop, stops) ?? requestedStop(choice.stop_reason, stops)

/** Whether a body lists search results, under the names of Perplexity, xAI, Zhipu and Qwen. */
const hasSearchResults = ({ citations, search_info, search_results, web_search }: Fields): boolean =>
  (citations ?? search_results ?? web_search ?? search_info ?? undefined) !== undefined

/** Replaces earlier lists with those of the body. */
const mergeSearchResults = (earlier: Fields | undefined, body: Fields): Fields => ({
  citations: body.citations ?? earlier?.citations,
  search_info: body.search_info ?? earlier?.search_info,
  search_results: body.search_results ?? earlier?.search_results,
  web_search: body.web_search ?? earlier?.web_search
})

/** Reads lists with titles first, because a source counts once. */
const takeSearchResults = (body: Fields, sources: Sources, out: Array<ChatEvent>): void => {
  const lists = [body.search_results, asFields(body.search_info).search_results, body.web_search, body.citations]
  for (const list of lists) sources.takeList(list, out)
}

type Call = Pick<ChatCall<Options>, "options" | "request">

/** If the fee covers all searches of a request, the provider may report no count, so a request counts as one search. */
const countSearches = (usage: Fields, call: Call | undefined): number => {
  if (call?.options.search_fee === "request") return Number(call.request.webSearch)
  const { server_side_tool_usage_details: xaiTools, server_tool_use: serverTools } = usage
  return asCount(asFields(serverTools).web_search_requests ?? asFields(xaiTools).web_search_calls)
}

const usesOneHourCache = ({ options: { cache }, request }: Call): boolean =>
  (cache === "manual" || cache === "auto") && isOneHourCache(request)

const countsIn = (usage: Fields, call: Call | undefined): ProviderCounts => {
  const { cacheWrite, cacheWriteHour, cached } = readCacheCounts(usage, asFields(usage.prompt_tokens_details))
  // Most providers don't report the lifetime of a cache entry, so the request decides.
  const isForAnHour = cacheWrite > 0 && call !== undefined && usesOneHourCache(call)
  return {
    prompt: asCount(usage.prompt_tokens),
    completion: asCount(usage.completion_tokens),
    cached,
    cacheWrite,
    cacheWriteHour: cacheWriteHour ?? (isForAnHour ? cacheWrite : 0),
    reasoning: asCount(asFields(usage.completion_tokens_details).reasoning_tokens),
    webSearches: countSearches(usage, call),
    total: asCount(usage.total_tokens)
  }
}

const hasHiddenReasoning = (call: Call | undefined): boolean => call?.options.hidden_reasoning === true

const usageOfCounts = (counts: ProviderCounts, call: Call | undefined): Usage | undefined =>
  counts.prompt === 0 && counts.completion === 0 ? undefined : readUsage(counts, hasHiddenReasoning(call))

export const decodeUsage = (usage: unknown, call: Call | undefined): Usage | undefined =>
  Predicate.isRecord(usage) ? usageOfCounts(countsIn(usage, call), call) : undefined

interface AnswerCounts {
  readonly usage: Usage | undefined
  /** Tokens that the counts don't explain. */
  readonly unexplained: UnknownPart | undefined
}

/** Reads the final counts of an answer. */
const readCounts = (usage: unknown, call: Call): AnswerCounts | undefined => {
  if (!Predicate.isRecord(usage)) return undefined
  const counts = countsIn(usage, call)
  return { usage: usageOfCounts(counts, call), unexplained: findUnexplained(counts, hasHiddenReasoning(call)) }
}

const usualReasoningOf = ({ reasoning, reasoning_content }: Fields): string =>
  textOf(reasoning_content) || textOf(reasoning)

/** Reads OpenRouter's list of texts, summaries and encrypted entries. */
const detailsOf = (details: unknown): string =>
  Array.isArray(details)
    ? details.map((detail) => textOf(asFields(detail).text) || textOf(asFields(detail).summary)).join("")
    : ""

const thoughtsIn = (content: unknown): string =>
  Array.isArray(content) ? content.map((part) => textOf(asFields(part).thinking)).join("") : ""

/**
 * Returns the reasoning from one of its fields, because providers repeat it in several. `hasUsualField`: an earlier
 * event used `reasoning` or `reasoning_content`.
 */
const reasoningOf = (message: Fields, hasUsualField = false): string =>
  usualReasoningOf(message) ||
  (hasUsualField ? "" : detailsOf(message.reasoning_details)) ||
  thoughtsIn(message.content)

/** Returns the calls, or the one in the deprecated `function_call`, which some providers send empty. */
const callsIn = ({ function_call: deprecatedCall, tool_calls }: Fields): ReadonlyArray<unknown> => {
  const calls = asList(tool_calls)
  if (calls.length > 0 || !Predicate.isRecord(deprecatedCall)) return calls
  return Boolean(deprecatedCall.name) || Boolean(deprecatedCall.arguments) ? [{ function: deprecatedCall }] : calls
}

const readCalls = Schema.decodeUnknownSync(
  Schema.Array(fields({ id: Text, function: fields({ name: Text, arguments: Arguments(argumentsText) }) }))
)

/** Fields are read one by one. With a schema of all of them, decoding took a third longer. */
const AnyFields = Schema.declare((value: unknown): value is Fields => Predicate.isRecord(value))

const Body = Schema.Struct({
  choices: Schema.Tuple([AnyFields], Schema.Unknown),
  usage: Schema.Unknown,
  citations: Schema.Unknown,
  search_results: Schema.Unknown,
  search_info: Schema.Unknown,
  web_search: Schema.Unknown
})

const missingMessage = "no message in the response"

export const decodeAnswer = answerDecoder(Body, missingMessage, (body, call: ChatCall<Options>) => {
  const [choice] = body.choices
  const { finish_reason, message } = choice
  if (!Predicate.isRecord(message)) return missingMessage
  const failureReason = findFailureReason(finish_reason, choice.native_finish_reason)
  if (failureReason !== undefined) return failureReason
  const end = readEnd(reasons, finish_reason)
  const calls = callsIn(message)
  const counts = readCounts(body.usage ?? choice.usage, call)
  const hasSources = message.annotations !== undefined || hasSearchResults(body)
  return {
    text: textOf(message.content),
    refusal: textOf(message.refusal),
    reasoning: reasoningOf(message),
    calls:
      calls.length === 0 ? [] : readCalls(calls).map(({ function: functionCall, id }) => ({ id, ...functionCall })),
    finish: end.finish,
    unread: [end.unread, counts?.unexplained, ...unknownPartsIn(message.content)],
    stopSequence: stopOf(choice, call.request.stop),
    sources: hasSources
      ? collectSources((sources, out) => {
          sources.takeAnnotations(message.annotations, 0, out)
          takeSearchResults(body, sources, out)
        })
      : undefined,
    usage: counts?.usage
  }
})

const countNames = ["prompt_tokens", "completion_tokens", "total_tokens"]

/** Whether earlier counts of the same prompt had details that later ones don't repeat. */
const lacksDetails = (latest: Fields, earlier: Fields): boolean => {
  if (latest.prompt_tokens !== earlier.prompt_tokens) return false
  for (const name in earlier) if (Boolean(earlier[name]) && !latest[name]) return true
  return false
}

/** Merges counts, which a provider may spread over several events. */
const mergeCounts = (latest: Fields, earlier: Fields | undefined): Fields => {
  if (earlier === undefined) return latest
  if (countNames.every((name) => typeof latest[name] === "number") && !lacksDetails(latest, earlier)) return latest
  return { ...earlier, ...Object.fromEntries(Object.entries(latest).filter(([, value]) => Boolean(value))) }
}

/** Some providers send counts twice, and the cost only with the first. */
const keepStatedCost = (latest: Usage | undefined, earlier: Usage | undefined): Usage | undefined => {
  if (latest === undefined || earlier?.statedCost === undefined || latest.statedCost !== undefined)
    return latest ?? earlier
  return { ...latest, statedCost: earlier.statedCost }
}

/** Emits the finish event at the end of the stream, and usage whenever the provider sends it. */
export const makeDecoder = (call: ChatCall<Options>): ChatDecoder => {
  let calls: ReturnType<typeof makeCallDecoder> | undefined
  const sources = new Sources()
  const unreadBlocks = new UnreadBlocks()
  /** The latest search-result list under each field name; some providers repeat these lists in every chunk. */
  let searchResults: Fields | undefined
  let stopSequence: string | undefined
  let reason: unknown
  let counts: Fields | undefined
  let usage: Usage | undefined
  /** Whether reasoning came in a usual field. Some providers repeat it in `reasoning_details` at the end. */
  let hasUsualReasoning = false
  let isRefusal = false
  let hasDelta = false

  const readCumulative = (reported: unknown): Usage | undefined => {
    if (!Predicate.isRecord(reported)) return undefined
    const mergedCounts = mergeCounts(reported, counts)
    const decodedUsage = decodeUsage(mergedCounts, call)
    if (decodedUsage !== undefined) counts = mergedCounts
    return decodedUsage
  }

  const takeDelta = (delta: Fields, out: Array<ChatEvent>): StreamOutcome => {
    const reasoning = reasoningOf(delta, hasUsualReasoning)
    hasUsualReasoning ||= reasoning !== "" && usualReasoningOf(delta) !== ""
    if (reasoning !== "") out.push({ type: "reasoning", text: reasoning })
    if (Array.isArray(delta.content)) unreadBlocks.take(delta.content, knownParts, out)
    const text = textOf(delta.content)
    const refusal = delta.refusal ? textOf(delta.refusal) : ""
    if (text !== "") out.push({ type: "content", text })
    if (refusal !== "") {
      isRefusal = true
      // Some providers also send the refusal as content.
      if (refusal !== text) out.push({ type: "content", text: refusal })
    }
    if (delta.annotations !== undefined) sources.takeAnnotations(delta.annotations, 0, out)
    for (const fragment of callsIn(delta)) {
      calls ??= makeCallDecoder(call.newId, call.request.tools)
      const error = calls.take(fragment, out)
      if (error !== undefined) return error
    }
    return undefined
  }

  return {
    take: (chunk, out) => {
      const choice = asFields(asList(chunk.choices)[0])
      const decodedUsage = readCumulative(choice.usage) ?? readCumulative(chunk.usage)
      usage = keepStatedCost(withStatedCost(decodedUsage, chunk, call.options), usage)
      const finishReason = choice.finish_reason ?? ""
      const failureReason =
        finishReason === "" ? undefined : findFailureReason(finishReason, choice.native_finish_reason)
      if (failureReason !== undefined) return failureReason
      if (finishReason !== "") reason = finishReason
      if (finishReason !== "") stopSequence = stopOf(choice, call.request.stop) ?? stopSequence
      if (hasSearchResults(chunk)) searchResults = mergeSearchResults(searchResults, chunk)
      if (decodedUsage !== undefined || finishReason !== "") pushUsage(out, usage, reason === undefined)
      hasDelta ||= Predicate.isRecord(choice.delta)
      // Some providers send the complete answer as one event. Others repeat it beside the deltas.
      return takeDelta(asFields(hasDelta ? choice.delta : choice.message), out)
    },
    finish: (out) => {
      if (reason === undefined) return undefined
      if (searchResults !== undefined) takeSearchResults(searchResults, sources, out)
      const error = calls?.close(out)
      if (error !== undefined) return error
      const { finish, unread } = readEnd(reasons, reason)
      pushUnread(out, unread, readCounts(counts, call)?.unexplained)
      return pushEnd(out, finishOf(finish, { hasCalls: false, ...calls?.endState(), isRefusal }), usage, {
        stopSequence
      })
    },
    startsGeneration: ({ choices }) => Predicate.isRecord(asList(choices)[0]),
    usage: () => usage
  }
}
