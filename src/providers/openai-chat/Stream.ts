import { Predicate } from "effect"
import type { ChatEvent, Usage } from "../../domain/Chat.ts"
import { finishOf, pushEnd, pushUnread, pushUsage } from "../chat/Answer.ts"
import type { ChatCall } from "../chat/ChatFormat.ts"
import type { ChatDecoder, StreamOutcome } from "../chat/ChatStream.ts"
import { readEnd, UnreadBlocks } from "../chat/EndReasons.ts"
import { Sources } from "../chat/Sources.ts"
import { asFields, asList, type Fields } from "../client/Json.ts"
import { withStatedCost } from "../client/StatedCost.ts"
import { makeCallDecoder } from "./Calls.ts"
import { reasons } from "./EndReasons.ts"
import type { Options } from "./Options.ts"
import {
  breakIn,
  callsIn,
  decodeUsage,
  hasLists,
  knownParts,
  mergeLists,
  namedReasoningOf,
  readCounts,
  reasoningOf,
  stopOf,
  takeLists,
  textOf
} from "./Response.ts"

const countNames = ["prompt_tokens", "completion_tokens", "total_tokens"]

/** Whether counts of the same prompt had details that the later ones do not repeat. */
const lacksDetails = (given: Fields, before: Fields): boolean => {
  if (given.prompt_tokens !== before.prompt_tokens) return false
  for (const name in before) if (Boolean(before[name]) && !given[name]) return true
  return false
}

/** A host may give its counts in several events, each with some of them. */
const mergeCounts = (given: Fields, before: Fields | undefined): Fields => {
  if (before === undefined) return given
  if (countNames.every((name) => typeof given[name] === "number") && !lacksDetails(given, before)) return given
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
  let calls: ReturnType<typeof makeCallDecoder> | undefined
  const sources = new Sources()
  const unreadBlocks = new UnreadBlocks()
  /** The last list of sources of each name: some hosts repeat them in every chunk. */
  let listed: Fields | undefined
  let stopSequence: string | undefined
  let reason: unknown
  let counts: Fields | undefined
  let usage: Usage | undefined
  /** Some hosts restate it in their details at the end. */
  let hasNamedReasoning = false
  let isRefusal = false
  let hasDelta = false

  const count = (given: unknown): Usage | undefined => {
    if (!Predicate.isRecord(given)) return undefined
    const merged = mergeCounts(given, counts)
    const counted = decodeUsage(merged, call)
    if (counted !== undefined) counts = merged
    return counted
  }

  const takeDelta = (delta: Fields, out: Array<ChatEvent>): StreamOutcome => {
    const reasoning = reasoningOf(delta, hasNamedReasoning)
    hasNamedReasoning ||= reasoning !== "" && namedReasoningOf(delta) !== ""
    if (reasoning !== "") out.push({ type: "reasoning", text: reasoning })
    if (Array.isArray(delta.content)) unreadBlocks.take(delta.content, knownParts, out)
    const text = textOf(delta.content)
    const refusal = delta.refusal ? textOf(delta.refusal) : ""
    if (text !== "") out.push({ type: "content", text })
    if (refusal !== "") {
      isRefusal = true
      // Some hosts give it as content as well.
      if (refusal !== text) out.push({ type: "content", text: refusal })
    }
    if (delta.annotations !== undefined) sources.takeAnnotations(delta.annotations, 0, out)
    for (const fragment of callsIn(delta)) {
      calls ??= makeCallDecoder(call.newId, call.request.tools)
      const broken = calls.take(fragment, out)
      if (broken !== undefined) return broken
    }
    return undefined
  }

  return {
    take: (chunk, out) => {
      const choice = asFields(asList(chunk.choices)[0])
      const counted = count(choice.usage) ?? count(chunk.usage)
      usage = keepStated(withStatedCost(counted, chunk, call.options), usage)
      const finished = choice.finish_reason ?? ""
      const broken = finished === "" ? undefined : breakIn(finished, choice.native_finish_reason)
      if (broken !== undefined) return broken
      if (finished !== "") reason = finished
      if (finished !== "") stopSequence = stopOf(choice, call.request.stop) ?? stopSequence
      if (hasLists(chunk)) listed = mergeLists(listed, chunk)
      if (counted !== undefined || finished !== "") pushUsage(out, usage, reason === undefined)
      hasDelta ||= Predicate.isRecord(choice.delta)
      // Some hosts send the whole answer as one event, others repeat it beside the deltas.
      return takeDelta(asFields(hasDelta ? choice.delta : choice.message), out)
    },
    finish: (out) => {
      if (reason === undefined) return undefined
      if (listed !== undefined) takeLists(listed, sources, out)
      const broken = calls?.close(out)
      if (broken !== undefined) return broken
      const { finish, unread } = readEnd(reasons, reason)
      pushUnread(out, unread, readCounts(counts, call)?.unexplained)
      return pushEnd(out, finishOf(finish, { hasCalls: false, ...calls?.ended(), isRefusal }), usage, { stopSequence })
    },
    begins: ({ choices }) => Predicate.isRecord(asList(choices)[0]),
    usage: () => usage
  }
}
