import { Schema } from "effect"
import type { ChatEvent, Unread, Usage } from "../../domain/Chat.ts"
import { answerDecoder, argumentsText } from "../chat/Answer.ts"
import type { ChatCall } from "../chat/ChatFormat.ts"
import { type End, readEnd, unknownTypes } from "../chat/EndReasons.ts"
import { type HostCounts, readCacheCounts, readUsage, unexplainedIn } from "../chat/HostUsage.ts"
import { collectSources, type Sources } from "../chat/Sources.ts"
import { Arguments, fields, records, Text } from "../chat/WireSchema.ts"
import {
  amendFailure,
  decodeFailure as decodeConvention,
  hasFailedStatus,
  readHostError
} from "../client/Classification.ts"
import { asCount, asFields, asList, asRecords, asText, type Fields, parseJson } from "../client/Json.ts"

import { incompleteReasons, silentItems, statuses } from "./EndReasons.ts"

export const paragraph = "\n\n"

/** The host has a fee for each search; pages that it opens or looks through are free. */
export const isSearch = (item: unknown): boolean => {
  const { action, status, type } = asFields(item)
  const isDone = status === "completed" || status === undefined
  return type === "web_search_call" && isDone && (asFields(action).type ?? "search") === "search"
}

export const countSearches = (output: unknown): number => asList(output).filter(isSearch).length

const countsIn = (usage: unknown, webSearches: number): HostCounts => {
  const counts = asFields(usage)
  return {
    prompt: asCount(counts.input_tokens),
    completion: asCount(counts.output_tokens),
    ...readCacheCounts(counts, asFields(counts.input_tokens_details)),
    reasoning: asCount(asFields(counts.output_tokens_details).reasoning_tokens),
    webSearches,
    total: asCount(counts.total_tokens)
  }
}

export const decodeUsage = (usage: unknown, webSearches: number): Usage | undefined =>
  readUsage(countsIn(usage, webSearches))

/** The tokens that the counts of an ended response do not explain. */
export const unexplainedUsage = (usage: unknown): Unread | undefined => unexplainedIn(countsIn(usage, 0))

/** Some hosts answer 200 with an error alone. */
export const errorIn = (body: Fields): Fields | undefined =>
  Boolean(body.error) || body.status === "failed" || body.object === "error" || hasFailedStatus(body) ? body : undefined

/** How a response ended, by its status and by what made it incomplete. */
export const readStatus = (status: unknown, cutBy: unknown): End => {
  const end = readEnd(statuses, status)
  return end.finish !== "length" || end.unread !== undefined || cutBy === undefined || cutBy === null
    ? end
    : readEnd(incompleteReasons, cutBy)
}

/** The client knows a call by `call_id`, not by the item's `id`. */
export const callIdOf = (item: { readonly call_id?: unknown; readonly id?: unknown }): string =>
  asText(item.call_id) || asText(item.id)

/** A custom call's input is any text. */
export const isCall = ({ type }: { readonly type?: unknown }): boolean =>
  type === "function_call" || type === "custom_tool_call"

export const isTextCall = ({ type }: { readonly type?: unknown }): boolean => type === "custom_tool_call"

export const knownItems: ReadonlySet<unknown> = new Set([
  ...silentItems,
  "message",
  "function_call",
  "custom_tool_call"
])
export const knownParts: ReadonlySet<unknown> = new Set(["output_text", "refusal"])

/** Items of an output, and parts of its messages, of unknown types. */
export const unknownItemsIn = (output: ReadonlyArray<unknown>): ReadonlyArray<Unread> => {
  const messages = output.map(asFields).filter(({ type }) => type === "message")
  const parts = messages.flatMap(({ content }) => asList(content))
  return [...unknownTypes(output, knownItems), ...unknownTypes(parts, knownParts)]
}

/** What a response's messages say. */
export const textIn = (output: unknown): string =>
  asRecords(output)
    .flatMap(({ content, type }) => (type === "message" ? asRecords(content) : []))
    .map(({ refusal, text }) => asText(text) + asText(refusal))
    .join("")

/** Takes the annotations of a response's texts, which count from the beginning of their own text. */
export const takeSources = (output: unknown, sources: Sources, out: Array<ChatEvent>): void => {
  let length = 0
  for (const item of asRecords(output)) {
    for (const { annotations, text, type } of item.type === "message" ? asRecords(item.content) : []) {
      if (type !== "output_text") continue
      sources.takeAnnotations(annotations, length, out)
      length += asText(text).length
    }
  }
}

const Texts = records(Schema.Struct({ type: Schema.Unknown, text: Text, refusal: Text, annotations: Schema.Unknown }))

const Item = Schema.Struct({
  type: Schema.Unknown,
  status: Schema.Unknown,
  action: Schema.Unknown,
  content: Texts,
  summary: Texts,
  id: Text,
  call_id: Text,
  name: Text,
  arguments: Arguments(argumentsText),
  input: Text
})

const Body = Schema.Struct({
  output: Schema.Array(Schema.Unknown).pipe(Schema.compose(records(Item))),
  status: Schema.Unknown,
  incomplete_details: fields({ reason: Schema.Unknown }),
  usage: Schema.Unknown
})

/** An item that a customer names is the request's fault, not the route's. */
export const decodeFailure: typeof decodeConvention = (account, response, nowMillis) => {
  const failure = decodeConvention(account, response, nowMillis)
  const { message = "" } = readHostError(parseJson(response.body)) ?? {}
  return failure.status === 404 && message.startsWith("Item with id")
    ? amendFailure(failure, { class: "request" })
    : failure
}

type Call = Pick<ChatCall<unknown>, "native">

export const decodeAnswer = answerDecoder(Body, "no output in the answer", (body, { native }: Call) => {
  const { incomplete_details, output, status, usage } = body
  const end = readStatus(status, incomplete_details.reason)
  if (end.isBreak) return `a response that is ${asText(status)}`
  const ofType = (type: string) => output.filter((item) => item.type === type)
  const parts = ofType("message").flatMap(({ content }) => content)
  const reasoning = ofType("reasoning").flatMap(({ content, summary }) => [...summary, ...content])
  return {
    text: parts.map(({ text, type }) => (type === "output_text" ? text : "")).join(""),
    refusal: parts.map(({ refusal }) => refusal).join(""),
    reasoning: reasoning
      .map(({ text }) => text)
      .filter((text) => text !== "")
      .join(paragraph),
    calls: output.filter(isCall).map((item) => {
      const given = item.arguments === "" ? item.input : item.arguments
      return { ...item, id: callIdOf(item), arguments: given, isText: isTextCall(item) }
    }),
    sources: collectSources((sources, out) => takeSources(output, sources, out), native !== undefined),
    finish: end.finish,
    unread: [end.unread, unexplainedUsage(usage), ...unknownItemsIn(output)],
    usage: decodeUsage(usage, countSearches(output))
  }
})
