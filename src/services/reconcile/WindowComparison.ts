import type { Book, BookEntry } from "./ProviderBooks.ts"
import { type Amounts, addAmounts, isNothing, judge, type ReconciledRow } from "./Verdict.ts"

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
