import { type Feature, Resolution, type RouteBase } from "../../domain/Model.ts"
import type { Problem, ProviderEntry } from "./CatalogProblems.ts"
import { type Path, routeOptions } from "./CatalogSource.ts"
import type { Adapters, FamilyEntry } from "./EntryFields.ts"
import { type EntryContext, explainUnknownName, list, type Report } from "./EntryOperations.ts"
import { checkMarkups, type Markups } from "./Markup.ts"
import { type ModelEntry, onEntry } from "./ModelEntry.ts"
import { checkDates } from "./PriceLists.ts"

/** A key of a route, and the value that limits the route to what its adapter supports. */
type Narrowing = readonly [key: string, value: string]

const capabilities: ReadonlySet<Feature> = new Set(["tools", "vision", "response_format", "web_search"])

const isResolution = (feature: Feature) => Resolution.literals.some((resolution) => resolution === feature)

const narrowingsOf = (promised: ReadonlyArray<Feature>, missing: ReadonlySet<Feature>): ReadonlyArray<Narrowing> => {
  const lacksSome = (isOf: (feature: Feature) => boolean) => [...missing].some(isOf)
  const remaining = promised.filter((feature) => capabilities.has(feature) && !missing.has(feature))
  const narrowings: ReadonlyArray<readonly [isNeeded: boolean, ...narrowing: Narrowing]> = [
    [lacksSome((feature) => capabilities.has(feature)), "capabilities", `[${list(remaining)}]`],
    [missing.has("reasoning"), "reasoning", "none"],
    [missing.has("edit"), "edit", "false"],
    [lacksSome(isResolution), "resolutions", "[the value that it supports]"],
    [missing.has("size") || missing.has("aspect_ratio"), "aspect_ratios", "[the value that it supports]"]
  ]
  return narrowings.flatMap(([isNeeded, ...narrowing]) => (isNeeded ? [narrowing] : []))
}

/** Returns the text of a change to the catalog, after which the route promises only what its adapter supports. */
const fixOf = (route: object, promised: ReadonlyArray<Feature>, missing: ReadonlyArray<Feature>): string => {
  const narrowings = narrowingsOf(promised, new Set(missing))
  const text = narrowings.map(([key, value]) => `${key}: ${value}`).join(", ")
  const isPresent = narrowings.some(([key]) => Object.hasOwn(route, key))
  return [
    ...(narrowings.length === 0 ? [] : [isPresent ? `set ${text} on the route` : `add ${text} to the route`]),
    // A route cannot narrow a family's rule.
    ...(missing.includes("sampling") ? ["use a family with sampling: false"] : [])
  ].join("; ")
}

/** The decoded entries of the file. `known` also has the names of those that could not be decoded. */
export interface Entries {
  readonly providers: ReadonlyMap<string, ProviderEntry>
  readonly families: ReadonlyMap<string, FamilyEntry>
  readonly models: ReadonlyArray<{ readonly index: number; readonly entry: ModelEntry }>
  readonly markups: Markups
  readonly adapters: Adapters
  readonly known: {
    readonly providers: ReadonlySet<string>
    readonly families: ReadonlySet<string>
    /** Undefined if a model has no readable id. */
    readonly models: ReadonlyArray<string> | undefined
  }
}

export const sandboxAdapter = "sandbox"

export const isSandbox = ({ provider }: RouteBase): boolean => provider.adapter === sandboxAdapter

/** Whether the sandbox served the request; if no route has served it, whether all its routes are the sandbox's. */
export const isServedBySandbox = (answered: RouteBase | undefined, routes: ReadonlyArray<RouteBase> = []): boolean =>
  answered === undefined ? routes.length > 0 && routes.every(isSandbox) : isSandbox(answered)

export const sandboxProviders = ["sandbox", "sandbox-b"] as const
const reservedNames: ReadonlySet<string> = new Set(sandboxProviders)

const checkProvider = (report: Report, name: string, { adapter, base_url }: ProviderEntry, adapters: Adapters) => {
  const path = ["providers", name]
  if (!/^[A-Za-z0-9][\w.-]*$/.test(name)) report(path, "a provider's name must be letters, digits and . _ - only")
  if (!adapters.has(adapter))
    report([...path, "adapter"], `unknown adapter ${adapter}; known: ${list(adapters.keys())}`)
  if (adapter === sandboxAdapter) return
  if (base_url === undefined) report(path, "base_url is missing: add base_url: https://… to the provider")
  if (reservedNames.has(name)) report(path, `the name ${name} is reserved for adapter: sandbox; choose another name`)
}

const checkRoutes = (report: Report, at: Path, { routes, surface }: ModelEntry, entries: Entries) =>
  routes.forEach(({ provider }, index) => {
    const path = [...at, "routes", index, "provider"]
    if (!entries.known.providers.has(provider)) {
      return report(path, explainUnknownName("providers", "provider", provider, entries.known.providers))
    }
    const adapter = entries.providers.get(provider)?.adapter ?? sandboxAdapter
    if (entries.adapters.get(adapter)?.surfaces.has(surface) === false) {
      const capableAdapters = [...entries.adapters].flatMap(([name, { surfaces }]) =>
        surfaces.has(surface) ? [name] : []
      )
      const fix = `use a provider with one of the adapters ${list(capableAdapters)}`
      report(path, `${provider} uses the adapter ${adapter}, which has no ${surface} models: ${fix}`)
    }
  })

/** Reports promised features that the adapter lacks, because requests would silently lose them. */
const checkFeatures = (
  report: Report,
  at: Path,
  { routes, surface }: ModelEntry,
  entries: Entries,
  promises: ReadonlyArray<ReadonlyArray<Feature>>
) =>
  routes.forEach((route, index) => {
    const { options, provider } = route
    const account = entries.providers.get(provider)
    const features = account && entries.adapters.get(account.adapter)?.surfaces.get(surface)
    if (features === undefined) return
    const supported = features(routeOptions(account?.options, options))
    const promised = promises[index] ?? []
    const missing = promised.filter((feature) => !supported.has(feature))
    if (missing.length === 0) return
    const message = `${provider} uses the adapter ${account?.adapter}, which does not support ${list(missing)} with these options`
    report([...at, "routes", index], `${message}: ${fixOf(route, promised, missing)}`)
  })

export const contextOf = ({ families, known }: Entries): EntryContext => ({ families, knownFamilies: known.families })

/** Returns the violations of rules about several keys or entries. Expects entries that decoding accepted. */
export const findProblems = (entries: Entries): ReadonlyArray<Problem> => {
  const problems: Array<Problem> = []
  const report: Report = (path, message) => void problems.push({ path, message })
  for (const [name, entry] of entries.providers) checkProvider(report, name, entry, entries.adapters)
  checkMarkups(report, entries.markups, entries.known.providers, entries.known.models)
  const context = contextOf(entries)
  const indexOf = new Map<string, number>()
  for (const { index, entry } of entries.models) {
    const at = ["models", index]
    const first = indexOf.get(entry.id)
    if (first === undefined) indexOf.set(entry.id, index)
    else report([...at, "id"], `models[${first}] already has the id ${entry.id}`)
    checkRoutes(report, at, entry, entries)
    onEntry(entry, (operations, surfaceEntry) => {
      operations.check(report, at, surfaceEntry, context)
      checkDates(report, at, operations, surfaceEntry, context)
      checkFeatures(report, at, entry, entries, operations.promises(surfaceEntry, context))
    })
  }
  return problems
}
