import { Predicate } from "effect"
import type { ChatEvent, Usage } from "../../domain/Chat.ts"
import {
  argumentsText,
  finishOf,
  pushEnd,
  pushUnread,
  pushUsage,
  type StreamedCall,
  StreamedCalls,
  unreadableArguments
} from "../chat/Answer.ts"
import type { ChatCall } from "../chat/ChatClient.ts"
import type { ChatDecoder, StreamOutcome } from "../chat/ChatStream.ts"
import { readEnd, UnreadBlocks } from "../chat/EndReasons.ts"
import { asFields, asList, asText, type Fields } from "../client/Json.ts"
import { withStatedCost } from "../client/StatedCost.ts"
import { reasons } from "./EndReasons.ts"
import type { Options } from "./Options.ts"
import { breakIn, decodeUsage, knownParts, textOf, unexplainedUsage } from "./Response.ts"

interface Call {
  readonly call: StreamedCall
  /** Fragments without an index find their call by the host's id. */
  readonly hostId: string | undefined
  readonly index: unknown
  /** Another call came with the same id. */
  readonly isRepeated: boolean
  /** Arguments that came before the name. */
  early: string
}

/** Hosts count calls from 0, repeat one index, or send none: a name with a new id or a new index opens a call. */
const makeCallDecoder = (newId: () => string) => {
  const calls = new StreamedCalls()
  const byHostIndex = new Map<number, Call>()
  const byHostId = new Map<string, Call>()
  let last: Call | undefined

  const find = (index: unknown, id: string | undefined, isNamed: boolean): Call | undefined => {
    const indexed = typeof index === "number" ? byHostIndex.get(index) : undefined
    if (id === undefined) return typeof index === "number" || isNamed ? indexed : last
    if (indexed?.hostId === id) return indexed
    const known = byHostId.get(id)
    if (known === undefined) return isNamed ? undefined : indexed
    const isNext = isNamed && indexed === undefined && typeof index === "number" && typeof known.index === "number"
    return isNext ? undefined : known
  }

  const begin = (index: unknown, hostId: string | undefined): Call => {
    last = { call: calls.begin(), hostId, index, isRepeated: byHostId.has(hostId ?? ""), early: "" }
    if (typeof index === "number") byHostIndex.set(index, last)
    if (hostId !== undefined) byHostId.set(hostId, last)
    return last
  }

  const take = (fragment: unknown, out: Array<ChatEvent>): StreamOutcome => {
    if (!Predicate.isRecord(fragment)) return undefined
    const part = asFields(fragment.function)
    const id = asText(fragment.id) || undefined
    const name = asText(part.name)
    const found = find(fragment.index, id, name !== "") ?? begin(fragment.index, id)
    const text = argumentsText(part.arguments)
    if (text === undefined) return unreadableArguments
    if (found.call.isOpen) calls.append(found.call, text, out)
    else if (name === "") found.early += text
    else calls.open(found.call, (found.isRepeated ? undefined : found.hostId) ?? newId(), name, found.early + text, out)
    return undefined
  }

  return { calls, take }
}

const countNames = ["prompt_tokens", "completion_tokens", "total_tokens"]

/** A host may give its counts in several events, each with some of them. */
const mergeCounts = (given: Fields, before: Fields | undefined): Fields => {
  if (before === undefined || countNames.every((name) => typeof given[name] === "number")) return given
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
  const { calls, take: takeCall } = makeCallDecoder(call.newId)
  const unreadBlocks = new UnreadBlocks()
  let reason: string | undefined
  let counts: Fields | undefined
  let usage: Usage | undefined
  let hasText = false
  let isRefusal = false

  const count = (given: unknown): Usage | undefined => {
    if (!Predicate.isRecord(given)) return undefined
    const merged = mergeCounts(given, counts)
    const counted = decodeUsage(merged, call)
    if (counted !== undefined) counts = merged
    return counted
  }

  const takeDelta = (delta: Fields, out: Array<ChatEvent>): StreamOutcome => {
    const reasoning = textOf(delta.reasoning_content) || textOf(delta.reasoning)
    if (reasoning !== "") out.push({ type: "reasoning", text: reasoning })
    if (Array.isArray(delta.content)) unreadBlocks.take(delta.content, knownParts, out)
    const text = textOf(delta.content)
    const refusal = hasText ? "" : textOf(delta.refusal)
    if (text !== "") {
      hasText = true
      out.push({ type: "content", text })
    } else if (refusal !== "") {
      isRefusal = true
      out.push({ type: "content", text: refusal })
    }
    for (const fragment of asList(delta.tool_calls)) {
      const broken = takeCall(fragment, out)
      if (broken !== undefined) return broken
    }
    return undefined
  }

  return {
    take: (chunk, out) => {
      const choice = asFields(asList(chunk.choices)[0])
      const counted = count(choice.usage) ?? count(chunk.usage)
      usage = keepStated(withStatedCost(counted, chunk, call.options), usage)
      const finished = asText(choice.finish_reason)
      const broken = finished === "" ? undefined : breakIn(finished, choice.native_finish_reason)
      if (broken !== undefined) return broken
      reason = finished || reason
      if (counted !== undefined || finished !== "") pushUsage(out, usage, reason === undefined)
      return takeDelta(asFields(choice.delta), out)
    },
    finish: (out) => {
      if (reason === undefined) return undefined
      if (!calls.close(out)) return "a tool call without a name"
      const { finish, unread } = readEnd(reasons, reason)
      pushUnread(out, unread, unexplainedUsage(counts, call))
      return pushEnd(out, finishOf(finish, calls.hasAny, isRefusal), usage)
    },
    begins: ({ choices }) => Predicate.isRecord(asList(choices)[0]),
    usage: () => usage
  }
}
