import type { Feature, Model, RouteBase } from "../../domain/Model.ts"
import type { FamilyEntry } from "./Fields.ts"
import type { ListedModel } from "./ListedModel.ts"
import type { Path } from "./Source.ts"

export type NonEmpty<A> = readonly [A, ...ReadonlyArray<A>]
export type Report = (path: Path, message: string) => void

/** The part of a catalog that entries of models may refer to; known families may be malformed. */
export interface EntryContext {
  readonly families: ReadonlyMap<string, FamilyEntry>
  readonly knownFamilies: ReadonlySet<string>
}

/** Makes of a route's entry what the routes of all surfaces have. */
export type BaseOf = (entry: RouteEntry) => RouteBase

/** What the entries of routes and models have on every surface. */
export interface RouteEntry {
  readonly provider: string
  readonly model: string
  readonly preference?: number
  readonly weight?: number
  readonly options?: RouteBase["options"]
}
/** What the customer pays against what the provider charges, in nano-USD of one unit. */
export interface Margin {
  /** Such as `prompt per 1M`, `cached prompt per 1M above 200000`, `1K image`, `8 s clip`. */
  readonly unit: string
  readonly price: bigint
  readonly cost: bigint
}

/** All that is particular to a surface in a catalog. */
export interface Surface<E, M extends Model, R extends RouteBase> {
  /** Reports what is wrong inside one well-formed entry. */
  readonly check: (report: Report, at: Path, entry: E, context: EntryContext) => void
  /** For each route what its adapter has to be able to do. */
  readonly promises: (entry: E, context: EntryContext) => ReadonlyArray<ReadonlyArray<Feature>>
  /** The model of a checked entry. */
  readonly compile: (entry: E, base: BaseOf, context: EntryContext) => M
  /** The model with some of its routes, and no promise that they cannot keep. */
  readonly narrow: (model: M, routes: NonEmpty<R>) => M
  /** The model with routes of the built-in sandbox in place of its own. */
  readonly inSandbox: (model: M, bases: ReadonlyArray<RouteBase>) => M
  readonly list: (model: M) => Pick<ListedModel, "context_length" | "pricing" | "params">
  /** Empty where the route does not say what its provider charges. */
  readonly margins: (model: M, route: R) => ReadonlyArray<Margin>
}

export const list = (words: Iterable<string>): string => [...words].join(", ")

type Words = ReadonlyArray<string>

export const repeats = (words: Words): Words => words.filter((word, at) => words.indexOf(word) !== at)

/** Finds words of routes that the model does not have, and words of the model that no route has. */
export const checkNarrowing = (
  report: Report,
  at: Path,
  key: string,
  own: Words,
  routes: ReadonlyArray<Words | undefined>
) => {
  routes.forEach((words, index) => {
    const foreign = (words ?? []).filter((word) => !own.includes(word))
    if (foreign.length > 0) report([...at, "routes", index, key], `the model itself does not have ${list(foreign)}`)
  })
  const unserved = own.filter((word) => !routes.some((words) => words === undefined || words.includes(word)))
  if (unserved.length > 0) report([...at, "routes"], `no route serves ${key} ${list(unserved)} of the model`)
}

/** A value that the catalog's rules guarantee: to go on without it would give a model away. */
export const required = <A>(value: A | undefined, what: string): A => {
  if (value === undefined) throw new Error(`${what} is missing: the catalog's rules were not checked`)
  return value
}
