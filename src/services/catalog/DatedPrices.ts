import { Array as Arr, Order } from "effect"
import type { Path } from "./CatalogSource.ts"
import type { EntryContext, Report, Surface } from "./Surface.ts"

interface Dated {
  /** Unix milliseconds. */
  readonly at: number
}

interface DatedRoute {
  readonly cost_from?: ReadonlyArray<Dated>
}

export interface DatedEntry {
  readonly pricing_from?: ReadonlyArray<Dated>
  readonly routes: ReadonlyArray<DatedRoute>
}

export const latest = <A extends Dated>(all: ReadonlyArray<A> | undefined, at: number): A | undefined =>
  all?.findLast((one) => one.at <= at)

/** A route at a moment. */
export const routeAt = <Cost, R extends { readonly cost?: Cost; readonly cost_from?: ReadonlyArray<Cost & Dated> }>(
  route: R,
  at: number
): R => {
  const cost = latest(route.cost_from, at)
  return cost === undefined ? route : { ...route, cost }
}

/** When any price or cost changes, in order. */
export const datesOf = ({ pricing_from = [], routes }: DatedEntry): ReadonlyArray<number> =>
  Arr.sort(
    Arr.dedupe([...pricing_from, ...routes.flatMap(({ cost_from = [] }) => cost_from)].map(({ at }) => at)),
    Order.number
  )

const checkOrder = (report: Report, path: Path, all: ReadonlyArray<Dated> = []) =>
  all.forEach(({ at }, index) => {
    const before = all[index - 1]
    if (before !== undefined && before.at >= at) report([...path, index, "at"], "must be later than the one above it")
  })

/** Where the price or cost that begins at a moment is written; undefined for all else. */
const writtenAt = (entry: DatedEntry, key: Path, at: number): Path | undefined => {
  const [first, second, third, ...rest] = key
  const indexIn = (all: ReadonlyArray<Dated> = []) => all.findIndex((one) => one.at === at)
  if (first === "pricing" || first === "variants") {
    const index = indexIn(entry.pricing_from)
    return index < 0 ? undefined : ["pricing_from", index, ...key.slice(first === "pricing" ? 1 : 0)]
  }
  if (first !== "routes" || typeof second !== "number" || third !== "cost") return undefined
  const index = indexIn(entry.routes[second]?.cost_from)
  return index < 0 ? undefined : ["routes", second, "cost_from", index, ...rest]
}

/** Checks later prices and costs by the rules of the first. */
export const checkDates = <E extends DatedEntry>(
  report: Report,
  at: Path,
  surface: Pick<Surface<E, never, never>, "check" | "entryAt">,
  entry: E,
  context: EntryContext
): void => {
  checkOrder(report, [...at, "pricing_from"], entry.pricing_from)
  entry.routes.forEach(({ cost_from }, index) => checkOrder(report, [...at, "routes", index, "cost_from"], cost_from))
  for (const date of datesOf(entry)) {
    const reportDated: Report = (path, message) => {
      const written = writtenAt(entry, path.slice(at.length), date)
      if (written !== undefined) report([...at, ...written], message)
    }
    surface.check(reportDated, at, surface.entryAt(entry, date), context)
  }
}

/** What could be written shorter, as its last date has passed. */
export const findPast = (entry: DatedEntry & { readonly id: string }, now: number): ReadonlyArray<string> => {
  const isPast = (all: ReadonlyArray<Dated> = []) => (all.at(-1)?.at ?? Infinity) <= now
  return [
    ...(isPast(entry.pricing_from)
      ? [`${entry.id}: every date of pricing_from has passed: its last price can take the place of all before it`]
      : []),
    ...entry.routes.flatMap(({ cost_from }, index) =>
      isPast(cost_from)
        ? [`${entry.id}: every date of cost_from of routes[${index}] has passed: its last cost can take their place`]
        : []
    )
  ]
}
