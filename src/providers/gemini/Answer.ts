import { Predicate } from "effect"
import type { ChatAnswer, ChatEvent, ChatRequest, FinishReason, ToolCall, Usage } from "../../domain/Chat.ts"
import type { Route } from "../../domain/Model.ts"
import { ProviderFailure } from "../../services/routing/Provider.ts"
import { sealed } from "../chat/ThoughtSignatures.ts"
import { malformed, spending } from "../client/Classification.ts"
import { blockIn, failureOf, isFiltered, moderation } from "./Failure.ts"
import type { Options } from "./Options.ts"

/** Of whom an answer is read. */
export interface Reading {
  readonly route: Route
  readonly request: ChatRequest
  readonly options: Options
  readonly newId: () => string
}

/** Takes an answer apart, whole or chunk by chunk. */
export interface AnswerReader {
  /** Appends what a chunk means; a failure when it broke the answer. */
  readonly take: (chunk: unknown, out: Array<ChatEvent>) => ProviderFailure | undefined
  /** Appends the finish and the usage; false while the host has not said why it stopped. */
  readonly end: (out: Array<ChatEvent>) => boolean
  /** What the host has counted so far. */
  readonly used: () => Usage | undefined
}

const count = (value: unknown): number =>
  typeof value === "number" && Number.isFinite(value) && value > 0 ? Math.floor(value) : 0

/** Thoughts are counted beside the answer, what a search brought beside the prompt. Undefined where nothing is. */
export const usageOf = (meta: unknown): Usage | undefined => {
  if (!Predicate.isRecord(meta)) return undefined
  const prompt = count(meta.promptTokenCount) + count(meta.toolUsePromptTokenCount)
  const reasoning = count(meta.thoughtsTokenCount)
  const completion = count(meta.candidatesTokenCount) + reasoning
  if (prompt === 0 && completion === 0) return undefined
  const cached = Math.min(prompt, count(meta.cachedContentTokenCount))
  return { prompt, completion, cached, cacheWrite: 0, reasoning }
}

/** Reasons that say that the host gave up. The names of new ones tell as much. */
const isBreak = (reason: string): boolean =>
  /^(OTHER|LANGUAGE|NO_IMAGE|IMAGE_OTHER)$|^(MALFORMED|UNEXPECTED|TOO_MANY|MISSING)_/.test(reason)

const isRecitation = (reason: string): boolean => /^(IMAGE_)?RECITATION$/.test(reason)

const finishOf = (reason: string, calls: number): FinishReason => {
  if (reason === "MAX_TOKENS" || reason === "CONTINUATION") return "length"
  if (isFiltered(reason) || isRecitation(reason)) return "content_filter"
  return calls > 0 ? "tool_calls" : "stop"
}

const hostId = /^[\w.:-]{1,64}$/

