import { Either, Predicate } from "effect"
import type { ChatAnswer, ChatEvent, Unread, Usage } from "../../domain/Chat.ts"
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
} from "../chat/Answer.ts"
import type { ChatCall } from "../chat/ChatClient.ts"
import type { ChatDecoder, StreamOutcome } from "../chat/ChatStream.ts"
import { endReasons, google, readEnd, UnreadBlocks } from "../chat/EndReasons.ts"
import { unexplainedIn } from "../chat/HostUsage.ts"
import { seal } from "../chat/Messages.ts"
import { citationOf, rangeOf, Sources } from "../chat/Sources.ts"
import {
  amendFailure,
  decodeFailure as decodeConvention,
  protocolFailure,
  readHostError,
  withSpent
} from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { asCount, asFields, asList, asRecords, asText, type Fields, parseJson } from "../client/Json.ts"
import type { Options } from "./GeminiRequest.ts"

const reasons = endReasons({
  // Hosts with Google's format use the second one for calls.
  complete: ["stop", "function_call"],
  length: ["max_tokens", "continuation"],
  content_filter: google.content_filter,
  break: [...google.break, "no_image", "image_other"]
})

/** Fields of a part that the gateway reads, that describe other fields, or that hold results of the host's tools. */
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

/** Each query once, however often the model repeats it. */
const queriesOf = (candidate: unknown): ReadonlyArray<string> =>
  asList(asFields(asFields(candidate).groundingMetadata).webSearchQueries).flatMap((query) => asText(query) || [])

const countSearches = (queries: ReadonlySet<string>, { search_fee: fee = "search" }: Options): number =>
  fee === "request" ? Math.min(queries.size, 1) : queries.size

/** Thoughts are counted beside the answer, search results beside the prompt. */
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

/** The tokens that the counts of an ended answer do not explain. */
const unexplainedUsage = (meta: unknown): Unread | undefined => {
  const whole = { ...countsIn(meta, 0), cached: 0, reasoning: 0 }
  return unexplainedIn({ ...whole, total: asCount(asFields(meta).totalTokenCount) })
}

/** A page that a search found, or a place on its map. */
const sourceOf = (chunk: Fields) => {
  const source = asFields(chunk.web ?? chunk.maps ?? chunk.retrievedContext)
  return { url: source.uri, title: source.title, quote: source.text }
}

type UnitsAt = (place: unknown) => number

const isWithinCharacter = (byte = 0): boolean => byte >> 6 === 0b10

/** How many UTF-16 units precede a byte. Goes on from the last place, since segments mostly come in order. */
const makeUnitsAt = (bytes: Buffer): UnitsAt => {
  let last = 0
  let units = 0
  return (place) => {
    const end = Math.min(Math.max(Math.trunc(Number(place)) || 0, 0), bytes.length)
    if (end < last || isWithinCharacter(bytes[last])) {
      last = 0
      units = 0
    }
    units += bytes.toString("utf8", last, end).length
    last = end
    return units
  }
}

/** The part of a text that a segment means: its offsets count bytes. */
const rangeIn = (content: string, unitsAt: UnitsAt, { endIndex, startIndex = 0, text }: Fields) => {
  const start = unitsAt(startIndex)
  const end = unitsAt(endIndex)
  const part = asText(text)
  if (part === "" || content.slice(start, end) === part) return rangeOf(start, end)
  // Some hosts count from the beginning of a part of the content.
  const found = content.indexOf(part)
  return found < 0 ? {} : rangeOf(found, found + part.length)
}

/** The sources of an answer, which may arrive in pieces with any chunk. */
class Grounding {
  readonly #candidates: Array<Fields> = []
  #content = ""

  take(candidate: Fields): void {
    if ((candidate.groundingMetadata ?? candidate.citationMetadata ?? undefined) !== undefined) {
      this.#candidates.push(candidate)
    }
  }

  /** Takes a piece of the content, in which the segments lie. */
  takeText(text: string): void {
    this.#content += text
  }

