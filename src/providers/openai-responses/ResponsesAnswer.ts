import { Either, Schema } from "effect"
import type { ChatEvent, UnknownPart, Usage } from "../../domain/Chat.ts"
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
} from "../chat/AnswerReaders.ts"
import { type StreamedCall, StreamedCalls } from "../chat/CallArguments.ts"
import type { ChatCall } from "../chat/ChatClient.ts"
import { type End, endReasons, readEnd, UnreadBlocks, unknownTypes } from "../chat/EndReasons.ts"
import { findUnexplained, type ProviderCounts, readCacheCounts, readUsage } from "../chat/ProviderUsage.ts"
import { collectSources, Sources } from "../chat/Sources.ts"
import type { ChatDecoder, StreamOutcome } from "../chat/WireStream.ts"
import {
  amendFailure,
  type DecodeFailure,
  decodeFailure as decodeDefault,
  hasFailedStatus,
  readProviderError
} from "../client/Classification.ts"
import { asCount, asFields, asList, asRecords, asText, type Fields, parseJson } from "../client/JsonFields.ts"
import { withStatedCost } from "../client/RouteOptions.ts"
import type { Options } from "./ResponsesRequest.ts"

/** Values of `status` of an ended response. */
const statuses = endReasons({
  complete: ["completed"],
  length: ["incomplete"],
  failure: ["failed", "cancelled", "canceled", "in_progress", "queued", "expired"]
})

/** Values of `incomplete_details.reason`. */
const incompleteReasons = endReasons({
  length: ["max_output_tokens", "max_tokens", "length", "model_context_window_exceeded"],
  content_filter: ["content_filter"]
})

/**
 * Output items that mean nothing to clients of other wire formats: reasoning, and calls and results of the provider's
 * tools.
 */
