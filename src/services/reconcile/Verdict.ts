import type { InvoiceEntry, InvoiceSource } from "./ProviderInvoices.ts"

export const verdicts = ["matched", "theirs_only", "ours_only", "quantity", "price", "open"] as const
export type Verdict = (typeof verdicts)[number]

/** Amounts in the log or in the invoice. A field is undefined if that source lacks it. */
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

const isSameCount = (a: number | undefined, b: number | undefined, millionths: bigint): boolean =>
  a === undefined || b === undefined || isWithin(BigInt(a), BigInt(b), millionths, 0n)

/** Compares the amounts of the log and the invoice. `tolerance` is in millionths of the larger amount. */
export const judge = (
  ours: Amounts | undefined,
  theirs: Amounts | undefined,
  { isFinal, tolerance }: { readonly isFinal: boolean; readonly tolerance: number }
): Verdict => {
  if (!isFinal) return "open"
  if (theirs === undefined) return "ours_only"
  if (ours === undefined) return "theirs_only"
  const millionths = BigInt(tolerance)
  const hasSameTokens =
    isSameCount(ours.promptTokens, theirs.promptTokens, millionths) &&
    isSameCount(ours.completionTokens, theirs.completionTokens, millionths)
  if (!hasSameTokens) return "quantity"
  if (ours.usd === undefined || theirs.usd === undefined) return "matched"
  return isWithin(ours.usd, theirs.usd, millionths, roundingNano) ? "matched" : "price"
}

export const isZero = ({ completionTokens = 0, promptTokens = 0, usd = 0n }: Amounts): boolean =>
  usd === 0n && promptTokens === 0 && completionTokens === 0

const addDefined = <A extends number | bigint>(
  a: A | undefined,
  b: A | undefined,
  add: (a: A, b: A) => A
): A | undefined => (a === undefined ? b : b === undefined ? a : add(a, b))

export const addAmounts = (a: Amounts, b: Amounts): Amounts => ({
  usd: addDefined(a.usd, b.usd, (x, y) => x + y),
  promptTokens: addDefined(a.promptTokens, b.promptTokens, (x, y) => x + y),
  completionTokens: addDefined(a.completionTokens, b.completionTokens, (x, y) => x + y)
})

export const tokensOf = (amounts: Amounts | undefined): number | null =>
  amounts === undefined || (amounts.promptTokens === undefined && amounts.completionTokens === undefined)
    ? null
    : (amounts.promptTokens ?? 0) + (amounts.completionTokens ?? 0)

export const unitMillis = { hour: 3_600_000, day: 86_400_000 } as const

export interface OwnWindow extends Amounts {
  /** The start of the window in Unix milliseconds. */
  readonly at: number
  /** The vendor's name of the route's model. */
  readonly model: string
}

interface Comparison {
  readonly source: Pick<InvoiceSource, "finalAfter" | "states">
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

const pickStated = ({ states }: Comparison["source"], { completionTokens, promptTokens, usd }: Amounts): Amounts => ({
  ...(states.includes("usd") && { usd }),
  ...(states.includes("tokens") && { promptTokens, completionTokens })
})

const byTimeAndModel = (a: Pair, b: Pair) => a.at - b.at || (a.model < b.model ? -1 : a.model > b.model ? 1 : 0)

/** Returns a row for each window and model, and a row for each duplicate entry. */
export const compareWindows = (
  ours: Iterable<OwnWindow>,
  theirs: Iterable<InvoiceEntry>,
  { nameOf, now, source, tolerance, unit }: Comparison
): ReadonlyArray<ReconciledRow> => {
  const width = unitMillis[unit]
  const pairs = new Map<string, Pair>()
  const pairOf = (at: number, name: string): Pair => {
    const model = nameOf(name)
    const start = Math.floor(at / width) * width
    const key = `${start} ${model}`
    const existing = pairs.get(key)
    if (existing !== undefined) return existing
    const pair: Pair = { at: start, model, ours: undefined, theirs: undefined }
    pairs.set(key, pair)
    return pair
  }
  const isFinal = (at: number) => at + width + source.finalAfter <= now
  for (const { at, model, ...amounts } of ours) {
    const ownAmounts = pickStated(source, amounts)
    if (isZero(ownAmounts)) continue
    const pair = pairOf(at, model)
    pair.ours = addAmounts(pair.ours ?? {}, ownAmounts)
  }
  const seenKeys = new Set<string>()
  const duplicates: Array<Pair> = []
  for (const entry of theirs) {
    const listedAmounts = pickStated(source, entry)
    if (isZero(listedAmounts)) continue
    const pair = pairOf(entry.at, entry.model)
    const key = `${pair.at} ${entry.key}`
    if (seenKeys.has(key)) duplicates.push({ at: pair.at, model: pair.model, ours: undefined, theirs: listedAmounts })
    else {
      seenKeys.add(key)
      pair.theirs = addAmounts(pair.theirs ?? {}, listedAmounts)
    }
  }
  return [...pairs.values(), ...duplicates].toSorted(byTimeAndModel).map(({ at, model, ours, theirs }) => ({
    at,
    model,
    requestId: null,
    ours,
    theirs,
    verdict: judge(ours, theirs, { isFinal: isFinal(at), tolerance })
  }))
}

const dateSuffix = /-(?:\d{4}-\d{2}-\d{2}|20\d{6})$/

const removeDate = (name: string): string => name.replace(dateSuffix, "")

/**
 * Returns a function that maps the invoice's name of a model to the routes' name. Either may have a date, such as
 * `gpt-4o-2024-08-06`.
 */
export const makeModelNames = (upstreamModels: Iterable<string>): ((name: string) => string) => {
  const names = new Map(Array.from(upstreamModels, (name) => [name.toLowerCase(), name]))
  const datedNames = new Map<string, Array<string>>()
  for (const [lower, name] of names) {
    const base = removeDate(lower)
    if (base !== lower) datedNames.set(base, [...(datedNames.get(base) ?? []), name])
  }
  return (name) => {
    const lower = name.toLowerCase()
    const base = removeDate(lower)
    const undated = names.get(base)
    if (undated !== undefined) return undated
    const exact = names.get(lower)
    if (exact !== undefined) return exact
    const [first, ...others] = datedNames.get(base) ?? []
    return first !== undefined && others.length === 0 && base === lower ? first : name
  }
}
