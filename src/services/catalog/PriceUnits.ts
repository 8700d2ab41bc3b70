import { Predicate } from "effect"
import { toUsdText } from "../../domain/Money.ts"
import { keyOf, type Path } from "./CatalogSource.ts"
import type { ModelEntry } from "./Surfaces.ts"

/** Keys with prices per many units. No vendor's price is below `least` (in nano-USD). */
const units = [
  { suffix: /_per_1m_usd$/, least: 1_000_000n, count: 1_000_000n, one: "token", all: "million" },
  { suffix: /_per_1k_usd$/, least: 100_000_000n, count: 1_000n, one: "search", all: "thousand" }
] as const

const noteOf = (path: Path, value: bigint): ReadonlyArray<string> =>
  units.flatMap(({ all, count, least, one, suffix }) => {
    if (!suffix.test(String(path.at(-1))) || value === 0n || value >= least) return []
    const [given, meant] = [toUsdText(value), toUsdText(value * count)]
    return [`${keyOf(path)} is ${given}, which looks like a price per ${one}: per ${all} it would be ${meant}`]
  })

const notesAt = (path: Path, value: unknown): ReadonlyArray<string> => {
  if (typeof value === "bigint") return noteOf(path, value)
  if (Array.isArray(value)) return value.flatMap((item, index) => notesAt([...path, index], item))
  if (!Predicate.isReadonlyRecord(value)) return []
  return Object.entries(value).flatMap(([key, inner]) => notesAt([...path, key], inner))
}

/** Finds prices and costs, dated ones too, that look like prices per token or per search. */
export const findUnitPrices = (entry: ModelEntry): ReadonlyArray<string> =>
  notesAt([], entry).map((note) => `${entry.id}: ${note}`)
