import { Predicate, Schema } from "effect"
import type { ChatEvent, Unread, Usage } from "../../domain/Chat.ts"
import { answerDecoder, argumentsText, askedStop } from "../chat/Answer.ts"
import { asksForAnHour } from "../chat/CacheMarks.ts"
import type { ChatCall } from "../chat/ChatFormat.ts"
import { readEnd, unknownTypes } from "../chat/EndReasons.ts"
import { type HostCounts, readCacheCounts, readUsage, unexplainedIn } from "../chat/HostUsage.ts"
import { collectSources, type Sources } from "../chat/Sources.ts"
import { Arguments, fields, Text } from "../chat/WireSchema.ts"
import { hasFailedStatus } from "../client/Classification.ts"
import { asCount, asFields, asList, asText, type Fields } from "../client/Json.ts"
import { reasons } from "./EndReasons.ts"
import type { Options } from "./Options.ts"

export const textOf = (content: unknown): string =>
  typeof content === "string"
    ? content
    : asList(content)
        .map((part) => textOf(asFields(part).text))
        .join("")

/** Parts of the type `reference` name the sources of the text. */
export const knownParts: ReadonlySet<unknown> = new Set([
  "text",
  "output_text",
  "refusal",
  "thinking",
  "reference",
  undefined
])

/** Most hosts give the content as a text. */
const unknownPartsIn = (content: unknown): ReadonlyArray<Unread> =>
  Array.isArray(content) ? unknownTypes(content, knownParts) : []

/** The reason for which a host broke off. OpenRouter gives `stop`, and its own host's reason beside it. */
export const breakIn = (...given: ReadonlyArray<unknown>): string | undefined => {
  const reason = given.find((reason) => asText(reason) !== "" && readEnd(reasons, reason).isBreak)
  return reason === undefined ? undefined : `finish_reason ${asText(reason)}`
}

export const errorIn = (body: Fields): Fields | undefined => {
  if (Boolean(body.error) || body.object === "error" || hasFailedStatus(body)) return body
  const { error } = asFields(asList(body.choices)[0])
  return error ? { error } : undefined
}

/** The fields in which hosts name the stop sequence; a token's number is none. */
export const stopOf = (choice: Fields, stops: ReadonlyArray<string>): string | undefined =>
  askedStop(choice.matched_stop, stops) ?? askedStop(choice.stop_reason, stops)

/** Whether a body lists what a search found: Perplexity's and xAI's, Zhipu's and Qwen's names. */
export const hasLists = ({ citations, search_info, search_results, web_search }: Fields): boolean =>
  (citations ?? search_results ?? web_search ?? search_info ?? undefined) !== undefined

/** The lists of a body in place of earlier ones with the same name. */
export const mergeLists = (before: Fields | undefined, given: Fields): Fields => ({
  citations: given.citations ?? before?.citations,
  search_info: given.search_info ?? before?.search_info,
  search_results: given.search_results ?? before?.search_results,
  web_search: given.web_search ?? before?.web_search
})

/** If a host sends several lists, the one with titles comes first. */
export const takeLists = (body: Fields, sources: Sources, out: Array<ChatEvent>): void => {
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
export const readCounts = (usage: unknown, call: Call): ReadCounts | undefined => {
  if (!Predicate.isRecord(usage)) return undefined
  const counts = countsIn(usage, call)
  return { usage: usageOfCounts(counts, call), unexplained: unexplainedIn(counts, isHidden(call)) }
}

/** Under the names of most hosts. */
export const namedReasoningOf = ({ reasoning, reasoning_content }: Fields): string =>
  textOf(reasoning_content) || textOf(reasoning)

/** OpenRouter's list: texts, summaries of them, and what cannot be read. */
const detailsOf = (details: unknown): string =>
  Array.isArray(details)
    ? details.map((detail) => textOf(asFields(detail).text) || textOf(asFields(detail).summary)).join("")
    : ""

const thoughtsIn = (content: unknown): string =>
  Array.isArray(content) ? content.map((part) => textOf(asFields(part).thinking)).join("") : ""

/** Reasoning under any of its names, or among the parts of the content; once, where hosts repeat it. `isNamed`: it came under a usual name before. */
export const reasoningOf = (given: Fields, isNamed = false): string =>
  namedReasoningOf(given) || (isNamed ? "" : detailsOf(given.reasoning_details)) || thoughtsIn(given.content)

/** Calls, or the one call in the convention's first form, which some hosts leave empty. */
export const callsIn = ({ function_call: first, tool_calls }: Fields): ReadonlyArray<unknown> => {
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
