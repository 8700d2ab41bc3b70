import { type Feature, Resolution, type RouteBase } from "../../domain/Model.ts"
import type { Adapters } from "./AdapterFeatures.ts"
import type { ProviderEntry } from "./CatalogFormat.ts"
import { type Path, routeOptions } from "./CatalogSource.ts"
import { checkDates } from "./DatedPrices.ts"
import type { FamilyEntry } from "./EntryFields.ts"
import type { Mistake } from "./Malformed.ts"
import { type EntryContext, lacks, list, type Report } from "./Surface.ts"
import { type ModelEntry, onEntry } from "./Surfaces.ts"

/** Keys of a route, as it should have them. */
type Narrowing = readonly [key: string, value: string]

const capabilities: ReadonlySet<Feature> = new Set(["tools", "vision", "response_format", "web_search"])

const isResolution = (feature: Feature) => Resolution.literals.some((resolution) => resolution === feature)

const narrowingsOf = (promised: ReadonlyArray<Feature>, lacking: ReadonlySet<Feature>): ReadonlyArray<Narrowing> => {
  const lacks = (isOf: (feature: Feature) => boolean) => [...lacking].some(isOf)
  const kept = promised.filter((feature) => capabilities.has(feature) && !lacking.has(feature))
  const narrowings: ReadonlyArray<readonly [isNeeded: boolean, ...narrowing: Narrowing]> = [
    [lacks((feature) => capabilities.has(feature)), "capabilities", `[${list(kept)}]`],
    [lacking.has("reasoning"), "reasoning", "none"],
    [lacking.has("edit"), "edit", "false"],
    [lacks(isResolution), "resolutions", "[the one that it makes]"],
    [lacking.has("size") || lacking.has("aspect_ratio"), "aspect_ratios", "[the one that it makes]"]
  ]
  return narrowings.flatMap(([isNeeded, ...narrowing]) => (isNeeded ? [narrowing] : []))
}

/** What makes a route promise no more than its adapter can do. */
const fixOf = (route: object, promised: ReadonlyArray<Feature>, lacking: ReadonlyArray<Feature>): string => {
  const narrowings = narrowingsOf(promised, new Set(lacking))
  const written = narrowings.map(([key, value]) => `${key}: ${value}`).join(", ")
  const isThere = narrowings.some(([key]) => Object.hasOwn(route, key))
  return [
    ...(narrowings.length === 0 ? [] : [isThere ? `set ${written} on the route` : `add ${written} to the route`]),
    // A family's rule, which a route cannot narrow.
    ...(lacking.includes("sampling") ? ["give the model a family with sampling: false"] : [])
  ].join("; ")
}

/** Well-formed entries; `known` also has the names of malformed ones. */
export interface Entries {
  readonly providers: ReadonlyMap<string, ProviderEntry>
  readonly families: ReadonlyMap<string, FamilyEntry>
  readonly models: ReadonlyArray<{ readonly index: number; readonly entry: ModelEntry }>
  readonly wires: Adapters
  readonly known: { readonly providers: ReadonlySet<string>; readonly families: ReadonlySet<string> }
}

export const sandboxAdapter = "sandbox"

export const isSandbox = ({ provider }: RouteBase): boolean => provider.adapter === sandboxAdapter

/** Before a route has answered, whether only the sandbox could. */
export const isInSandbox = (answered: RouteBase | undefined, routes: ReadonlyArray<RouteBase> = []): boolean =>
  answered === undefined ? routes.length > 0 && routes.every(isSandbox) : isSandbox(answered)

export const sandboxProviders = ["sandbox", "sandbox-b"] as const
const reserved: ReadonlySet<string> = new Set(sandboxProviders)

const checkProvider = (report: Report, name: string, { adapter, base_url }: ProviderEntry, wires: Adapters) => {
  const path = ["providers", name]
  if (!/^[A-Za-z0-9][\w.-]*$/.test(name)) report(path, "a provider's name must be letters, digits and . _ - only")
  if (!wires.has(adapter)) report([...path, "adapter"], `unknown adapter ${adapter}; known: ${list(wires.keys())}`)
  if (adapter === sandboxAdapter) return
  if (base_url === undefined) report(path, "base_url is missing: add base_url: https://… to the provider")
  if (reserved.has(name)) report(path, `the name ${name} is kept for adapter: sandbox: choose another`)
}

const checkRoutes = (report: Report, at: Path, { routes, surface }: ModelEntry, entries: Entries) =>
  routes.forEach(({ provider }, index) => {
    const path = [...at, "routes", index, "provider"]
    if (!entries.known.providers.has(provider)) {
      return report(path, lacks("providers", "provider", provider, entries.known.providers))
    }
    const adapter = entries.providers.get(provider)?.adapter ?? sandboxAdapter
    if (entries.wires.get(adapter)?.surfaces.has(surface) === false) {
      const able = [...entries.wires].flatMap(([name, { surfaces }]) => (surfaces.has(surface) ? [name] : []))
      const fix = `name a provider with one of the adapters ${list(able)}`
      report(path, `${provider} speaks ${adapter}, which has no ${surface} models: ${fix}`)
    }
  })

/** A request would silently lose a promised feature that the adapter lacks. */
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
    const features = account && entries.wires.get(account.adapter)?.surfaces.get(surface)
    if (features === undefined) return
    const able = features(routeOptions(account?.options, options))
    const promised = promises[index] ?? []
    const lacking = promised.filter((feature) => !able.has(feature))
    if (lacking.length === 0) return
    const message = `${provider} speaks ${account?.adapter}, which cannot do ${list(lacking)} with these options`
    report([...at, "routes", index], `${message}: ${fixOf(route, promised, lacking)}`)
  })

export const contextOf = ({ families, known }: Entries): EntryContext => ({ families, knownFamilies: known.families })

/** Across entries that are each well-formed. */
export const findMistakes = (entries: Entries): ReadonlyArray<Mistake> => {
  const found: Array<Mistake> = []
  const report: Report = (path, message) => void found.push({ path, message })
  for (const [name, entry] of entries.providers) checkProvider(report, name, entry, entries.wires)
  const context = contextOf(entries)
  const seen = new Map<string, number>()
  for (const { index, entry } of entries.models) {
    const at = ["models", index]
    const first = seen.get(entry.id)
    if (first === undefined) seen.set(entry.id, index)
    else report([...at, "id"], `${entry.id} is the id of models[${first}] too`)
    checkRoutes(report, at, entry, entries)
    onEntry(entry, (surface, own) => {
      surface.check(report, at, own, context)
      checkDates(report, at, surface, own, context)
      checkFeatures(report, at, entry, entries, surface.promises(own, context))
    })
  }
  return found
}
