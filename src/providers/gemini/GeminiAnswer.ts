import { Either, Predicate } from "effect"
import type { ChatAnswer, ChatEvent, UnknownPart, Usage } from "../../domain/Chat.ts"
import type { ProviderAccount } from "../../domain/Model.ts"
import { type FailureClass, ProviderFailure } from "../../services/routing/Provider.ts"
import {
  encodeArguments,
  finishOf,
  joinEvents,
  pushEnd,
  pushUnread,
  pushUsage,
  unreadableArguments,
  usageOf
} from "../chat/AnswerReaders.ts"
import type { ChatCall } from "../chat/ChatClient.ts"
import { endReasons, googleReasons, readEnd, UnreadBlocks } from "../chat/EndReasons.ts"
import { tagSignature } from "../chat/Messages.ts"
import { findUnexplained } from "../chat/ProviderUsage.ts"
import { citationOf, rangeOf, Sources } from "../chat/Sources.ts"
import type { ChatDecoder, StreamOutcome } from "../chat/WireStream.ts"
import {
  amendFailure,
  decodeFailure as decodeDefault,
  protocolFailure,
  readProviderError,
  withSpent
} from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { asCount, asFields, asList, asRecords, asText, type Fields, parseJson } from "../client/JsonFields.ts"
import type { Options } from "./GeminiRequest.ts"

const reasons = endReasons({
  // Other providers with Google's format send `function_call` for calls.
  complete: ["stop", "function_call"],
  length: ["max_tokens", "continuation"],
  content_filter: googleReasons.content_filter,
  failure: [...googleReasons.failure, "no_image", "image_other"]
})

/** Fields of a part that the gateway reads or may ignore: descriptions, and calls of the provider's tools. */
const knownFields: ReadonlySet<string> = new Set([
  "text",
  "thought",
  "thoughtSignature",
  "functionCall",
  "toolCall",
  "toolResponse",
  "executableCode",
  "codeExecutionResult",
  "partMetadata",
  "videoMetadata",
  "mediaResolution"
])

/** The provider bills each query once, even if the model repeats it. */
const queriesOf = (candidate: unknown): ReadonlyArray<string> =>
  asList(asFields(asFields(candidate).groundingMetadata).webSearchQueries).flatMap((query) => asText(query) || [])

const countSearches = (queries: ReadonlySet<string>, { search_fee: fee = "search" }: Options): number =>
  fee === "request" ? Math.min(queries.size, 1) : queries.size

/** The provider excludes thoughts from `candidatesTokenCount`, and search results from `promptTokenCount`. */
const countsIn = (meta: unknown, webSearches: number) => {
  const counts = asFields(meta)
  const reasoning = asCount(counts.thoughtsTokenCount)
  return {
    prompt: asCount(counts.promptTokenCount) + asCount(counts.toolUsePromptTokenCount),
    completion: asCount(counts.candidatesTokenCount) + reasoning,
    cached: asCount(counts.cachedContentTokenCount),
    cacheWrite: 0,
    reasoning,
    webSearches
  }
}

export const decodeUsage = (meta: unknown, webSearches: number): Usage | undefined =>
  usageOf(countsIn(meta, webSearches))

const unexplainedUsage = (meta: unknown): UnknownPart | undefined => {
  const totals = { ...countsIn(meta, 0), cached: 0, reasoning: 0 }
  return findUnexplained({ ...totals, total: asCount(asFields(meta).totalTokenCount) })
}

/** Reads a source: a web page, a place on a map, or a retrieved document. */
const sourceOf = (chunk: Fields) => {
  const source = asFields(chunk.web ?? chunk.maps ?? chunk.retrievedContext)
  return { url: source.uri, title: source.title, quote: source.text }
}

type UnitsAt = (byteOffset: unknown) => number

const isContinuationByte = (byte = 0): boolean => byte >> 6 === 0b10

/** Converts byte offsets to UTF-16 offsets. Continues from the last offset, because segments usually come in order. */
const makeUnitsAt = (bytes: Buffer): UnitsAt => {
  let lastByte = 0
  let units = 0
  return (byteOffset) => {
    const end = Math.min(Math.max(Math.trunc(Number(byteOffset)) || 0, 0), bytes.length)
    if (end < lastByte || isContinuationByte(bytes[lastByte])) {
      lastByte = 0
      units = 0
    }
    units += bytes.toString("utf8", lastByte, end).length
    lastByte = end
    return units
  }
}

/** Returns the range of a segment, whose offsets count bytes. */
const rangeIn = (content: string, unitsAt: UnitsAt, { endIndex, startIndex = 0, text }: Fields) => {
  const start = unitsAt(startIndex)
  const end = unitsAt(endIndex)
  const part = asText(text)
  if (part === "" || content.slice(start, end) === part) return rangeOf(start, end)
  // Some providers count from the start of a part of the content.
  const position = content.indexOf(part)
  return position < 0 ? {} : rangeOf(position, position + part.length)
}

/** Collects sources, which may arrive with any chunk. */
class Grounding {
  readonly #candidates: Array<Fields> = []
  #content = ""