const ignoredItems: ReadonlySet<unknown> = new Set([
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

const paragraphBreak = "\n\n"

/** The provider charges for each search. Opening a page or searching in it is free. */
const isSearch = (item: unknown): boolean => {
  const { action, status, type } = asFields(item)
  const isDone = status === "completed" || status === undefined
  return type === "web_search_call" && isDone && (asFields(action).type ?? "search") === "search"
}

export const countSearches = (output: unknown): number => asList(output).filter(isSearch).length

const countsIn = (usage: unknown, webSearches: number): ProviderCounts => {
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

const unexplainedUsage = (usage: unknown): UnknownPart | undefined => findUnexplained(countsIn(usage, 0))

/** Some providers send only an error with status 200. */
export const errorIn = (body: Fields): Fields | undefined =>
  Boolean(body.error) || body.status === "failed" || body.object === "error" || hasFailedStatus(body) ? body : undefined

/** Reads how a response ended from its status and the reason for an incomplete one. */
const readStatus = (status: unknown, incompleteReason: unknown): End => {
  const end = readEnd(statuses, status)
  return end.finish !== "length" ||
    end.unread !== undefined ||
    incompleteReason === undefined ||
    incompleteReason === null
    ? end
    : readEnd(incompleteReasons, incompleteReason)
}

/** Clients refer to a call by `call_id`, not by the item's `id`. */
const callIdOf = (item: { readonly call_id?: unknown; readonly id?: unknown }): string =>
  asText(item.call_id) || asText(item.id)

const isCall = ({ type }: { readonly type?: unknown }): boolean =>
  type === "function_call" || type === "custom_tool_call"

/** Whether the input of a call is plain text. */
const isTextCall = ({ type }: { readonly type?: unknown }): boolean => type === "custom_tool_call"

const knownItems: ReadonlySet<unknown> = new Set([...ignoredItems, "message", "function_call", "custom_tool_call"])
const knownParts: ReadonlySet<unknown> = new Set(["output_text", "refusal"])

const unknownItemsIn = (output: ReadonlyArray<unknown>): ReadonlyArray<UnknownPart> => {
  const messages = output.map(asFields).filter(({ type }) => type === "message")
  const parts = messages.flatMap(({ content }) => asList(content))
  return [...unknownTypes(output, knownItems), ...unknownTypes(parts, knownParts)]
}

const textIn = (output: unknown): string =>
  asRecords(output)
    .flatMap(({ content, type }) => (type === "message" ? asRecords(content) : []))
    .map(({ refusal, text }) => asText(text) + asText(refusal))
    .join("")

/** Adds the annotations of a response. Their offsets count from the start of their own text. */
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

/** An unknown item id comes from the customer, so the request is at fault, not the route. */
export const decodeFailure: DecodeFailure = (account, response, nowMillis) => {
  const failure = decodeDefault(account, response, nowMillis)
  const { message = "" } = readProviderError(parseJson(response.body)) ?? {}
  return failure.status === 404 && message.startsWith("Item with id")
    ? amendFailure(failure, { class: "request" })
    : failure
}

type Call = Pick<ChatCall<unknown>, "native">

export const decodeAnswer = answerDecoder(Body, "no output in the response", (body, { native }: Call) => {
  const { incomplete_details, output, status, usage } = body
  const end = readStatus(status, incomplete_details.reason)
  if (end.isFailure) return `a response that is ${asText(status)}`
  const findItems = (type: string) => output.filter((item) => item.type === type)
  const parts = findItems("message").flatMap(({ content }) => content)
  const reasoning = findItems("reasoning").flatMap(({ content, summary }) => [...summary, ...content])
  return {
    text: parts.map(({ text, type }) => (type === "output_text" ? text : "")).join(""),
    refusal: parts.map(({ refusal }) => refusal).join(""),
    reasoning: reasoning
      .map(({ text }) => text)
      .filter((text) => text !== "")
      .join(paragraphBreak),
    calls: output.filter(isCall).map((item) => {
      const input = item.arguments === "" ? item.input : item.arguments
      return { ...item, id: callIdOf(item), arguments: input, isText: isTextCall(item) }
    }),
    sources: collectSources((sources, out) => takeSources(output, sources, out), native !== undefined),
    finish: end.finish,
    unread: [end.unread, unexplainedUsage(usage), ...unknownItemsIn(output)],
    usage: decodeUsage(usage, countSearches(output))
  }
})

/** Deltas refer to their item by id or, on providers with changing ids, by output position. */
const makeCallDecoder = (newId: () => string) => {
  const calls = new StreamedCalls()
  const callsByCallId = new Map<unknown, StreamedCall>()
  const callsByItem = new Map<unknown, StreamedCall>()
  const callsByPosition = new Map<unknown, StreamedCall>()

  const find = (item: unknown, position: unknown) => callsByItem.get(item) ?? callsByPosition.get(position)

  /** Reads an item that starts a call, or contains all of it. */
  const takeItem = (event: Fields, item: Fields, out: Array<ChatEvent>): StreamOutcome => {
    const hasCallId = asText(item.call_id) !== ""
    const knownCall = hasCallId ? callsByCallId.get(item.call_id) : find(item.id, event.output_index)
    const text = argumentsText(item.arguments ?? item.input)
    if (text === undefined) return unreadableArguments
    if (knownCall !== undefined) return calls.completeArguments(knownCall, text, out)
    const name = asText(item.name)
    if (name === "") return "a tool call without a name"
    const call = calls.begin(isTextCall(item))
    if (hasCallId) callsByCallId.set(item.call_id, call)
    if (typeof item.id === "string") callsByItem.set(item.id, call)
    if (typeof event.output_index === "number") callsByPosition.set(event.output_index, call)
    return calls.open(call, callIdOf(item) || newId(), name, text, out)
  }

  const takePiece = (event: Fields, piece: unknown, out: Array<ChatEvent>): StreamOutcome => {
    const call = find(event.item_id, event.output_index)
    const text = argumentsText(piece)
    if (call === undefined) return "arguments of an unknown tool call"
    if (text === undefined) return unreadableArguments
    return calls.append(call, text, out)
  }

  const takeEnd = (event: Fields, out: Array<ChatEvent>): StreamOutcome => {
    const call = find(event.item_id, event.output_index)
    const text = argumentsText(event.arguments ?? event.input)
    if (text === undefined) return unreadableArguments
    return call === undefined ? undefined : calls.completeArguments(call, text, out)
  }

  /** Reads calls, and arguments of calls, that only the complete response contains. */
  const takeOutput = (output: ReadonlyArray<unknown>, out: Array<ChatEvent>): StreamOutcome => {
    const items = output.map((item, output_index): Fields => ({ ...asFields(item), output_index }))
    const callItems = items.filter(isCall)
    for (const item of callItems) {
      const knownCall = callsByCallId.get(item.call_id)
      const isUnfinished =
        knownCall === undefined ? find(item.id, item.output_index) === undefined : !knownCall.isComplete
      const error = isUnfinished ? takeItem(item, item, out) : undefined
      if (error !== undefined) return error
    }
    return undefined
  }

  return { calls, takeItem, takePiece, takeEnd, takeOutput }
}

/** `isShort`: the prompt is too short for the provider's cache, so the gateway can count the usage itself. */
export const makeDecoder = (
  call: Pick<ChatCall<Options>, "native" | "newId" | "options">,
  isShort: boolean,
  failureIn: (error: Fields) => ProviderFailure
): ChatDecoder => {
  const { newId, options } = call
  const { calls, takeEnd, takeItem, takeOutput, takePiece } = makeCallDecoder(newId)
  const unreadBlocks = new UnreadBlocks()
  // Whether the model reasoned or searched. The stream does not show all of that.
  let hasHiddenOutput = false
  let hasText = false
  let hasRefusal = false
  const sources = new Sources(call.native !== undefined)
  /** The start of the current part in the content. Its annotations count from there. */
  let partStart = 0
  let length = 0
  let contentIndex: unknown
  let outputIndex: unknown
  let reasoningPart: string | undefined
  let usage: Usage | undefined
  let searches = 0

  const pushText = (text: string, out: Array<ChatEvent>) => {
    if (text !== "") out.push({ type: "content", text })
    return text !== ""
  }

  const takeText = (event: Fields, out: Array<ChatEvent>) => {
    const text = asText(event.delta)
    if (event.content_index !== contentIndex || event.output_index !== outputIndex) {
      contentIndex = event.content_index
      outputIndex = event.output_index
      partStart = length
    }
    length += text.length
    hasText = pushText(text, out) || hasText
  }

  const pushReasoning = (event: Fields, out: Array<ChatEvent>) => {
    hasHiddenOutput = true
    const text = asText(event.delta)
    if (text === "") return
    const part = [event.output_index, event.summary_index, event.content_index].join(" ")
    const isNext = reasoningPart !== undefined && reasoningPart !== part
    reasoningPart = part
    out.push({ type: "reasoning", text: isNext ? paragraphBreak + text : text })
  }

  const end = (event: Fields, out: Array<ChatEvent>): StreamOutcome => {
    const response = asFields(event.response)
    const decodedUsage = decodeUsage(response.usage, Math.max(searches, countSearches(response.output)))
    usage = withStatedCost(decodedUsage, response, options)
    const error = event.type === "response.failed" ? response : errorIn(response)
    if (error !== undefined) return failureIn(error)
    const status = event.type === "response.incomplete" ? "incomplete" : response.status
    const { finish, isFailure, unread } = readStatus(status, asFields(response.incomplete_details).reason)
    if (isFailure) return `a response that ended ${asText(response.status)}`
    if (!hasText && !hasRefusal && !calls.hasAny && Array.isArray(response.output)) {
      const answer = decodeAnswer(response, newId, call)
      if (Either.isLeft(answer)) return answer.left
      const reasoning = reasoningPart === undefined ? answer.right.reasoning : undefined
      out.push(...eventsOf({ ...answer.right, usage, reasoning }))
      return "complete"
    }
    if (!hasText && !hasRefusal) pushText(textIn(response.output), out)
    takeSources(response.output, sources, out)
    const violation = takeOutput(asList(response.output), out) ?? calls.close(out)
    if (violation !== undefined) return violation
    unreadBlocks.take(asList(response.output), knownItems, out)
    pushUnread(out, unread, unexplainedUsage(response.usage))
    return pushEnd(out, finishOf(finish, { ...calls.endState, isRefusal: hasRefusal }), usage)
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
        if (item.type !== "message") hasHiddenOutput = true
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

  const startsGeneration = ({ item, output_index }: Fields) => item !== undefined || output_index !== undefined

  return { take, startsGeneration, usage: () => usage, isCountable: () => isShort && !hasHiddenOutput }
}
