import * as Random from "../harness/fixtures/Random.ts"

export const sides = ["left", "right"] as const
export type Side = (typeof sides)[number]
export type Target = Side | "both"

export const accounts = ["first", "second"] as const
export type Account = (typeof accounts)[number]

/** Faults between a gateway and the database. */
export type Line = "delay" | "stall" | "swallow" | "cut" | "half-close" | "lose-answer" | "lose-answer-and-cut"
/** Faults of a gateway's process. */
export type Process = "kill" | "freeze" | "terminate"
/** Faults of the database server's processes. */
export type Server = "postmaster-kill" | "postmaster-quit" | "postmaster-stop" | "postmaster-freeze"
/** Faults of the providers. */
export type Weather = "status" | "break" | "slow" | "hang" | "cut-off" | "latency"

export type Fault =
  | { readonly kind: Line; readonly target: Target; readonly thenKill: boolean }
  | { readonly kind: Process; readonly target: Side }
  | { readonly kind: Server }
  /** A session of an operator's keeps an organization's row locked. */
  | { readonly kind: "row-lock"; readonly organization: number }
  | { readonly kind: Weather; readonly account: Account | "both" }

export interface Episode {
  /** Milliseconds after the start. */
  readonly at: number
  readonly lasting: number
  readonly fault: Fault
}

interface Span {
  readonly min: number
  readonly max: number
}

const spans: Readonly<Record<Fault["kind"], Span>> = {
  delay: { min: 1_000, max: 6_000 },
  stall: { min: 500, max: 5_000 },
  swallow: { min: 1_000, max: 12_000 },
  cut: { min: 300, max: 6_000 },
  "half-close": { min: 200, max: 400 },
  "lose-answer": { min: 1_000, max: 3_000 },
  "lose-answer-and-cut": { min: 12_000, max: 15_000 },
  kill: { min: 500, max: 4_000 },
  freeze: { min: 1_000, max: 9_000 },
  terminate: { min: 500, max: 1_000 },
  "postmaster-kill": { min: 100, max: 200 },
  "postmaster-quit": { min: 100, max: 200 },
  "postmaster-stop": { min: 100, max: 200 },
  "postmaster-freeze": { min: 500, max: 5_000 },
  "row-lock": { min: 2_000, max: 8_000 },
  status: { min: 2_000, max: 8_000 },
  break: { min: 2_000, max: 8_000 },
  slow: { min: 2_000, max: 8_000 },
  hang: { min: 2_000, max: 8_000 },
  "cut-off": { min: 500, max: 4_000 },
  latency: { min: 1_000, max: 5_000 }
}

const systemFaults: ReadonlyArray<Exclude<Fault["kind"], Weather>> = [
  "delay",
  "stall",
  "swallow",
  "cut",
  "half-close",
  "lose-answer",
  "lose-answer-and-cut",
  "kill",
  "kill",
  "freeze",
  "terminate",
  "postmaster-kill",
  "postmaster-quit",
  "postmaster-stop",
  "postmaster-freeze",
  "row-lock"
]
const weathers: ReadonlyArray<Weather> = ["status", "break", "slow", "hang", "cut-off", "latency"]

const fill = (random: Random.Random, kind: Fault["kind"]): Fault => {
  switch (kind) {
    case "kill":
    case "freeze":
    case "terminate":
      return { kind, target: random.pick(sides) }
    case "row-lock":
      return { kind, organization: random.integer(0, 1) }
    case "postmaster-kill":
    case "postmaster-quit":
    case "postmaster-stop":
    case "postmaster-freeze":
      return { kind }
    case "status":
    case "break":
    case "slow":
    case "hang":
    case "cut-off":
    case "latency":
      return { kind, account: random.pick([...accounts, "both"]) }
    default:
      return {
        kind,
        target: random.pick([...sides, "both"]),
        thenKill: kind === "lose-answer-and-cut" && random.chance(0.7)
      }
  }
}

/** Episodes of one deck, one after the other; the deck is dealt anew once every kind was played. */
const deal = (
  random: Random.Random,
  deck: ReadonlyArray<Fault["kind"]>,
  options: { readonly millis: number; readonly pace: number; readonly rest: Span }
): ReadonlyArray<Episode> => {
  const episodes: Array<Episode> = []
  let cards: Array<Fault["kind"]> = []
  const { millis, pace, rest } = options
  let at = pace * random.integer(rest.min, rest.max)
  while (at < millis) {
    if (cards.length === 0) cards = [...random.shuffle(deck)]
    const kind = cards.pop() ?? "kill"
    const { max, min } = spans[kind]
    // An answer that stays lost needs the database gone for longer than a settlement is retried, at any pace.
    const lasting = random.integer(min, max) * (kind === "lose-answer-and-cut" ? 1 : pace)
    episodes.push({ at: Math.round(at), lasting: Math.round(lasting), fault: fill(random, kind) })
    at += lasting + pace * random.integer(rest.min, rest.max)
  }
  return episodes
}

/**
 * Faults of the system one after the other, and beside them weather at the providers. The seed decides everything; a
 * pace below 1 shortens what it says.
 */
export const make = (options: {
  readonly seed: string
  readonly millis: number
  readonly pace: number
}): ReadonlyArray<Episode> => {
  const { millis, pace, seed } = options
  return [
    ...deal(Random.make(`${seed}:system`), systemFaults, { millis, pace, rest: { min: 1_000, max: 14_000 } }),
    ...deal(Random.make(`${seed}:weather`), weathers, { millis, pace, rest: { min: 2_000, max: 8_000 } })
  ].toSorted((a, b) => a.at - b.at)
}

/** One line, such as `12.3 s, for 0.5 s: kill {"target":"left"}`. */
export const describe = ({ at, fault, lasting }: Episode): string => {
  const { kind, ...rest } = fault
  return `${(at / 1000).toFixed(1)} s, for ${(lasting / 1000).toFixed(1)} s: ${kind} ${JSON.stringify(rest)}`
}