export const reader = ({ newId, options, request, route }: Reading): AnswerReader => {
  const ids = new Set<string>()
  // The host knows no way to ask for one call only: the others were never made, as far as the model will know.
  const mostCalls = request.parallelToolCalls === false ? 1 : Number.POSITIVE_INFINITY
  let reason: string | undefined
  let usage: Usage | undefined
  let spoken = false

  const broken = (what: string) => malformed(route.provider, 200, what)

  const idOf = (given: unknown): string => {
    const id = typeof given === "string" && hostId.test(given) && !ids.has(given) ? given : newId()
    ids.add(id)
    return id
  }

  const call = (
    { args, id, name }: Record<PropertyKey, unknown>,
    signature: unknown,
    out: Array<ChatEvent>
  ): ProviderFailure | undefined => {
    if (typeof name !== "string" || name === "") return broken("a function call without a name")
    if (ids.size >= mostCalls) return undefined
    const seal = options.call_signatures === false ? undefined : sealed(route, signature)
    const index = ids.size
    const text = JSON.stringify(Predicate.isRecord(args) ? args : {})
    out.push({ type: "tool_call", index, id: idOf(id), name, arguments: text, ...(seal && { signature: seal }) })
    return undefined
  }

  const take = (part: unknown, out: Array<ChatEvent>): ProviderFailure | undefined => {
    if (!Predicate.isRecord(part)) return undefined
    if (Predicate.isRecord(part.functionCall)) return call(part.functionCall, part.thoughtSignature, out)
    const { text } = part
    if (typeof text === "string" && text !== "")
      out.push({ type: part.thought === true ? "reasoning" : "content", text })
    return undefined
  }

  /** Whether the host stopped without anything that could be shown. */
  const stopped = (why: string): ProviderFailure | undefined => {
    if (isBreak(why)) return broken(`finishReason ${why.slice(0, 100)}`)
    if (spoken || finishOf(why, 0) === "length") return undefined
    return isFiltered(why) ? moderation(200, why) : broken(`an empty candidate, finishReason ${why.slice(0, 100)}`)
  }

  return {
    take: (chunk, out) => {
      if (!Predicate.isRecord(chunk)) return broken("an answer that is no object")
      if (chunk.error) {
        const body = JSON.stringify({ error: chunk.error })
        // A body has no headers of its own, hence no Retry-After that would need the time.
        return failureOf(route.provider, { status: 200, headers: {}, body }, 0, "messages")
      }
      usage = usageOf(chunk.usageMetadata) ?? usage
      const candidate: unknown = Array.isArray(chunk.candidates) ? chunk.candidates[0] : undefined
      if (!Predicate.isRecord(candidate)) {
        const block = blockIn(chunk)
        return block === undefined || spoken ? undefined : moderation(200, block)
      }
      const content = Predicate.isRecord(candidate.content) ? candidate.content : {}
      const before = out.length
      for (const part of Array.isArray(content.parts) ? content.parts : []) {
        const failure = take(part, out)
        if (failure !== undefined) return failure
      }
      if (out.length > before) spoken = true
      if (typeof candidate.finishReason !== "string" || candidate.finishReason === "") return undefined
      reason = candidate.finishReason
      return stopped(reason)
    },
    end: (out) => {
      if (reason === undefined) return false
      out.push({ type: "finish", reason: finishOf(reason, ids.size) })
      if (usage !== undefined) out.push({ type: "usage", usage })
      return true
    },
    used: () => usage
  }
}

const toolCallOf = (event: Extract<ChatEvent, { readonly type: "tool_call" }>): ToolCall => ({
  id: event.id ?? "",
  type: "function",
  function: { name: event.name ?? "", arguments: event.arguments },
  ...(event.signature && { signature: event.signature })
})

/** What the events of a whole answer add up to; calls come whole on this wire. */
const answerOf = (events: ReadonlyArray<ChatEvent>): ChatAnswer => {
  let content = ""
  let reasoning = ""
  let finish: FinishReason = "stop"
  let usage: Usage | undefined
  const toolCalls: Array<ToolCall> = []
  for (const event of events) {
    if (event.type === "content") content += event.text
    else if (event.type === "reasoning") reasoning += event.text
    else if (event.type === "tool_call") toolCalls.push(toolCallOf(event))
    else if (event.type === "finish") finish = event.reason
    else usage = event.usage
  }
  const silent = content === "" && toolCalls.length > 0
  return { content: silent ? null : content, reasoning: reasoning || undefined, toolCalls, finish, usage }
}

/** Reads a whole answer, or the list of chunks that a host makes of one. */
export const wholeAnswer = (body: unknown, reading: Reading): ChatAnswer | ProviderFailure => {
  const events: Array<ChatEvent> = []
  const whole = reader(reading)
  for (const chunk of Array.isArray(body) ? body : [body]) {
    const failure = whole.take(chunk, events)
    if (failure !== undefined) return spending(failure, whole.used())
  }
  if (whole.end(events)) return answerOf(events)
  return spending(malformed(reading.route.provider, 200, "no candidate in the answer"), whole.used())
}