  /** Called once, at the end. */
  push(out: Array<ChatEvent>): void {
    if (this.#candidates.length === 0) return
    const sources = new Sources()
    const unitsAt = makeUnitsAt(Buffer.from(this.#content))
    const cite = (source: Parameters<typeof citationOf>[0] | undefined, segment?: Fields) => {
      const citation = source && citationOf(source, segment && rangeIn(this.#content, unitsAt, segment))
      if (citation !== undefined) sources.take(citation, out)
    }
    const given = this.#candidates.map(({ groundingMetadata }) => {
      const { groundingChunks, groundingSupports } = asFields(groundingMetadata)
      return { found: asList(groundingChunks).map((chunk) => sourceOf(asFields(chunk))), supports: groundingSupports }
    })
    for (const { found, supports } of given) {
      for (const { groundingChunkIndices, segment } of asRecords(supports)) {
        for (const index of asList(groundingChunkIndices)) cite(found[Number(index)], asFields(segment))
      }
    }
    for (const { found } of given) for (const source of found) cite(source)
    for (const { citationMetadata } of this.#candidates) {
      const { citationSources, citations } = asFields(citationMetadata)
      for (const cited of asRecords(citationSources ?? citations)) {
        cite({ url: cited.uri, title: cited.title, quote: undefined }, cited)
      }
    }
  }
}

type Context = Pick<ChatCall<Options>, "route" | "request" | "options" | "newId">

export const errorIn = ({ error }: Fields): Fields | undefined => (error ? { error } : undefined)

/** Fields that only the gateway or the route's options set. */
const ownFields = /thinking[ _]?(level|budget|config)|thinking (is|mode)|unknown name|cannot find field/i
const moderated = /responsible ai|sensitive words/i
const depleted = /credits are depleted|spend(ing)? (cap|limit)/i
const inMessages = /ending with a model turn|function (call|response) turn|function response parts/i
const picture = /\bimages?\b|mime ?type/i
const seconds = /^(\d{1,9}(?:\.\d{1,9})?)s$/

/** `RetryInfo` has the delay as `7.5s`. */
const readRetryDelay = (body: unknown): number | undefined => {
  const { error } = asFields(Array.isArray(body) ? body[0] : body)
  for (const { retryDelay } of asRecords(asFields(error).details)) {
    const digits = seconds.exec(asText(retryDelay))?.[1]
    if (digits !== undefined) return Number(digits)
  }
  return undefined
}

const classify = (known: FailureClass, message: string): FailureClass => {
  if (known === "limit" && depleted.test(message)) return "account"
  if (known !== "request") return known
  if (moderated.test(message)) return "moderation"
  return ownFields.test(message) ? "retry" : known
}

export const decodeFailure = (
  account: ProviderAccount,
  response: UpstreamResponse,
  nowMillis: number,
  imageParam: "messages" | "image" = "messages"
): ProviderFailure => {
  const failure = decodeConvention(account, response, nowMillis, imageParam)
  const body = parseJson(response.body)
  const message = readHostError(body)?.message ?? ""
  const kind = classify(failure.class, message)
  const param = picture.test(message) ? imageParam : inMessages.test(message) ? "messages" : undefined
  return amendFailure(failure, {
    class: kind,
    retryAfterSeconds: failure.retryAfterSeconds ?? readRetryDelay(body),
    param: kind === "request" ? param : undefined
  })
}

/** Refusals by a filter. A recitation is none: another route may answer without it. */
export const isFiltered = (reason: string): boolean =>
  !reason.endsWith("RECITATION") && readEnd(reasons, reason).finish === "content_filter"

export const moderationFailure = (status: number, reason: unknown): ProviderFailure =>
  new ProviderFailure({ class: "moderation", status, detail: `moderated: ${String(reason).slice(0, 100)}` })

export const blockIn = ({ promptFeedback }: Fields): string | undefined =>
  asText(asFields(promptFeedback).blockReason) || undefined

/** New reasons for which the host gives up have names like those of the known ones. */
const breakPrefix = /^(MALFORMED|UNEXPECTED|TOO_MANY|MISSING)_/

const isBreak = (reason: string): boolean => readEnd(reasons, reason).isBreak || breakPrefix.test(reason)

const hostId = /^[\w.:-]{1,64}$/

/** The host has no end mark: a `finishReason` makes it complete. */
export const makeDecoder = ({ newId, options, request, route }: Context): ChatDecoder => {
  const ids = new Set<string>()
  // The host has no option for a single call, so further ones are dropped.
  const maxCalls = request.parallelToolCalls === false ? 1 : Number.POSITIVE_INFINITY
  let reason = ""
  let meta: unknown
  let hasOutput = false
  const queries = new Set<string>()
  const grounding = new Grounding()
  const unreadBlocks = new UnreadBlocks()
  const usage = () => decodeUsage(meta, countSearches(queries, options))

  const claimId = (given: unknown): string => {
    const id = typeof given === "string" && hostId.test(given) && !ids.has(given) ? given : newId()
    ids.add(id)
    return id
  }

  const takeCall = ({ args, id, name }: Fields, thoughtSignature: unknown, out: Array<ChatEvent>): StreamOutcome => {
    if (typeof name !== "string" || name === "") return "a tool call without a name"
    if (ids.size >= maxCalls) return undefined
    const text = encodeArguments(args)
    if (text === undefined) return unreadableArguments
    const signature = options.call_signatures === false ? undefined : seal(route, thoughtSignature)
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
    const why = reason.slice(0, 100)
    if (isBreak(reason)) return `finishReason ${why}`
    const end = readEnd(reasons, reason)
    if (hasOutput || (end.finish === "length" && end.unread === undefined)) return undefined
    return isFiltered(reason) ? moderationFailure(200, reason) : `an empty candidate, finishReason ${why}`
  }

  const takeCandidate = (chunk: Fields, out: Array<ChatEvent>): StreamOutcome => {
    const candidate = asList(chunk.candidates)[0]
    if (!Predicate.isRecord(candidate)) {
      const block = blockIn(chunk)
      return block === undefined || hasOutput ? undefined : moderationFailure(200, block)
    }
    for (const query of queriesOf(candidate)) queries.add(query)
    grounding.take(candidate)
    for (const part of asList(asFields(candidate.content).parts)) {
      const broken = takePart(asFields(part), out)
      if (broken !== undefined) return broken
    }
    const finishReason = asText(candidate.finishReason)
    if (finishReason === "") return undefined
    reason = finishReason
    return checkFinish()
  }

  return {
    take: (chunk, out) => {
      const isCounted = decodeUsage(chunk.usageMetadata, 0) !== undefined
      if (isCounted) meta = chunk.usageMetadata
      const broken = takeCandidate(chunk, out)
      if (broken === undefined && (isCounted || reason !== "")) pushUsage(out, usage(), reason === "")
      return broken
    },
    finish: (out) => {
      if (reason === "") return undefined
      grounding.push(out)
      const { finish, unread } = readEnd(reasons, reason)
      pushUnread(out, unread, unexplainedUsage(meta))
      return pushEnd(out, finishOf(finish, { hasCalls: ids.size > 0 }), usage())
    },
    begins: ({ candidates }) => Predicate.isRecord(asList(candidates)[0]),
    usage
  }
}

export const decodeAnswer = (body: unknown, context: Context): Either.Either<ChatAnswer, ProviderFailure> => {
  const { provider } = context.route
  const events: Array<ChatEvent> = []
  const decoder = makeDecoder(context)
  const fail = (broken: ProviderFailure | string) =>
    Either.left(
      withSpent(typeof broken === "string" ? protocolFailure(provider, 200, broken) : broken, decoder.usage())
    )
  for (const chunk of Array.isArray(body) ? body : [body]) {
    if (!Predicate.isRecord(chunk)) return fail("an answer that is no object")
    const error = errorIn(chunk)
    const broken =
      error === undefined
        ? decoder.take(chunk, events)
        : decodeFailure(provider, { status: 200, headers: {}, body: JSON.stringify(error) }, 0)
    if (broken !== undefined) return fail(broken)
  }
  return decoder.finish?.(events) === "whole" ? Either.right(joinEvents(events)) : fail("no candidate in the answer")
}
