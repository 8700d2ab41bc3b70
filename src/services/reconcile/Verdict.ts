import type { Book, BookEntry } from "./ProviderBooks.ts"

export const verdicts = ["matched", "theirs_only", "ours_only", "quantity", "price", "open"] as const
export type Verdict = (typeof verdicts)[number]

/** Undefined where one side does not state it. */
export interface Amounts {
  /** In nano-USD. */
  readonly usd?: bigint | undefined
  readonly promptTokens?: number | undefined
  readonly completionTokens?: number | undefined
}

export interface ReconciledRow {
  /** Unix milliseconds. */
  readonly at: number
  readonly model: string | null
  readonly requestId: string | null
  readonly ours: Amounts | undefined
  readonly theirs: Amounts | undefined
  readonly verdict: Verdict
}

/** Vendors round amounts to a millionth of a dollar. */
const roundingNano = 1_000n

const isWithin = (a: bigint, b: bigint, millionths: bigint, slack: bigint): boolean => {
  const difference = a < b ? b - a : a - b
  const [absoluteA, absoluteB] = [a < 0n ? -a : a, b < 0n ? -b : b]
  const larger = absoluteA < absoluteB ? absoluteB : absoluteA
  return difference <= slack || difference * 1_000_000n <= larger * millionths
}

const isSame = (a: number | undefined, b: number | undefined, millionths: bigint): boolean =>
  a === undefined || b === undefined || isWithin(BigInt(a), BigInt(b), millionths, 0n)

/** `tolerance` is in millionths of the larger amount. */
export const judge = (
  ours: Amounts | undefined,
  theirs: Amounts | undefined,
  { isFinal, tolerance }: { readonly isFinal: boolean; readonly tolerance: number }
): Verdict => {
  if (!isFinal) return "open"
  if (theirs === undefined) return "ours_only"
  if (ours === undefined) return "theirs_only"
  const millionths = BigInt(tolerance)
  const isCounted =
    isSame(ours.promptTokens, theirs.promptTokens, millionths) &&
    isSame(ours.completionTokens, theirs.completionTokens, millionths)
  if (!isCounted) return "quantity"
  if (ours.usd === undefined || theirs.usd === undefined) return "matched"
  return isWithin(ours.usd, theirs.usd, millionths, roundingNano) ? "matched" : "price"
}

export const isNothing = ({ completionTokens = 0, promptTokens = 0, usd = 0n }: Amounts): boolean =>
  usd === 0n && promptTokens === 0 && completionTokens === 0

const plus = <A extends number | bigint>(a: A | undefined, b: A | undefined, add: (a: A, b: A) => A): A | undefined =>
  a === undefined ? b : b === undefined ? a : add(a, b)

export const addAmounts = (a: Amounts, b: Amounts): Amounts => ({
  usd: plus(a.usd, b.usd, (x, y) => x + y),
  promptTokens: plus(a.promptTokens, b.promptTokens, (x, y) => x + y),
  completionTokens: plus(a.completionTokens, b.completionTokens, (x, y) => x + y)
})

export const tokensOf = (amounts: Amounts | undefined): number | null =>
  amounts === undefined || (amounts.promptTokens === undefined && amounts.completionTokens === undefined)
    ? null
    : (amounts.promptTokens ?? 0) + (amounts.completionTokens ?? 0)

export const unitMillis = { hour: 3_600_000, day: 86_400_000 } as const

export interface OwnWindow extends Amounts {
  /** Unix milliseconds of its beginning. */
  readonly at: number
  /** As routes name it upstream. */
  readonly model: string
}

interface Comparison {
  readonly book: Pick<Book, "finalAfter" | "states">
  readonly unit: keyof typeof unitMillis
  readonly nameOf: (model: string) => string
  readonly tolerance: number
  /** Unix milliseconds. */
  readonly now: number
}

interface Pair {
  readonly at: number
  readonly model: string
  ours: Amounts | undefined
  theirs: Amounts | undefined
}

const stated = ({ states }: Comparison["book"], { completionTokens, promptTokens, usd }: Amounts): Amounts => ({
  ...(states.includes("usd") && { usd }),
  ...(states.includes("tokens") && { promptTokens, completionTokens })
})

const byTimeAndModel = (a: Pair, b: Pair) => a.at - b.at || (a.model < b.model ? -1 : a.model > b.model ? 1 : 0)

/** One row for each window and model, and one for each entry that is listed twice. */
export const compareWindows = (
  ours: Iterable<OwnWindow>,
  theirs: Iterable<BookEntry>,
  { book, nameOf, now, tolerance, unit }: Comparison
): ReadonlyArray<ReconciledRow> => {
  const width = unitMillis[unit]
  const pairs = new Map<string, Pair>()
  const pairOf = (at: number, name: string): Pair => {
    const model = nameOf(name)
    const start = Math.floor(at / width) * width
    const key = `${start} ${model}`
    const known = pairs.get(key)
    if (known !== undefined) return known
    const pair: Pair = { at: start, model, ours: undefined, theirs: undefined }
    pairs.set(key, pair)
    return pair
  }
  const isFinal = (at: number) => at + width + book.finalAfter <= now
  for (const { at, model, ...amounts } of ours) {
    const said = stated(book, amounts)
    if (isNothing(said)) continue
    const pair = pairOf(at, model)
    pair.ours = addAmounts(pair.ours ?? {}, said)
  }
  const listed = new Set<string>()
  const repeated: Array<Pair> = []
  for (const entry of theirs) {
    const said = stated(book, entry)
    if (isNothing(said)) continue
    const pair = pairOf(entry.at, entry.model)
    const key = `${pair.at} ${entry.key}`
    if (listed.has(key)) repeated.push({ at: pair.at, model: pair.model, ours: undefined, theirs: said })
    else {
      listed.add(key)
      pair.theirs = addAmounts(pair.theirs ?? {}, said)
    }
  }
  return [...pairs.values(), ...repeated].toSorted(byTimeAndModel).map(({ at, model, ours, theirs }) => ({
    at,
    model,
    requestId: null,
    ours,
    theirs,
    verdict: judge(ours, theirs, { isFinal: isFinal(at), tolerance })
  }))
}

const snapshot = /-(?:\d{4}-\d{2}-\d{2}|20\d{6})$/

const withoutDate = (name: string): string => name.replace(snapshot, "")

/** Gives a model one name on both sides: `gpt-4o-2024-08-06` is `gpt-4o` where routes call it so, and the reverse. */
export const snapshotNames = (upstreamModels: Iterable<string>): ((name: string) => string) => {
  const known = new Map(Array.from(upstreamModels, (name) => [name.toLowerCase(), name]))
  const dated = new Map<string, Array<string>>()
  for (const [lower, name] of known) {
    const base = withoutDate(lower)
    if (base !== lower) dated.set(base, [...(dated.get(base) ?? []), name])
  }
  return (name) => {
    const lower = name.toLowerCase()
    const base = withoutDate(lower)
    const undated = known.get(base)
    if (undated !== undefined) return undated
    const exact = known.get(lower)
    if (exact !== undefined) return exact
    const [only, ...others] = dated.get(base) ?? []
    return only !== undefined && others.length === 0 && base === lower ? only : name
  }
}
