import { Predicate, Schema } from "effect"
import type { ChatEvent, Unread, Usage } from "../../domain/Chat.ts"
import {
  Arguments,
  answerDecoder,
  argumentsText,
  askedStop,
  fields,
  finishOf,
  pushEnd,
  pushUnread,
  pushUsage,
  Text
} from "../chat/Answer.ts"
import { asksForAnHour } from "../chat/CacheMarks.ts"
import type { ChatCall } from "../chat/ChatClient.ts"
import type { ChatDecoder, StreamOutcome } from "../chat/ChatStream.ts"
import { brokenOff, endReasons, google, readEnd, UnreadBlocks, unknownTypes } from "../chat/EndReasons.ts"
import { type HostCounts, readCacheCounts, readUsage, unexplainedIn } from "../chat/HostUsage.ts"
import { collectSources, Sources } from "../chat/Sources.ts"
import { hasFailedStatus } from "../client/Classification.ts"
import { asCount, asFields, asList, asText, type Fields } from "../client/Json.ts"
import { withStatedCost } from "../client/RouteOptions.ts"
import { makeCallDecoder } from "./OpenAiCalls.ts"
import type { Options } from "./OpenAiChatRequest.ts"

/** Reasons of OpenAI, vLLM, SGLang, TGI, Together, Mistral, Cohere, DeepSeek, GLM, MiniMax, Moonshot and Google's OpenAI endpoint. */
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
    // A loop that the host cut.
    "repetition",
    "repetition_truncation"
  ],
  content_filter: [
    "content_filter",
    "content_filtered",
    "refusal",
    "sensitive",
    ...google.content_filter,
    "guardrail_intervened"
  ],
  break: [
    ...brokenOff,
    // Google sends these for calls with invalid syntax, and for ends without a cause.
    "function_call_filter",
    ...google.break
  ]
})

const textOf = (content: unknown): string =>
  typeof content === "string"
    ? content
    : asList(content)
        .map((part) => textOf(asFields(part).text))
        .join("")

/** Parts of the type `reference` name the sources of the text. */
const knownParts: ReadonlySet<unknown> = new Set(["text", "output_text", "refusal", "thinking", "reference", undefined])

/** Most hosts give the content as a text. */
const unknownPartsIn = (content: unknown): ReadonlyArray<Unread> =>
  Array.isArray(content) ? unknownTypes(content, knownParts) : []

/** The reason for which a host broke off. OpenRouter gives `stop`, and its own host's reason beside it. */
const breakIn = (...given: ReadonlyArray<unknown>): string | undefined => {
  const reason = given.find((reason) => asText(reason) !== "" && readEnd(reasons, reason).isBreak)
  return reason === undefined ? undefined : `finish_reason ${asText(reason)}`
}

export const errorIn = (body: Fields): Fields | undefined => {
  if (Boolean(body.error) || body.object === "error" || hasFailedStatus(body)) return body
  const { error } = asFields(asList(body.choices)[0])
  return error ? { error } : undefined
}

/** The fields in which hosts name the stop sequence; a token's number is none. */
const stopOf = (choice: Fields, stops: ReadonlyArray<string>): string | undefined =>
  askedStop(choice.matched_stop, stops) ?? askedStop(choice.stop_reason, stops)

/** Whether a body lists what a search found: Perplexity's and xAI's, Zhipu's and Qwen's names. */
const hasLists = ({ citations, search_info, search_results, web_search }: Fields): boolean =>
  (citations ?? search_results ?? web_search ?? search_info ?? undefined) !== undefined

/** The lists of a body in place of earlier ones with the same name. */
const mergeLists = (before: Fields | undefined, given: Fields): Fields => ({
  citations: given.citations ?? before?.citations,
  search_info: given.search_info ?? before?.search_info,
  search_results: given.search_results ?? before?.search_results,
  web_search: given.web_search ?? before?.web_search
})

/** If a host sends several lists, the one with titles comes first. */
const takeLists = (body: Fields, sources: Sources, out: Array<ChatEvent>): void => {
  const lists = [body.search_results, asFields(body.search_info).search_results, body.web_search, body.citations]
  for (const list of lists) sources.takeList(list, out)
}

type Call = Pick<ChatCall<Options>, "options" | "request">

/** Where a request has one fee for all of its searches, the host need not report any. */
const countSearches = (usage: Fields, call: Call | undefined): number => {
  if (call?.options.search_fee === "request") return Number(call.request.webSearch)
  const { server_side_tool_usage_details: atXai, server_tool_use: anywhere } = usage
  return asCount(asFields(anywhere).web_search_requests ?? asFields(atXai).web_search_calls)
}

