import type { Listing } from "../../domain/ListedModel.ts"
import type { Feature, Model, RouteBase } from "../../domain/Model.ts"
import type { Path } from "./CatalogSource.ts"
import type { FamilyEntry } from "./EntryFields.ts"

export type NonEmpty<A> = readonly [A, ...ReadonlyArray<A>]
export type Report = (path: Path, message: string) => void

/** Known families may be malformed. */
export interface EntryContext {
  readonly families: ReadonlyMap<string, FamilyEntry>
  readonly knownFamilies: ReadonlySet<string>
}

export type BaseOf = (entry: RouteEntry) => RouteBase

export interface RouteEntry {
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
  /** Undefined where the route names none. */
  readonly cost: bigint | undefined
}

export interface Surface<E, M extends Model, R extends RouteBase> {
  /** Checks one well-formed entry by itself. */
  readonly check: (report: Report, at: Path, entry: E, context: EntryContext) => void
  /** Per route, what its adapter must support. */
  readonly promises: (entry: E, context: EntryContext) => ReadonlyArray<ReadonlyArray<Feature>>
  /** With the prices and costs of a moment, in Unix milliseconds, in the place of the first. */
  readonly entryAt: (entry: E, at: number) => E
  readonly compile: (entry: E, base: BaseOf, context: EntryContext) => M
  /** Drops what the remaining routes cannot serve. */
  readonly narrow: (model: M, routes: NonEmpty<R>) => M
  /** Uses the cost of the first route that has one, so that margins can be tried; else the sandbox costs nothing. */
  readonly inSandbox: (model: M, bases: ReadonlyArray<RouteBase>) => M
  readonly list: (model: M) => Listing
  readonly margins: (model: M, route: R) => ReadonlyArray<Margin>
}

export const firstCost = <C>(routes: ReadonlyArray<{ readonly cost: C | undefined }>): C | undefined =>
  routes.find(({ cost }) => cost !== undefined)?.cost

export const list = (words: Iterable<string>): string => [...words].join(", ")

/** Says that a section of the catalog lacks a name. */
export const lacks = (section: string, kind: string, name: string, known: Iterable<string>): string => {
  const names = list(known)
  return names === ""
    ? `unknown ${kind} ${name}: add it to ${section}`
    : `unknown ${kind} ${name}; known: ${names}: name one of them, or add it to ${section}`
}

type Words = ReadonlyArray<string>

export const findRepeats = (words: Words): Words => words.filter((word, at) => words.indexOf(word) !== at)

/** What a route narrows must be the model's own, and some route must serve each of it. */
export const checkNarrowing =
  <R>(report: Report, at: Path, routes: ReadonlyArray<R>) =>
  (key: string, own: Words, narrowed: (route: R) => Words | undefined): void => {
    const all = routes.map(narrowed)
    all.forEach((words, index) => {
      const foreign = (words ?? []).filter((word) => !own.includes(word))
      if (foreign.length === 0) return
      const fix = `add it to ${key} of the model, or leave it out here`
      report([...at, "routes", index, key], `the model itself does not have ${list(foreign)}: ${fix}`)
    })
    const unserved = own.filter((word) => !all.some((words) => words === undefined || words.includes(word)))
    if (unserved.length === 0) return
    const fix = `add it to ${key} of a route, or leave it out of the model`
    report([...at, "routes"], `no route serves ${key} ${list(unserved)} of the model: ${fix}`)
  }

/** Going on without a guaranteed value would give a model away. */
export const requireValue = <A>(value: A | undefined, what: string): A => {
  if (value === undefined) throw new Error(`${what} is missing: the catalog's rules were not checked`)
  return value
}
