import type { InvoiceEntry } from "../../../src/services/reconcile/ProviderInvoices.ts"
import type { Amounts, Verdict } from "../../../src/services/reconcile/Verdict.ts"

const usd = (dollars: number) => BigInt(Math.round(dollars * 1e9))
const tokens = (promptTokens: number, completionTokens: number): Amounts => ({ promptTokens, completionTokens })
const paid = (dollars: number, of: Amounts = tokens(1_000, 100)): Amounts => ({ ...of, usd: usd(dollars) })

interface Planted {
  readonly title: string
  readonly ours: ReadonlyArray<Amounts>
  readonly theirs: ReadonlyArray<Amounts & Pick<Partial<InvoiceEntry>, "key">>
  readonly verdicts: ReadonlyArray<Verdict>
}

/** What can differ in the window of one model. */
export const planted: ReadonlyArray<Planted> = [
  { title: "the same", ours: [paid(1)], theirs: [paid(1)], verdicts: ["matched"] },
  { title: "a price within the tolerance", ours: [paid(1)], theirs: [paid(1.01)], verdicts: ["matched"] },
  { title: "a price beyond the tolerance", ours: [paid(1)], theirs: [paid(1.02)], verdicts: ["price"] },
  { title: "a price below ours", ours: [paid(1)], theirs: [paid(0.98)], verdicts: ["price"] },
  { title: "a discount of all", ours: [paid(1)], theirs: [paid(0)], verdicts: ["price"] },
  { title: "amounts rounded to a millionth", ours: [paid(0.000_000_4)], theirs: [paid(0)], verdicts: ["matched"] },
  { title: "more prompt tokens", ours: [paid(1)], theirs: [paid(1, tokens(1_100, 100))], verdicts: ["quantity"] },
  { title: "fewer prompt tokens", ours: [paid(1)], theirs: [paid(1, tokens(900, 100))], verdicts: ["quantity"] },
  { title: "more completion tokens", ours: [paid(1)], theirs: [paid(1, tokens(1_000, 110))], verdicts: ["quantity"] },
  { title: "no completion tokens", ours: [paid(1)], theirs: [paid(1, tokens(1_000, 0))], verdicts: ["quantity"] },
  { title: "tokens moved across", ours: [paid(1)], theirs: [paid(1, tokens(900, 200))], verdicts: ["quantity"] },
  {
    title: "tokens within the tolerance",
    ours: [paid(1)],
    theirs: [paid(1, tokens(1_005, 101))],
    verdicts: ["matched"]
  },
  {
    title: "other tokens at another price",
    ours: [paid(1)],
    theirs: [paid(2, tokens(2_000, 200))],
    verdicts: ["quantity"]
  },
  { title: "calls past the gateway", ours: [], theirs: [paid(1)], verdicts: ["theirs_only"] },
  { title: "calls that they lost", ours: [paid(1)], theirs: [], verdicts: ["ours_only"] },
  { title: "a window listed twice", ours: [paid(1)], theirs: [paid(1), paid(1)], verdicts: ["matched", "theirs_only"] },
  {
    title: "a window listed twice with other amounts",
    ours: [paid(1)],
    theirs: [paid(1), paid(2)],
    verdicts: ["matched", "theirs_only"]
  },
  {
    title: "a window listed thrice",
    ours: [paid(1)],
    theirs: [paid(1), paid(1), paid(1)],
    verdicts: ["matched", "theirs_only", "theirs_only"]
  },
  {
    title: "two lines of one window",
    ours: [paid(2, tokens(2_000, 200))],
    theirs: [
      { ...paid(1), key: "input" },
      { ...paid(1), key: "output" }
    ],
    verdicts: ["matched"]
  },
  {
    title: "two routes of one model",
    ours: [paid(1), paid(1)],
    theirs: [paid(2, tokens(2_000, 200))],
    verdicts: ["matched"]
  },
  { title: "windows of nothing", ours: [paid(0, tokens(0, 0))], theirs: [paid(0, tokens(0, 0))], verdicts: [] }
]