const sendsForAnHour = ({ options: { cache }, request }: Call): boolean =>
  (cache === "manual" || cache === "auto") && asksForAnHour(request)

const countsIn = (usage: Fields, call: Call | undefined): HostCounts => {
  const { cacheWrite, cacheWriteHour, cached } = readCacheCounts(usage, asFields(usage.prompt_tokens_details))
  // Most hosts do not report how long a cache entry lives: the request decides.
  const isForAnHour = cacheWrite > 0 && call !== undefined && sendsForAnHour(call)
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

const isHidden = (call: Call | undefined): boolean => call?.options.hidden_reasoning === true

const usageOfCounts = (counts: HostCounts, call: Call | undefined): Usage | undefined =>
  counts.prompt === 0 && counts.completion === 0 ? undefined : readUsage(counts, isHidden(call))

export const decodeUsage = (usage: unknown, call: Call | undefined): Usage | undefined =>
  Predicate.isRecord(usage) ? usageOfCounts(countsIn(usage, call), call) : undefined

interface ReadCounts {
  readonly usage: Usage | undefined
  /** The tokens that the counts do not explain. */
  readonly unexplained: Unread | undefined
}

/** Reads the counts of an answer that has ended. */
const readCounts = (usage: unknown, call: Call): ReadCounts | undefined => {
  if (!Predicate.isRecord(usage)) return undefined
  const counts = countsIn(usage, call)
  return { usage: usageOfCounts(counts, call), unexplained: unexplainedIn(counts, isHidden(call)) }
}

/** Under the names of most hosts. */
const namedReasoningOf = ({ reasoning, reasoning_content }: Fields): string =>
  textOf(reasoning_content) || textOf(reasoning)

/** OpenRouter's list: texts, summaries of them, and what cannot be read. */
const detailsOf = (details: unknown): string =>
  Array.isArray(details)
    ? details.map((detail) => textOf(asFields(detail).text) || textOf(asFields(detail).summary)).join("")
    : ""

const thoughtsIn = (content: unknown): string =>
  Array.isArray(content) ? content.map((part) => textOf(asFields(part).thinking)).join("") : ""

/** Reasoning under any of its names, or among the parts of the content; once, where hosts repeat it. `isNamed`: it came under a usual name before. */
const reasoningOf = (given: Fields, isNamed = false): string =>
  namedReasoningOf(given) || (isNamed ? "" : detailsOf(given.reasoning_details)) || thoughtsIn(given.content)

/** Calls, or the one call in the convention's first form, which some hosts leave empty. */
const callsIn = ({ function_call: first, tool_calls }: Fields): ReadonlyArray<unknown> => {
  const calls = asList(tool_calls)
  if (calls.length > 0 || !Predicate.isRecord(first)) return calls
  return Boolean(first.name) || Boolean(first.arguments) ? [{ function: first }] : calls
}

const readCalls = Schema.decodeUnknownSync(
  Schema.Array(fields({ id: Text, function: fields({ name: Text, arguments: Arguments(argumentsText) }) }))
)

/** Its fields are read one by one: with a schema of them all, an answer took a third longer. */
const AnyFields = Schema.declare((value: unknown): value is Fields => Predicate.isRecord(value))

const Body = Schema.Struct({
  choices: Schema.Tuple([AnyFields], Schema.Unknown),
  usage: Schema.Unknown,
  citations: Schema.Unknown,
  search_results: Schema.Unknown,
  search_info: Schema.Unknown,
  web_search: Schema.Unknown
})

const missing = "no message in the answer"

export const decodeAnswer = answerDecoder(Body, missing, (body, call: ChatCall<Options>) => {
  const [choice] = body.choices
  const { finish_reason, message } = choice
  if (!Predicate.isRecord(message)) return missing
  const broken = breakIn(finish_reason, choice.native_finish_reason)
  if (broken !== undefined) return broken
  const end = readEnd(reasons, finish_reason)
  const calls = callsIn(message)
  const counts = readCounts(body.usage ?? choice.usage, call)
  const hasSources = message.annotations !== undefined || hasLists(body)
  return {
    text: textOf(message.content),
    refusal: textOf(message.refusal),
    reasoning: reasoningOf(message),
    calls: calls.length === 0 ? [] : readCalls(calls).map(({ function: called, id }) => ({ id, ...called })),
    finish: end.finish,
    unread: [end.unread, counts?.unexplained, ...unknownPartsIn(message.content)],
    stopSequence: stopOf(choice, call.request.stop),
    sources: hasSources
      ? collectSources((sources, out) => {
          sources.takeAnnotations(message.annotations, 0, out)
          takeLists(body, sources, out)
        })
      : undefined,
    usage: counts?.usage
  }
})

const countNames = ["prompt_tokens", "completion_tokens", "total_tokens"]

/** Whether counts of the same prompt had details that the later ones do not repeat. */
const lacksDetails = (given: Fields, before: Fields): boolean => {
  if (given.prompt_tokens !== before.prompt_tokens) return false
  for (const name in before) if (Boolean(before[name]) && !given[name]) return true
  return false
}

/** A host may give its counts in several events, each with some of them. */
const mergeCounts = (given: Fields, before: Fields | undefined): Fields => {
  if (before === undefined) return given
  if (countNames.every((name) => typeof given[name] === "number") && !lacksDetails(given, before)) return given
  return { ...before, ...Object.fromEntries(Object.entries(given).filter(([, value]) => Boolean(value))) }
}

/** Counts come twice from some hosts, and what they cost with the first. */
const keepStated = (counted: Usage | undefined, before: Usage | undefined): Usage | undefined => {
  if (counted === undefined || before?.statedCost === undefined || counted.statedCost !== undefined)
    return counted ?? before
  return { ...counted, statedCost: before.statedCost }
}

/** The finish comes last, once the stream is complete; usage also where it is told. */
export const makeDecoder = (call: ChatCall<Options>): ChatDecoder => {
  let calls: ReturnType<typeof makeCallDecoder> | undefined
  const sources = new Sources()
  const unreadBlocks = new UnreadBlocks()
  /** The last list of sources of each name: some hosts repeat them in every chunk. */
  let listed: Fields | undefined
  let stopSequence: string | undefined
  let reason: unknown
  let counts: Fields | undefined
  let usage: Usage | undefined
  /** Some hosts restate it in their details at the end. */
  let hasNamedReasoning = false
  let isRefusal = false
  let hasDelta = false

  const count = (given: unknown): Usage | undefined => {
    if (!Predicate.isRecord(given)) return undefined
    const merged = mergeCounts(given, counts)
    const counted = decodeUsage(merged, call)
    if (counted !== undefined) counts = merged
    return counted
  }

  const takeDelta = (delta: Fields, out: Array<ChatEvent>): StreamOutcome => {
    const reasoning = reasoningOf(delta, hasNamedReasoning)
    hasNamedReasoning ||= reasoning !== "" && namedReasoningOf(delta) !== ""
    if (reasoning !== "") out.push({ type: "reasoning", text: reasoning })
    if (Array.isArray(delta.content)) unreadBlocks.take(delta.content, knownParts, out)
    const text = textOf(delta.content)
    const refusal = delta.refusal ? textOf(delta.refusal) : ""
    if (text !== "") out.push({ type: "content", text })
    if (refusal !== "") {
      isRefusal = true
      // Some hosts give it as content as well.
      if (refusal !== text) out.push({ type: "content", text: refusal })
    }
    if (delta.annotations !== undefined) sources.takeAnnotations(delta.annotations, 0, out)
    for (const fragment of callsIn(delta)) {
      calls ??= makeCallDecoder(call.newId, call.request.tools)
      const broken = calls.take(fragment, out)
      if (broken !== undefined) return broken
    }
    return undefined
  }

  return {
    take: (chunk, out) => {
      const choice = asFields(asList(chunk.choices)[0])
      const counted = count(choice.usage) ?? count(chunk.usage)
      usage = keepStated(withStatedCost(counted, chunk, call.options), usage)
      const finished = choice.finish_reason ?? ""
      const broken = finished === "" ? undefined : breakIn(finished, choice.native_finish_reason)
      if (broken !== undefined) return broken
      if (finished !== "") reason = finished
      if (finished !== "") stopSequence = stopOf(choice, call.request.stop) ?? stopSequence
      if (hasLists(chunk)) listed = mergeLists(listed, chunk)
      if (counted !== undefined || finished !== "") pushUsage(out, usage, reason === undefined)
      hasDelta ||= Predicate.isRecord(choice.delta)
      // Some hosts send the whole answer as one event, others repeat it beside the deltas.
      return takeDelta(asFields(hasDelta ? choice.delta : choice.message), out)
    },
    finish: (out) => {
      if (reason === undefined) return undefined
      if (listed !== undefined) takeLists(listed, sources, out)
      const broken = calls?.close(out)
      if (broken !== undefined) return broken
      const { finish, unread } = readEnd(reasons, reason)
      pushUnread(out, unread, readCounts(counts, call)?.unexplained)
      return pushEnd(out, finishOf(finish, { hasCalls: false, ...calls?.ended(), isRefusal }), usage, { stopSequence })
    },
    begins: ({ choices }) => Predicate.isRecord(asList(choices)[0]),
    usage: () => usage
  }
}
