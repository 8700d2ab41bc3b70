import { Either, Schema } from "effect"
import type { ChatEvent, Unread, Usage } from "../../domain/Chat.ts"
import { noUsage } from "../../domain/Pricing.ts"
import type { ProviderFailure } from "../../services/routing/Provider.ts"
import {
  Arguments,
  answerDecoder,
  argumentsText,
  eventsOf,
  fields,
  finishOf,
  pushEnd,
  pushUnread,
  records,
  Text,
  unreadableArguments
} from "../chat/Answer.ts"
import { type StreamedCall, StreamedCalls } from "../chat/CallArguments.ts"
import type { ChatCall } from "../chat/ChatClient.ts"
import type { ChatDecoder, StreamOutcome } from "../chat/ChatStream.ts"
import { type End, endReasons, readEnd, UnreadBlocks, unknownTypes } from "../chat/EndReasons.ts"
import { type HostCounts, readCacheCounts, readUsage, unexplainedIn } from "../chat/HostUsage.ts"
import { collectSources, Sources } from "../chat/Sources.ts"
import {
  amendFailure,
  type DecodeFailure,
  decodeFailure as decodeConvention,
  hasFailedStatus,
  readHostError
} from "../client/Classification.ts"
import { asCount, asFields, asList, asRecords, asText, type Fields, parseJson } from "../client/Json.ts"
import { withStatedCost } from "../client/RouteOptions.ts"
import type { Options } from "./ResponsesRequest.ts"

/** The `status` of a response that has ended. */
const statuses = endReasons({
  complete: ["completed"],
  length: ["incomplete"],
  break: ["failed", "cancelled", "canceled", "in_progress", "queued", "expired"]
})

/** `incomplete_details.reason`. */
const incompleteReasons = endReasons({
  length: ["max_output_tokens", "max_tokens", "length", "model_context_window_exceeded"],
  content_filter: ["content_filter"]
})

/** Output items that hold nothing for a client of another wire: calls of tools that the host runs, and their results. */
const silentItems: ReadonlySet<unknown> = new Set([
  "reasoning",
  "web_search_call",
  "file_search_call",
  "computer_call",
  "computer_call_output",
  "code_interpreter_call",
  "image_generation_call",
  "local_shell_call",
  "local_shell_call_output",
  "shell_call",
  "shell_call_output",
  "apply_patch_call",
  "apply_patch_call_output",
  "mcp_call",
  "mcp_list_tools",
  "mcp_approval_request",
  "mcp_approval_response",
  "tool_search_call",
  "tool_search_output",
  "compaction"
])

const paragraph = "\n\n"

