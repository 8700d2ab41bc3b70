import { Predicate, Schema } from "effect"
import type { ChatEvent, FinishReason, Usage } from "../../domain/Chat.ts"
import { answerDecoder, argumentsText, askedStop, usageOf } from "../chat/Answer.ts"
import { asksForAnHour } from "../chat/CacheMarks.ts"
import type { ChatCall } from "../chat/ChatClient.ts"
import { collectSources, type Sources } from "../chat/Sources.ts"
import { Arguments, fields, lenient, Text } from "../chat/WireSchema.ts"
import { asCount, asFields, asList, type Fields } from "../client/Json.ts"
import type { Options } from "./Options.ts"

export const textOf = (content: unknown): string =>
  typeof content === "string"
    ? content
    : asList(content)
        .map((part) => textOf(asFields(part).text))
        .join("")

export const errorIn = (body: Fields): Fields | undefined => {
  if (Boolean(body.error) || body.object === "error") return body
  const { error } = asFields(asList(body.choices)[0])
  return error ? { error } : undefined
}

export const isBreak = (reason: unknown): boolean => reason === "error" || reason === "insufficient_system_resource"

const reasons: ReadonlyMap<unknown, FinishReason> = new Map([
  ["length", "length"],
  ["max_tokens", "length"],
  ["model_length", "length"],
  ["content_filter", "content_filter"]
])

export const finishReason = (reason: unknown): FinishReason | undefined => reasons.get(reason)

/** Where hosts name the stop sequence that was met; a token's number is none. */
export const stopOf = (choice: Fields, stops: ReadonlyArray<string>): string | undefined =>
  askedStop(choice.matched_stop, stops) ?? askedStop(choice.stop_reason, stops)

/** Whether a body lists what a search found: Perplexity's and xAI's, Zhipu's and Qwen's names. */
export const hasLists = ({ citations, search_info, search_results, web_search }: Fields): boolean =>
  (citations ?? search_results ?? web_search ?? search_info ?? undefined) !== undefined

/** Of the lists of one host the one with titles comes first. */
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

/** Most hosts do not tell how long they keep what they write: as long as the request says. */
const countHour = (ofPrompt: Fields, written: number, call: Call | undefined): number => {
  const { cache_creation_token_details: split, cache_write_1h_tokens: own } = ofPrompt
  const reported = asFields(split).ephemeral_1h_input_tokens ?? own
  if (reported !== undefined) return asCount(reported)
  return written > 0 && call !== undefined && sendsForAnHour(call) ? written : 0
}

export const decodeUsage = (usage: unknown, call: Call | undefined): Usage | undefined => {
  if (!Predicate.isRecord(usage)) return undefined
  const ofPrompt = asFields(usage.prompt_tokens_details)
  const prompt = asCount(usage.prompt_tokens)
  const reported = asCount(usage.completion_tokens)
  if (prompt === 0 && reported === 0) return undefined
  const reasoning = asCount(asFields(usage.completion_tokens_details).reasoning_tokens)
  const cacheWrite = asCount(ofPrompt.cache_write_tokens)
  // Some hosts leave reasoning out of the completion and count it in the total alone.
  const isApart = reasoning > 0 && asCount(usage.total_tokens) === prompt + reported + reasoning
  return usageOf({
    prompt,
    completion: isApart ? reported + reasoning : reported,
    cached: asCount(ofPrompt.cached_tokens ?? usage.prompt_cache_hit_tokens ?? usage.cached_tokens),
    cacheWrite,
    cacheWriteHour: countHour(ofPrompt, cacheWrite, call),
    reasoning,
    webSearches: countSearches(usage, call)
  })
}

const Texts = lenient(Schema.String, textOf)

const Message = Schema.Struct({
  content: Texts,
  refusal: Texts,
  reasoning_content: Texts,
  reasoning: Texts,
  tool_calls: lenient(
    Schema.Array(fields({ id: Text, function: fields({ name: Text, arguments: Arguments(argumentsText) }) })),
    asList
  ),
  annotations: Schema.Unknown
})

const Choice = Schema.Struct({
  message: Message,
  finish_reason: Schema.Unknown,
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
  if (isBreak(finish_reason)) return `finish_reason ${String(finish_reason)}`
  return {
    text: message.content,
    refusal: message.refusal,
    reasoning: message.reasoning_content || message.reasoning,
    calls: message.tool_calls.map(({ function: called, id }) => ({ id, ...called })),
    finish: finishReason(finish_reason),
    stopSequence: stopOf(choice, call.request.stop),
    sources: collectSources((sources, out) => {
      sources.takeAnnotations(message.annotations, 0, out)
      takeLists(body, sources, out)
    }),
    usage: decodeUsage(body.usage ?? usage, call)
  }
})
