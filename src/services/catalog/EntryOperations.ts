import type { Listing } from "../../domain/ListedModel.ts"
import type { Feature, Model, RouteBase } from "../../domain/Model.ts"
import type { Path } from "./CatalogSource.ts"
import type { FamilyEntry } from "./EntryFields.ts"

export type NonEmpty<A> = readonly [A, ...ReadonlyArray<A>]
export type Report = (path: Path, message: string) => void

export interface EntryContext {
  readonly families: ReadonlyMap<string, FamilyEntry>
  /** The names of all families, including those that could not be decoded. */
  readonly knownFamilies: ReadonlySet<string>
}

export type BaseOf = (entry: RouteEntry) => RouteBase

interface RouteEntry {
  readonly provider: string
  readonly model: string
  readonly preference?: number
  readonly weight?: number
  readonly options?: RouteBase["options"]
}
/** In nano-USD per unit. */
export interface Margin {
  /** Such as `prompt per 1M`, `cached prompt per 1M above 200000`, `1K image`, `8 s clip`. */
  readonly unit: string
  readonly price: bigint
  /** Undefined if the catalog has no cost for the route. */
  readonly cost: bigint | undefined
}

/** The catalog's work on the entries of one surface: `E` is a decoded entry of catalog.yaml, `M` the model made of it. */
export interface EntryOperations<E, M extends Model, R extends RouteBase> {
  /** Checks the rules about several keys of one decoded entry. */
  readonly check: (report: Report, at: Path, entry: E, context: EntryContext) => void
  /** Returns, per route, the features that its adapter must support. */
  readonly promises: (entry: E, context: EntryContext) => ReadonlyArray<ReadonlyArray<Feature>>
  /** Returns the entry with the prices and costs at a moment in Unix milliseconds. */
  readonly entryAt: (entry: E, at: number) => E
  readonly compile: (entry: E, base: BaseOf, context: EntryContext) => M
  /** Returns the model with only these routes, without the capabilities and variants that none of them serves. */
  readonly narrow: (model: M, routes: NonEmpty<R>) => M
  /**
   * Returns the model with sandbox routes. For margins they have the first cost of the model's routes. If there is none, or
   * it equals the price, they have the price less `sandboxMargin` percent.
   */
  readonly inSandbox: (model: M, sandboxRoutes: ReadonlyArray<RouteBase>) => M
  readonly list: (model: M) => Listing
  readonly margins: (model: M, route: R) => ReadonlyArray<Margin>
}

/** The sandbox's margin in percent of the price, for models that the catalog sells at cost or whose cost it lacks. */
export const sandboxMargin = 20

export const firstCost = <C>(routes: ReadonlyArray<{ readonly cost: C | undefined }>): C | undefined =>
  routes.find(({ cost }) => cost !== undefined)?.cost

export const list = (words: Iterable<string>): string => [...words].join(", ")

export const explainUnknownName = (section: string, kind: string, name: string, known: Iterable<string>): string => {
  const names = list(known)
  return names === ""
    ? `unknown ${kind} ${name}: add it to ${section}`
    : `unknown ${kind} ${name}; known: ${names}; use one of them, or add it to ${section}`
}

type Words = ReadonlyArray<string>

export const findRepeats = (words: Words): Words => words.filter((word, at) => words.indexOf(word) !== at)

/** Returns a check of one key: each route may have only values of the model, and some route must serve each of them. */
export const checkNarrowing =
  <R>(report: Report, at: Path, routes: ReadonlyArray<R>) =>
  (key: string, own: Words, narrowed: (route: R) => Words | undefined): void => {
    const all = routes.map(narrowed)
    all.forEach((words, index) => {
      const unknown = (words ?? []).filter((word) => !own.includes(word))
      if (unknown.length === 0) return
      const fix = `add it to the model's ${key}, or remove it here`
      report([...at, "routes", index, key], `the model does not have ${list(unknown)}: ${fix}`)
    })
    const unserved = own.filter((word) => !all.some((words) => words === undefined || words.includes(word)))
    if (unserved.length === 0) return
    const fix = `add it to a route's ${key}, or remove it from the model`
    report([...at, "routes"], `no route serves ${key} ${list(unserved)}: ${fix}`)
  }

/** Throws if a value that the rules guarantee is missing, because continuing could sell a model for free. */
export const requireValue = <A>(value: A | undefined, what: string): A => {
  if (value === undefined) throw new Error(`${what} is missing: the catalog's rules were not checked`)
  return value
}