/** The host has a fee for each search; pages that it opens or looks through are free. */
const isSearch = (item: unknown): boolean => {
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
const unexplainedUsage = (usage: unknown): Unread | undefined => unexplainedIn(countsIn(usage, 0))

/** Some hosts answer 200 with an error alone. */
export const errorIn = (body: Fields): Fields | undefined =>
  Boolean(body.error) || body.status === "failed" || body.object === "error" || hasFailedStatus(body) ? body : undefined

/** How a response ended, by its status and by what made it incomplete. */
const readStatus = (status: unknown, cutBy: unknown): End => {
  const end = readEnd(statuses, status)
  return end.finish !== "length" || end.unread !== undefined || cutBy === undefined || cutBy === null
    ? end
    : readEnd(incompleteReasons, cutBy)
}

/** The client knows a call by `call_id`, not by the item's `id`. */
const callIdOf = (item: { readonly call_id?: unknown; readonly id?: unknown }): string =>
  asText(item.call_id) || asText(item.id)

/** A custom call's input is any text. */
const isCall = ({ type }: { readonly type?: unknown }): boolean =>
  type === "function_call" || type === "custom_tool_call"

const isTextCall = ({ type }: { readonly type?: unknown }): boolean => type === "custom_tool_call"

const knownItems: ReadonlySet<unknown> = new Set([...silentItems, "message", "function_call", "custom_tool_call"])
const knownParts: ReadonlySet<unknown> = new Set(["output_text", "refusal"])

/** Items of an output, and parts of its messages, of unknown types. */
const unknownItemsIn = (output: ReadonlyArray<unknown>): ReadonlyArray<Unread> => {
  const messages = output.map(asFields).filter(({ type }) => type === "message")
  const parts = messages.flatMap(({ content }) => asList(content))
  return [...unknownTypes(output, knownItems), ...unknownTypes(parts, knownParts)]
}

/** What a response's messages say. */
const textIn = (output: unknown): string =>
  asRecords(output)
    .flatMap(({ content, type }) => (type === "message" ? asRecords(content) : []))
    .map(({ refusal, text }) => asText(text) + asText(refusal))
    .join("")

/** Takes the annotations of a response's texts, which count from the beginning of their own text. */
const takeSources = (output: unknown, sources: Sources, out: Array<ChatEvent>): void => {
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
export const decodeFailure: DecodeFailure = (account, response, nowMillis) => {
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

/** Deltas name their item or, where item ids change, its output position. */
const makeCallDecoder = (newId: () => string) => {
  const calls = new StreamedCalls()
  const byCallId = new Map<unknown, StreamedCall>()
  const byItem = new Map<unknown, StreamedCall>()
  const byPosition = new Map<unknown, StreamedCall>()

  const find = (item: unknown, position: unknown) => byItem.get(item) ?? byPosition.get(position)

  /** A call's item begins, or is there as a whole. */
  const takeItem = (event: Fields, item: Fields, out: Array<ChatEvent>): StreamOutcome => {
    const hasCallId = asText(item.call_id) !== ""
    const known = hasCallId ? byCallId.get(item.call_id) : find(item.id, event.output_index)
    const text = argumentsText(item.arguments ?? item.input)
    if (text === undefined) return unreadableArguments
    if (known !== undefined) return calls.restate(known, text, out)
    const name = asText(item.name)
    if (name === "") return "a tool call without a name"
    const call = calls.begin(isTextCall(item))
    if (hasCallId) byCallId.set(item.call_id, call)
    if (typeof item.id === "string") byItem.set(item.id, call)
    if (typeof event.output_index === "number") byPosition.set(event.output_index, call)
    return calls.open(call, callIdOf(item) || newId(), name, text, out)
  }

  const takePiece = (event: Fields, piece: unknown, out: Array<ChatEvent>): StreamOutcome => {
    const call = find(event.item_id, event.output_index)
    const text = argumentsText(piece)
    if (call === undefined) return "arguments of a call that never began"
    if (text === undefined) return unreadableArguments
    return calls.append(call, text, out)
  }

  const takeEnd = (event: Fields, out: Array<ChatEvent>): StreamOutcome => {
    const call = find(event.item_id, event.output_index)
    const text = argumentsText(event.arguments ?? event.input)
    if (text === undefined) return unreadableArguments
    return call === undefined ? undefined : calls.restate(call, text, out)
  }

  /** Takes the calls that only the whole response has, and the rest of those that it alone completes. */
  const takeOutput = (output: ReadonlyArray<unknown>, out: Array<ChatEvent>): StreamOutcome => {
    const items = output.map((item, output_index): Fields => ({ ...asFields(item), output_index }))
    const given = items.filter(isCall)
    for (const item of given) {
      const known = byCallId.get(item.call_id)
      const isLeft = known === undefined ? find(item.id, item.output_index) === undefined : !known.isComplete
      const broken = isLeft ? takeItem(item, item, out) : undefined
      if (broken !== undefined) return broken
    }
    return undefined
  }

  return { calls, takeItem, takePiece, takeEnd, takeOutput }
}

/** `isShort`: the gateway can count the prompt. */
export const makeDecoder = (
  call: Pick<ChatCall<Options>, "native" | "newId" | "options">,
  isShort: boolean,
  failureIn: (error: Fields) => ProviderFailure
): ChatDecoder => {
  const { newId, options } = call
  const { calls, takeEnd, takeItem, takeOutput, takePiece } = makeCallDecoder(newId)
  const unreadBlocks = new UnreadBlocks()
  // Reasoning or a search, which the stream does not show in full.
  let hasHidden = false
  let hasText = false
  let hasRefusal = false
  const sources = new Sources(call.native !== undefined)
  /** Where the present part of the content begins, at which its annotations count. */
  let partStart = 0
  let length = 0
  let part: unknown
  let partOutput: unknown
  let reasoningPart: string | undefined
  let usage: Usage | undefined
  let searches = 0

  const pushText = (text: string, out: Array<ChatEvent>) => {
    if (text !== "") out.push({ type: "content", text })
    return text !== ""
  }

  const takeText = (event: Fields, out: Array<ChatEvent>) => {
    const text = asText(event.delta)
    if (event.content_index !== part || event.output_index !== partOutput) {
      part = event.content_index
      partOutput = event.output_index
      partStart = length
    }
    length += text.length
    hasText = pushText(text, out) || hasText
  }

  const pushReasoning = (event: Fields, out: Array<ChatEvent>) => {
    hasHidden = true
    const text = asText(event.delta)
    if (text === "") return
    const part = [event.output_index, event.summary_index, event.content_index].join(" ")
    const isNext = reasoningPart !== undefined && reasoningPart !== part
    reasoningPart = part
    out.push({ type: "reasoning", text: isNext ? paragraph + text : text })
  }

  const end = (event: Fields, out: Array<ChatEvent>): StreamOutcome => {
    const response = asFields(event.response)
    const counted = decodeUsage(response.usage, Math.max(searches, countSearches(response.output)))
    usage = withStatedCost(counted, response, options)
    const error = event.type === "response.failed" ? response : errorIn(response)
    if (error !== undefined) return failureIn(error)
    const status = event.type === "response.incomplete" ? "incomplete" : response.status
    const { finish, isBreak, unread } = readStatus(status, asFields(response.incomplete_details).reason)
    if (isBreak) return `a response that ended ${asText(response.status)}`
    if (!hasText && !hasRefusal && !calls.hasAny && Array.isArray(response.output)) {
      const answer = decodeAnswer(response, newId, call)
      if (Either.isLeft(answer)) return answer.left
      const reasoning = reasoningPart === undefined ? answer.right.reasoning : undefined
      out.push(...eventsOf({ ...answer.right, usage, reasoning }))
      return "whole"
    }
    if (!hasText && !hasRefusal) pushText(textIn(response.output), out)
    takeSources(response.output, sources, out)
    const broken = takeOutput(asList(response.output), out) ?? calls.close(out)
    if (broken !== undefined) return broken
    unreadBlocks.take(asList(response.output), knownItems, out)
    pushUnread(out, unread, unexplainedUsage(response.usage))
    return pushEnd(out, finishOf(finish, { ...calls.ended, isRefusal: hasRefusal }), usage)
  }

  const take = (event: Fields, out: Array<ChatEvent>): StreamOutcome => {
    switch (event.type) {
      case "response.output_text.delta":
        takeText(event, out)
        return undefined
      case "response.output_text.annotation.added":
        sources.takeAnnotations([event.annotation], partStart, out)
        return undefined
      case "response.refusal.delta":
        hasRefusal = pushText(asText(event.delta), out) || hasRefusal
        return undefined
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        pushReasoning(event, out)
        return undefined
      case "response.output_item.added":
      case "response.output_item.done": {
        const item = asFields(event.item)
        if (isCall(item)) return takeItem(event, item, out)
        if (item.type !== "message") hasHidden = true
        if (event.type === "response.output_item.done") {
          unreadBlocks.take([item], knownItems, out)
          if (item.type === "message") unreadBlocks.take(asList(item.content), knownParts, out)
        }
        if (event.type === "response.output_item.done" && isSearch(item)) {
          searches += 1
          out.push({ type: "usage", usage: { ...noUsage, webSearches: searches } })
        }
        return undefined
      }
      case "response.function_call_arguments.delta":
      case "response.custom_tool_call_input.delta":
        return takePiece(event, event.delta, out)
      case "response.function_call_arguments.done":
      case "response.custom_tool_call_input.done":
        return takeEnd(event, out)
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
        return end(event, out)
      default:
        return undefined
    }
  }

  const begins = ({ item, output_index }: Fields) => item !== undefined || output_index !== undefined

  return { take, begins, usage: () => usage, isCountable: () => isShort && !hasHidden }
}