  take(candidate: Fields): void {
    if ((candidate.groundingMetadata ?? candidate.citationMetadata ?? undefined) !== undefined) {
      this.#candidates.push(candidate)
    }
  }

  /** Adds a piece of the content. Segments refer to it. */
  takeText(text: string): void {
    this.#content += text
  }

  /** Emits the citations. Called once, at the end. */
  push(out: Array<ChatEvent>): void {
    if (this.#candidates.length === 0) return
    const sources = new Sources()
    const unitsAt = makeUnitsAt(Buffer.from(this.#content))
    const cite = (source: Parameters<typeof citationOf>[0] | undefined, segment?: Fields) => {
      const citation = source && citationOf(source, segment && rangeIn(this.#content, unitsAt, segment))
      if (citation !== undefined) sources.take(citation, out)
    }
    const groundings = this.#candidates.map(({ groundingMetadata }) => {
      const { groundingChunks, groundingSupports } = asFields(groundingMetadata)
      return {
        chunkSources: asList(groundingChunks).map((chunk) => sourceOf(asFields(chunk))),
        supports: groundingSupports
      }
    })
    for (const { chunkSources, supports } of groundings) {
      for (const { groundingChunkIndices, segment } of asRecords(supports)) {
        for (const index of asList(groundingChunkIndices)) cite(chunkSources[Number(index)], asFields(segment))
      }
    }
    for (const { chunkSources } of groundings) for (const source of chunkSources) cite(source)
    for (const { citationMetadata } of this.#candidates) {
      const { citationSources, citations } = asFields(citationMetadata)
      for (const source of asRecords(citationSources ?? citations)) {
        cite({ url: source.uri, title: source.title, quote: undefined }, source)
      }
    }
  }
}

type Context = Pick<ChatCall<Options>, "route" | "request" | "options" | "newId">

export const errorIn = ({ error }: Fields): Fields | undefined => (error ? { error } : undefined)

/** Messages about fields that only the gateway or the route's options set. */
const gatewayFieldMessage = /thinking[ _]?(level|budget|config)|thinking (is|mode)|unknown name|cannot find field/i
const moderationMessage = /responsible ai|sensitive words/i
const accountMessage = /credits are depleted|spend(ing)? (cap|limit)/i
const turnMessage = /ending with a model turn|function (call|response) turn|function response parts/i
const imageMessage = /\bimages?\b|mime ?type/i
const secondsPattern = /^(\d{1,9}(?:\.\d{1,9})?)s$/

/** Reads the delay in `RetryInfo`, for example `7.5s`, in seconds. */
const readRetryDelay = (body: unknown): number | undefined => {
  const { error } = asFields(Array.isArray(body) ? body[0] : body)
  for (const { retryDelay } of asRecords(asFields(error).details)) {
    const digits = secondsPattern.exec(asText(retryDelay))?.[1]
    if (digits !== undefined) return Number(digits)
  }
  return undefined
}

const classify = (defaultClass: FailureClass, message: string): FailureClass => {
  if (defaultClass === "limit" && accountMessage.test(message)) return "account"
  if (defaultClass !== "request") return defaultClass
  if (moderationMessage.test(message)) return "moderation"
  return gatewayFieldMessage.test(message) ? "retry" : defaultClass
}

export const decodeFailure = (
  account: ProviderAccount,
  response: UpstreamResponse,
  nowMillis: number,
  imageParam: "messages" | "image" = "messages"
): ProviderFailure => {
  const failure = decodeDefault(account, response, nowMillis, imageParam)
  const body = parseJson(response.body)
  const message = readProviderError(body)?.message ?? ""
  const kind = classify(failure.class, message)
  const param = imageMessage.test(message) ? imageParam : turnMessage.test(message) ? "messages" : undefined
  return amendFailure(failure, {
    class: kind,
    retryAfterSeconds: failure.retryAfterSeconds ?? readRetryDelay(body),
    param: kind === "request" ? param : undefined
  })
}

/** Whether a filter refused. Excludes recitations, because another route may succeed. */
export const isFiltered = (reason: string): boolean =>
  !reason.endsWith("RECITATION") && readEnd(reasons, reason).finish === "content_filter"

export const moderationFailure = (status: number, reason: unknown): ProviderFailure =>
  new ProviderFailure({ class: "moderation", status, detail: `moderated: ${String(reason).slice(0, 100)}` })

export const findBlockReason = ({ promptFeedback }: Fields): string | undefined =>
  asText(asFields(promptFeedback).blockReason) || undefined

/** Matches failure reasons that the gateway does not know yet. */
const failurePrefix = /^(MALFORMED|UNEXPECTED|TOO_MANY|MISSING)_/

const isFailureReason = (reason: string): boolean => readEnd(reasons, reason).isFailure || failurePrefix.test(reason)

const providerIdPattern = /^[\w.:-]{1,64}$/

/** This wire format has no end event, so a stream with a `finishReason` is complete. */
export const makeDecoder = ({ newId, options, request, route }: Context): ChatDecoder => {
  const ids = new Set<string>()
  // The provider cannot limit calls to one, so further calls are dropped.
  const maxCalls = request.parallelToolCalls === false ? 1 : Number.POSITIVE_INFINITY
  let reason = ""
  let usageMetadata: unknown
  let hasOutput = false
  const queries = new Set<string>()
  const grounding = new Grounding()
  const unreadBlocks = new UnreadBlocks()
  const usage = () => decodeUsage(usageMetadata, countSearches(queries, options))

  const claimId = (providerCallId: unknown): string => {
    const id =
      typeof providerCallId === "string" && providerIdPattern.test(providerCallId) && !ids.has(providerCallId)
        ? providerCallId
        : newId()
    ids.add(id)
    return id
  }

  const takeCall = ({ args, id, name }: Fields, thoughtSignature: unknown, out: Array<ChatEvent>): StreamOutcome => {
    if (typeof name !== "string" || name === "") return "a tool call without a name"
    if (ids.size >= maxCalls) return undefined
    const text = encodeArguments(args)
    if (text === undefined) return unreadableArguments
    const signature = options.call_signatures === false ? undefined : tagSignature(route, thoughtSignature)
    const index = ids.size
    const call = { type: "tool_call", index, id: claimId(id), name, arguments: text || "{}" } as const
    hasOutput = true
    out.push({ ...call, ...(signature && { signature }) })
    return undefined
  }

  const takeUnknown = (part: Fields, out: Array<ChatEvent>): undefined => {
    for (const name of Object.keys(part)) if (!knownFields.has(name)) unreadBlocks.add(name, out)
  }

  const takePart = (part: Fields, out: Array<ChatEvent>): StreamOutcome => {
    if (Predicate.isRecord(part.functionCall)) return takeCall(part.functionCall, part.thoughtSignature, out)
    const text = asText(part.text)
    if (text === "") return takeUnknown(part, out)
    hasOutput = true
    const type = part.thought === true ? "reasoning" : "content"
    if (type === "content") grounding.takeText(text)
    out.push({ type, text })
    return undefined
  }

  const checkFinish = (): StreamOutcome => {
    const shortReason = reason.slice(0, 100)
    if (isFailureReason(reason)) return `finishReason ${shortReason}`
    const end = readEnd(reasons, reason)
    if (hasOutput || (end.finish === "length" && end.unread === undefined)) return undefined
    return isFiltered(reason) ? moderationFailure(200, reason) : `an empty candidate, finishReason ${shortReason}`
  }

  const takeCandidate = (chunk: Fields, out: Array<ChatEvent>): StreamOutcome => {
    const candidate = asList(chunk.candidates)[0]
    if (!Predicate.isRecord(candidate)) {
      const blockReason = findBlockReason(chunk)
      return blockReason === undefined || hasOutput ? undefined : moderationFailure(200, blockReason)
    }
    for (const query of queriesOf(candidate)) queries.add(query)
    grounding.take(candidate)
    for (const part of asList(asFields(candidate.content).parts)) {
      const error = takePart(asFields(part), out)
      if (error !== undefined) return error
    }
    const finishReason = asText(candidate.finishReason)
    if (finishReason === "") return undefined
    reason = finishReason
    return checkFinish()
  }

  return {
    take: (chunk, out) => {
      const hasCounts = decodeUsage(chunk.usageMetadata, 0) !== undefined
      if (hasCounts) usageMetadata = chunk.usageMetadata
      const error = takeCandidate(chunk, out)
      if (error === undefined && (hasCounts || reason !== "")) pushUsage(out, usage(), reason === "")
      return error
    },
    finish: (out) => {
      if (reason === "") return undefined
      grounding.push(out)
      const { finish, unread } = readEnd(reasons, reason)
      pushUnread(out, unread, unexplainedUsage(usageMetadata))
      return pushEnd(out, finishOf(finish, { hasCalls: ids.size > 0 }), usage())
    },
    startsGeneration: ({ candidates }) => Predicate.isRecord(asList(candidates)[0]),
    usage
  }
}

export const decodeAnswer = (body: unknown, context: Context): Either.Either<ChatAnswer, ProviderFailure> => {
  const { provider } = context.route
  const events: Array<ChatEvent> = []
  const decoder = makeDecoder(context)
  const fail = (error: ProviderFailure | string) =>
    Either.left(withSpent(typeof error === "string" ? protocolFailure(provider, 200, error) : error, decoder.usage()))
  for (const chunk of Array.isArray(body) ? body : [body]) {
    if (!Predicate.isRecord(chunk)) return fail("a response that is not an object")
    const error = errorIn(chunk)
    const outcome =
      error === undefined
        ? decoder.take(chunk, events)
        : decodeFailure(provider, { status: 200, headers: {}, body: JSON.stringify(error) }, 0)
    if (outcome !== undefined) return fail(outcome)
  }
  return decoder.finish?.(events) === "complete"
    ? Either.right(joinEvents(events))
    : fail("no candidate in the response")
}
