import { Predicate, Schema } from "effect"
import type { ChatEvent, Unread, Usage } from "../../domain/Chat.ts"
import { answerDecoder, argumentsText, askedStop } from "../chat/Answer.ts"
import { asksForAnHour } from "../chat/CacheMarks.ts"
import type { ChatCall } from "../chat/ChatFormat.ts"
import { readEnd, unknownTypes } from "../chat/EndReasons.ts"
import { type HostCounts, readCacheCounts, readUsage, unexplainedIn } from "../chat/HostUsage.ts"
import { collectSources, type Sources } from "../chat/Sources.ts"
import { Arguments, fields, lenient, Text } from "../chat/WireSchema.ts"
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

export const decodeUsage = (usage: unknown, call: Call | undefined): Usage | undefined => {
  if (!Predicate.isRecord(usage)) return undefined
  const counts = countsIn(usage, call)
  return counts.prompt === 0 && counts.completion === 0 ? undefined : readUsage(counts, isHidden(call))
}

/** The tokens that the counts of an ended answer do not explain. */
export const unexplainedUsage = (usage: unknown, call: Call): Unread | undefined =>
  Predicate.isRecord(usage) ? unexplainedIn(countsIn(usage, call), isHidden(call)) : undefined

const Texts = lenient(Schema.String, textOf)

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

const Message = Schema.Struct({
  content: Schema.Unknown,
  refusal: Texts,
  reasoning_content: Schema.Unknown,
  reasoning: Schema.Unknown,
  reasoning_details: Schema.Unknown,
  tool_calls: Schema.Unknown,
  function_call: Schema.Unknown,
  annotations: Schema.Unknown
})

const readCalls = Schema.decodeUnknownSync(
  Schema.Array(fields({ id: Text, function: fields({ name: Text, arguments: Arguments(argumentsText) }) }))
)

const Choice = Schema.Struct({
  message: Message,
  finish_reason: Schema.Unknown,
  native_finish_reason: Schema.Unknown,
  matched_stop: Schema.Unknown,
  stop_reason: Schema.Unknown,
  usage: Schema.Unknown
})

const Body = Schema.Struct({
  choices: Schema.Tuple([Choice], Schema.Unknown),
  usage: Schema.Unknown,
  citations: Schema.Unknown,
  search_results: Schema.Unknown,
  search_info: Schema.Unknown,
  web_search: Schema.Unknown
})

export const decodeAnswer = answerDecoder(Body, "no message in the answer", (body, call: ChatCall<Options>) => {
  const [choice] = body.choices
  const { finish_reason, message, usage } = choice
  const broken = breakIn(finish_reason, choice.native_finish_reason)
  if (broken !== undefined) return broken
  const end = readEnd(reasons, finish_reason)
  return {
    text: textOf(message.content),
    refusal: message.refusal,
    reasoning: reasoningOf(message),
    calls: readCalls(callsIn(message)).map(({ function: called, id }) => ({ id, ...called })),
    finish: end.finish,
    unread: [end.unread, unexplainedUsage(body.usage ?? usage, call), ...unknownPartsIn(message.content)],
    stopSequence: stopOf(choice, call.request.stop),
    sources: collectSources((sources, out) => {
      sources.takeAnnotations(message.annotations, 0, out)
      takeLists(body, sources, out)
    }),
    usage: decodeUsage(body.usage ?? usage, call)
  }
})
