import type { Account, Side } from "./Schedule.ts"

export type Operation = "chat" | "stream" | "image" | "video" | "credits" | "videos" | "video-read"

/** How a client's request ended, as the client saw it. */
export type Outcome =
  | { readonly kind: "answer"; readonly status: number; readonly body: unknown; readonly replayed: boolean }
  /** A stream that came to its end: with `[DONE]`, with an error chunk of this code, or with neither. */
  | {
      readonly kind: "stream"
      readonly end: "done" | "error" | "broken"
      readonly text: string
      readonly usage: unknown
    }
  /** The connection broke, or was refused. */
  | { readonly kind: "reset"; readonly code: string }
  /** The client left. */
  | { readonly kind: "left" }
  /** The client's patience ended. */
  | { readonly kind: "hang" }

/** One HTTP request of a client. */
export interface Call {
  /** Of this request alone; in the prompt, the request id, and the amounts. */
  readonly n: number
  readonly operation: Operation
  readonly organization: number
  readonly keyId: string
  readonly side: Side
  readonly sentAt: number
  readonly endedAt: number
  readonly outcome: Outcome
  /** The first request with the same Idempotency-Key. */
  readonly repeats?: number
  /** The video that was asked for, and whose it is. */
  readonly video?: { readonly id: string; readonly organization: number }
}

/** What a provider did with a request. */
export interface Service {
  readonly n: number
  readonly account: Account
  readonly kind: "chat" | "image" | "video"
  readonly at: number
  /** Undefined where it was served well; one that was `slow` was served, too. */
  readonly fault: string | undefined
}

/** When a fault was in force, and on what. */
export interface Window {
  readonly kind: string
  readonly scope: "database" | "process" | "organization" | "provider" | "machine"
  readonly sides: ReadonlyArray<Side>
  readonly organization?: number
  readonly from: number
  readonly to: number
}

/** Everything seen from outside, on one clock (milliseconds since the start). */
export interface History {
  readonly calls: ReadonlyArray<Call>
  readonly services: ReadonlyArray<Service>
  readonly windows: ReadonlyArray<Window>
}

export interface Finding {
  /** What should hold and does not. */
  readonly rule: string
  readonly detail: string
  /** The requests concerned. */
  readonly about: ReadonlyArray<number>
}

export const isGood = (outcome: Outcome) =>
  (outcome.kind === "answer" && outcome.status < 300) || (outcome.kind === "stream" && outcome.end === "done")

/** The client knows that it failed; where a connection broke it cannot know. */
export const isFailed = (outcome: Outcome) =>
  (outcome.kind === "answer" && outcome.status >= 400) || (outcome.kind === "stream" && outcome.end === "error")

const seconds = (millis: number) => `${(millis / 1000).toFixed(2)} s`

const short = (value: unknown) => {
  const text = JSON.stringify(value) ?? "nothing"
  return text.length > 300 ? `${text.slice(0, 300)}…` : text
}

export const showOutcome = (outcome: Outcome): string => {
  if (outcome.kind === "answer") {
    return `${outcome.status}${outcome.replayed ? " (replayed)" : ""} ${short(outcome.body)}`
  }
  if (outcome.kind === "stream") return `a stream, ${outcome.end}: ${short(outcome.text)} ${short(outcome.usage)}`
  return outcome.kind === "reset" ? `reset (${outcome.code})` : outcome.kind
}

/** The history lines of requests: what the client and the providers saw, and the faults in force meanwhile. */
export const linesOf = ({ calls, services, windows }: History, about: ReadonlySet<number>): ReadonlyArray<string> => {
  const mine = calls.filter(({ n, repeats }) => about.has(n) || (repeats !== undefined && about.has(repeats)))
  const served = services.filter(({ n }) => mine.some((call) => call.n === n) || about.has(n))
  const during = windows.filter(({ from, to }) =>
    mine.some(({ endedAt, sentAt }) => from <= endedAt + 1_000 && to >= sentAt - 3_000)
  )
  return [
    ...mine.map((call) => ({
      at: call.sentAt,
      line: `#${call.n} ${call.operation} of organization ${call.organization} at ${call.side}${
        call.repeats === undefined ? "" : `, key of #${call.repeats}`
      }: after ${seconds(call.endedAt - call.sentAt)} ${showOutcome(call.outcome)}`
    })),
    ...served.map(({ account, at, fault, kind, n }) => ({
      at,
      line: `#${n} ${kind} reached provider ${account}: ${fault ?? "served"}`
    })),
    ...during.map(({ from, kind, sides, to }) => ({
      at: from,
      line: `fault ${kind} ${sides.join(" and ")} until ${seconds(to)}`
    }))
  ]
    .toSorted((a, b) => a.at - b.at)
    .map(({ at, line }) => `  ${seconds(at)}  ${line}`)
}

/** The values under each of their names, in the order of their coming. */
export const group = <A, K>(values: Iterable<A>, nameOf: (value: A) => K): ReadonlyMap<K, ReadonlyArray<A>> => {
  const groups = new Map<K, Array<A>>()
  for (const value of values) {
    const name = nameOf(value)
    const mine = groups.get(name)
    if (mine === undefined) groups.set(name, [value])
    else mine.push(value)
  }
  return groups
}
