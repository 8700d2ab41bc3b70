import { Effect } from "effect"
import type { ChatRequest } from "../../domain/Chat.ts"
import type { RouteBase } from "../../domain/Model.ts"
import { type FailureClass, ProviderFailure } from "../../services/routing/Provider.ts"
import { runAtOnce, type Steps } from "../../services/runtime/EventLoop.ts"
import { classOfStatus } from "../client/Classification.ts"

// Without "[" inside and with a bound, a prompt full of opened brackets cannot make the search quadratic.
const bracket = /\[sandbox((?:\s[^[\]]{0,200})?)\]/gi
const longestBracket = 250
const pieceLength = 64 * 1024
const longestWait = 3_600_000

/** Least and most; waits are in ms. */
const ranges = {
  status: [400, 599],
  routes: [1, 100],
  delay: [0, longestWait],
  gap: [0, longestWait],
  cut: [0, 1_000_000]
} as const
type Numeric = keyof typeof ranges

/** Moderation refuses the request or, in one bracket with `fail`, the accepted render. */
export type Faults = Partial<Record<Numeric, number>> & { moderation?: "request" | "render"; fail?: true }

const isNumeric = (key: string): key is Numeric => Object.hasOwn(ranges, key)

const switchesIn = (inside: string): Faults => {
  const switches: Faults = {}
  for (const word of inside.toLowerCase().split(/\s+/)) {
    const [key = "", value = ""] = word.split("=", 2)
    if (word === "moderation") switches.moderation = "request"
    else if (word === "fail") switches.fail = true
    else if (isNumeric(key) && /^\d{1,9}$/.test(value)) {
      const [least, most] = ranges[key]
      if (Number(value) >= least && Number(value) <= most) switches[key] = Number(value)
    }
  }
  if (switches.fail === true && switches.moderation !== undefined) switches.moderation = "render"
  return switches
}

/** `sandbox` is a model's first route, `sandbox-b` its second; any other name counts as a first. */
const ordinal = (route: RouteBase): number => {
  const letter = /^sandbox-([b-z])$/.exec(route.provider.name)?.[1]
  return letter === undefined ? 1 : letter.charCodeAt(0) - "a".charCodeAt(0) + 1
}

export const withoutSwitches = (text: string): string => text.replace(bracket, " ").trim()

/** No piece ends inside a bracket. */
function* chunksOf(text: string): Generator<string> {
  for (let start = 0; start < text.length; ) {
    const end = start + pieceLength
    const open = end < text.length ? text.slice(end - longestBracket, end).lastIndexOf("[") : -1
    const cut = open === -1 ? end : end - longestBracket + open
    yield text.slice(start, cut)
    start = cut
  }
}

/** Each bracket applies to its own `routes`; later ones win. */
export function* readFaults(route: RouteBase, texts: Iterable<string>): Steps<Faults> {
  let faults: Faults = {}
  for (const text of texts) {
    for (const piece of chunksOf(text)) {
      for (const [, inside = ""] of piece.matchAll(bracket)) {
        const switches = switchesIn(inside)
        if (switches.routes === undefined || ordinal(route) <= switches.routes) faults = { ...faults, ...switches }
      }
      yield
    }
  }
  return faults
}

export const faultsFor = (route: RouteBase, texts: ReadonlyArray<string>): Faults => runAtOnce(readFaults(route, texts))

const failureIn = ({ moderation, status }: Faults): Effect.Effect<void, ProviderFailure> => {
  if (status !== undefined) return failure(classOfStatus(status), status, `status ${status}`)
  return moderation === undefined ? Effect.void : refused
}

export const inject = (faults: Faults): Effect.Effect<void, ProviderFailure> =>
  Effect.zipRight(faults.delay === undefined ? Effect.void : Effect.sleep(faults.delay), failureIn(faults))

const failure = (kind: FailureClass, status: number | undefined, detail: string): ProviderFailure =>
  new ProviderFailure({ class: kind, status, detail: `sandbox fault: ${detail}` })

/** In the words by which clients of the dialect recover. */
export const tooLong = (tokens: number, { contextLength = 0, native }: ChatRequest): ProviderFailure => {
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
export const cancelled = failure("network", undefined, "cancelled by the gateway")
export const refused = failure("moderation", 400, "moderation")
export const failedRender = failure("retry", 500, "fail")
