import { Record } from "effect"
import * as Random from "../harness/fixtures/Random.ts"

export const sides = ["left", "right"] as const
export type Side = (typeof sides)[number]
export type Target = Side | "both"

export const accounts = ["first", "second"] as const
export type Account = (typeof accounts)[number]

/** The shortest and the longest that a fault lasts, in milliseconds. */
type Span = readonly [min: number, max: number]

const spansOf = <K extends string>(spans: Readonly<Record<K, Span>>) => spans

/** Faults between a gateway and the database. */
const lines = spansOf({
  delay: [1_000, 6_000],
  stall: [500, 5_000],
  swallow: [1_000, 12_000],
  cut: [300, 6_000],
  "half-close": [200, 400],
  "lose-answer": [1_000, 3_000],
  "lose-answer-and-cut": [12_000, 15_000]
})
/** Faults of a gateway's process. */
const processes = spansOf({ kill: [500, 4_000], freeze: [1_000, 9_000], terminate: [500, 1_000] })
/** Faults of the database server's processes. */
const servers = spansOf({
  "postmaster-kill": [100, 200],
  "postmaster-quit": [100, 200],
  "postmaster-stop": [100, 200],
  "postmaster-freeze": [500, 5_000]
})
/** Faults of the providers. */
const weathers = spansOf({
  status: [2_000, 8_000],
  break: [2_000, 8_000],
  slow: [2_000, 8_000],
  hang: [2_000, 8_000],
  "cut-off": [500, 4_000],
  latency: [1_000, 5_000]
})

export type Fault =
  | { readonly kind: keyof typeof lines; readonly target: Target; readonly thenKill: boolean }
  | { readonly kind: keyof typeof processes; readonly target: Side }
  | { readonly kind: keyof typeof servers }
  /** A session of an operator's keeps an organization's row locked. */
  | { readonly kind: "row-lock"; readonly organization: number }
  | { readonly kind: keyof typeof weathers; readonly account: Account | "both" }

export interface Episode {
  /** Milliseconds after the start. */
  readonly at: number
  readonly lasting: number
  readonly fault: Fault
}

const spans: Readonly<Record<Fault["kind"], Span>> = {
  ...lines,
  ...processes,
  ...servers,
  "row-lock": [2_000, 8_000],
  ...weathers
}

const systemFaults: ReadonlyArray<Fault["kind"]> = [
  ...Record.keys(lines),
  "kill",
  ...Record.keys(processes),
  ...Record.keys(servers),
  "row-lock"
]

const isIn = <K extends string>(group: Readonly<Record<K, Span>>, kind: string): kind is K => kind in group

const fill = (random: Random.Random, kind: Fault["kind"]): Fault => {
  if (kind === "row-lock") return { kind, organization: random.integer(0, 1) }
  if (isIn(servers, kind)) return { kind }
  if (isIn(processes, kind)) return { kind, target: random.pick(sides) }
  if (isIn(weathers, kind)) return { kind, account: random.pick([...accounts, "both"]) }
  const target = random.pick<Target>([...sides, "both"])
  return { kind, target, thenKill: kind === "lose-answer-and-cut" && random.chance(0.7) }
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
  let at = pace * random.integer(...rest)
  while (at < millis) {
    if (cards.length === 0) cards = [...random.shuffle(deck)]
    const kind = cards.pop() ?? "kill"
    // An answer that stays lost needs the database gone for longer than a settlement is retried, at any pace.
    const lasting = random.integer(...spans[kind]) * (kind === "lose-answer-and-cut" ? 1 : pace)
    episodes.push({ at: Math.round(at), lasting: Math.round(lasting), fault: fill(random, kind) })
    at += lasting + pace * random.integer(...rest)
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
    ...deal(Random.make(`${seed}:system`), systemFaults, { millis, pace, rest: [1_000, 14_000] }),
    ...deal(Random.make(`${seed}:weather`), Record.keys(weathers), { millis, pace, rest: [2_000, 8_000] })
  ].toSorted((a, b) => a.at - b.at)
}

/** One line, such as `12.3 s, for 0.5 s: kill {"target":"left"}`. */
export const describe = ({ at, fault, lasting }: Episode): string => {
  const { kind, ...rest } = fault
  return `${(at / 1000).toFixed(1)} s, for ${(lasting / 1000).toFixed(1)} s: ${kind} ${JSON.stringify(rest)}`
}
