import { Effect } from "effect"
import type { ChatRequest } from "../../domain/Chat.ts"
import type { RouteBase } from "../../domain/Model.ts"
import { type FailureClass, ProviderFailure } from "../../services/routing/Provider.ts"
import { runAtOnce, type Steps } from "../../services/runtime/EventLoop.ts"
import { classOfStatus } from "../client/Classification.ts"

// Excluding "[" and limiting the length keeps the search linear for prompts full of opening brackets.
const bracket = /\[sandbox((?:\s[^[\]]{0,200})?)\]/gi
const maxBracketLength = 250
const pieceLength = 64 * 1024
const maxWait = 3_600_000

/** Minimum and maximum of each value. Waits are in milliseconds. */
const ranges = {
  status: [400, 599],
  routes: [1, 100],
  delay: [0, maxWait],
  gap: [0, maxWait],
  cut: [0, 1_000_000]
} as const
type Numeric = keyof typeof ranges

/** Moderation refuses the request or, combined with `fail` in one bracket, the accepted job. */
export type Faults = Partial<Record<Numeric, number>> & { moderation?: "request" | "render"; fail?: true }

const isNumeric = (key: string): key is Numeric => Object.hasOwn(ranges, key)

const parseSwitches = (text: string): Faults => {
  const faults: Faults = {}
  for (const word of text.toLowerCase().split(/\s+/)) {
    const [key = "", value = ""] = word.split("=", 2)
    if (word === "moderation") faults.moderation = "request"
    else if (word === "fail") faults.fail = true
    else if (isNumeric(key) && /^\d{1,9}$/.test(value)) {
      const [min, max] = ranges[key]
      if (Number(value) >= min && Number(value) <= max) faults[key] = Number(value)
    }
  }
  if (faults.fail === true && faults.moderation !== undefined) faults.moderation = "render"
  return faults
}

/** Returns a route's position by its account: `sandbox` is 1, `sandbox-b` 2. Any other name counts as 1. */
const routeNumber = (route: RouteBase): number => {
  const letter = /^sandbox-([b-z])$/.exec(route.provider.name)?.[1]
  return letter === undefined ? 1 : letter.charCodeAt(0) - "a".charCodeAt(0) + 1
}

export const removeSwitches = (text: string): string => text.replace(bracket, " ").trim()

/** Splits a text. No piece ends inside a bracket. */
function* chunksOf(text: string): Generator<string> {
  for (let start = 0; start < text.length; ) {
    const end = start + pieceLength
    const bracketStart = end < text.length ? text.slice(end - maxBracketLength, end).lastIndexOf("[") : -1
    const pieceEnd = bracketStart === -1 ? end : end - maxBracketLength + bracketStart
    yield text.slice(start, pieceEnd)
    start = pieceEnd
  }
}

/** A bracket with `routes=n` applies only to the first n routes. Later brackets override earlier ones. */
export function* readFaults(route: RouteBase, texts: Iterable<string>): Steps<Faults> {
  let faults: Faults = {}
  for (const text of texts) {
    for (const piece of chunksOf(text)) {
      for (const [, switches = ""] of piece.matchAll(bracket)) {
        const bracketFaults = parseSwitches(switches)
        if (bracketFaults.routes === undefined || routeNumber(route) <= bracketFaults.routes)
          faults = { ...faults, ...bracketFaults }
      }
      yield
    }
  }
  return faults
}

export const readFaultsNow = (route: RouteBase, texts: ReadonlyArray<string>): Faults =>
  runAtOnce(readFaults(route, texts))

const failureIn = ({ moderation, status }: Faults): Effect.Effect<void, ProviderFailure> => {
  if (status !== undefined) return failure(classOfStatus(status), status, `status ${status}`)
  return moderation === undefined ? Effect.void : moderationFailure
}

export const inject = (faults: Faults): Effect.Effect<void, ProviderFailure> =>
  Effect.zipRight(faults.delay === undefined ? Effect.void : Effect.sleep(faults.delay), failureIn(faults))

const failure = (kind: FailureClass, status: number | undefined, detail: string): ProviderFailure =>
  new ProviderFailure({ class: kind, status, detail: `sandbox fault: ${detail}` })

/** Clients of each dialect recognize these messages and shorten the conversation. */
export const contextLengthFailure = (tokens: number, { contextLength = 0, native }: ChatRequest): ProviderFailure => {
  const reason =
    native?.dialect === "messages"
      ? `prompt is too long: ${tokens} tokens > ${contextLength} maximum`
      : `This model's maximum context length is ${contextLength} tokens. However, your messages resulted in ${tokens} tokens. Please reduce the length of the messages.`
  return new ProviderFailure({
    class: "request",
    status: 400,
    reason,
    reasonCode: "context_length_exceeded",
    detail: reason
  })
}

export const cutFailure = (cut: number): ProviderFailure => failure("network", undefined, `cut after ${cut} deltas`)
export const cancelledFailure = failure("network", undefined, "cancelled by the gateway")
export const moderationFailure = failure("moderation", 400, "moderation")
export const jobFailure = failure("retry", 500, "fail")
