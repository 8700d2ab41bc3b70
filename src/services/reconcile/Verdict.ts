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
