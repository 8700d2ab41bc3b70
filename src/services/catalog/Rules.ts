import type { Capability, Feature, ReasoningEffort, Resolution, RouteBase } from "../../domain/Model.ts"
import type { Adapters } from "./Adapters.ts"
import type {
  ChatModelEntry,
  FamilyEntry,
  ImageModelEntry,
  ModelEntry,
  ProviderEntry,
  VideoModelEntry
} from "./Format.ts"
import { type Path, routeOptions } from "./Source.ts"

/** The well-formed entries of a catalog. `known` has every name, well-formed or not. */
export interface Entries {
  readonly providers: ReadonlyMap<string, ProviderEntry>
  readonly families: ReadonlyMap<string, FamilyEntry>
  readonly models: ReadonlyArray<{ readonly index: number; readonly entry: ModelEntry }>
  /** What a provider's adapter may be. */
  readonly wires: Adapters
  readonly known: { readonly providers: ReadonlySet<string>; readonly families: ReadonlySet<string> }
}

export interface Mistake {
  readonly path: Path
  readonly message: string
}

export const sandboxAdapter = "sandbox"

/** Whether the route's answers are made up. */
export const isSandbox = ({ provider }: RouteBase): boolean => provider.adapter === sandboxAdapter

export const sandboxProviders = ["sandbox", "sandbox-b"] as const
const reserved: ReadonlySet<string> = new Set(sandboxProviders)

type Say = (path: Path, message: string) => void
type Words = ReadonlyArray<string>

const list = (words: Iterable<string>): string => [...words].join(", ")

const repeats = (words: Words): Words => words.filter((word, at) => words.indexOf(word) !== at)

/** What a chat model's own words and its family's come to together. */
export const chatRules = (entry: ChatModelEntry, family: FamilyEntry | undefined) => {
  const caps = [entry.max_output, family?.max_output].filter((cap) => cap !== undefined)
  const reasoning: ReadonlyArray<ReasoningEffort> | "binary" | "none" = entry.reasoning ?? family?.reasoning ?? "none"
  return {
    maxOutput: caps.length === 0 ? undefined : Math.min(...caps),
    maxOutputPolicy: family?.max_output_policy ?? "clamp",
    sampling: family?.sampling ?? false,
    reasoning,
    capabilities: entry.capabilities ?? family?.capabilities ?? [],
    imageTokens: entry.image_tokens ?? family?.image_tokens ?? 5000,
    webSearchTokens: entry.web_search_tokens ?? family?.web_search_tokens ?? 25_000
  } as const
}

const checkProvider = (say: Say, name: string, { adapter, base_url }: ProviderEntry, wires: Adapters) => {
  const path = ["providers", name]
  if (!/^[A-Za-z0-9][\w.-]*$/.test(name)) say(path, "a provider's name must be letters, digits and . _ - only")
  if (!wires.has(adapter)) say([...path, "adapter"], `unknown adapter ${adapter}; known: ${list(wires.keys())}`)
  if (adapter === sandboxAdapter) return
  if (base_url === undefined) say(path, "base_url is missing")
  if (reserved.has(name)) say(path, `the name ${name} is kept for adapter: sandbox`)
}

const checkRoutes = (say: Say, at: Path, { routes, surface }: ModelEntry, entries: Entries) =>
  routes.forEach(({ provider }, index) => {
    const path = [...at, "routes", index, "provider"]
    if (!entries.known.providers.has(provider)) {
      return say(path, `unknown provider ${provider}; known: ${list(entries.known.providers)}`)
    }
    const adapter = entries.providers.get(provider)?.adapter ?? sandboxAdapter
    if (entries.wires.get(adapter)?.surfaces.has(surface) === false) {
      say(path, `${provider} speaks ${adapter}, which has no ${surface} models`)
    }
  })

/**
 * Says which features the model promises of a route whose adapter cannot do them: a request for them would lose them on
 * its way.
 */
const checkFeatures = (
  say: Say,
  at: Path,
  { routes, surface }: ModelEntry,
  entries: Entries,
  promised: (index: number) => ReadonlyArray<Feature>
) =>
  routes.forEach(({ options, provider }, index) => {
    const account = entries.providers.get(provider)
    const features = account && entries.wires.get(account.adapter)?.surfaces.get(surface)
    if (features === undefined) return
    const able = features(routeOptions(account?.options, options))
    const lacking = promised(index).filter((feature) => !able.has(feature))
    if (lacking.length === 0) return
    const message = `${provider} speaks ${account?.adapter}, which cannot do ${list(lacking)} with these options`
    say([...at, "routes", index], message)
  })

/** Says which words of the routes are not the model's, and which of the model's no route has. */
const checkNarrowing = (say: Say, at: Path, key: string, own: Words, routes: ReadonlyArray<Words | undefined>) => {
  routes.forEach((words, index) => {
    const foreign = (words ?? []).filter((word) => !own.includes(word))
    if (foreign.length > 0) say([...at, "routes", index, key], `the model itself does not have ${list(foreign)}`)
  })
  const unserved = own.filter((word) => !routes.some((words) => words === undefined || words.includes(word)))
  if (unserved.length > 0) say([...at, "routes"], `no route serves ${key} ${list(unserved)} of the model`)
}

const checkChat = (say: Say, at: Path, entry: ChatModelEntry, entries: Entries) => {
  if (!entries.known.families.has(entry.family)) {
    return say([...at, "family"], `unknown family ${entry.family}; known: ${list(entries.known.families)}`)
  }
  const rules = chatRules(entry, entries.families.get(entry.family))
  if (rules.maxOutput === undefined && entries.families.has(entry.family)) say(at, "max_output is missing")
  if ((rules.maxOutput ?? 0) > entry.context_length) say([...at, "max_output"], "must not exceed context_length")
  const reasons: ReadonlyArray<Capability> = rules.reasoning === "none" ? [] : ["reasoning"]
  checkNarrowing(
    say,
    at,
    "capabilities",
    rules.capabilities,
    entry.routes.map((route) => route.capabilities)
  )
  checkNarrowing(
    say,
    at,
    "reasoning",
    reasons,
    entry.routes.map((route) => (route.reasoning ? [] : undefined))
  )
  const sampling: ReadonlyArray<Feature> = rules.sampling ? ["sampling"] : []
  checkFeatures(say, at, entry, entries, (index) => {
    const route = entry.routes[index]
    return [...(route?.capabilities ?? rules.capabilities), ...(route?.reasoning ? [] : reasons), ...sampling]
  })
}

const checkImage = (say: Say, at: Path, entry: ImageModelEntry, entries: Entries) => {
  const { edit = false, pricing, routes, variants } = entry
  if (pricing === undefined && variants === undefined) say(at, "the price is missing: give pricing or variants")
  if (pricing !== undefined && variants !== undefined) say([...at, "pricing"], "give pricing or variants, not both")
  const resolutions: ReadonlyArray<Resolution> = variants?.map(({ resolution }) => resolution) ?? ["1K"]
  for (const twice of repeats(resolutions)) say([...at, "variants"], `resolution ${twice} stands twice`)
  checkNarrowing(
    say,
    at,
    "resolutions",
    resolutions,
    routes.map((route) => route.resolutions)
  )
  routes.forEach((route, index) => {
    const path = [...at, "routes", index]
    if (!edit && (route.edit === true || route.edit_model !== undefined)) say(path, "the model has no edit: true")
    if (route.edit === false && route.edit_model !== undefined) say([...path, "edit_model"], "contradicts edit: false")
    const { cost } = route
    if (cost !== undefined && (cost.per_image_usd === undefined) === (cost.variants === undefined)) {
      say([...path, "cost"], "give per_image_usd or variants")
    }
    const costed = cost?.variants?.map(({ resolution }) => resolution) ?? []
    for (const twice of repeats(costed)) say([...path, "cost", "variants"], `resolution ${twice} stands twice`)
    const foreign = costed.filter((resolution) => !resolutions.includes(resolution))
    if (foreign.length > 0) say([...path, "cost", "variants"], `the model itself does not have ${list(foreign)}`)
  })
  checkFeatures(say, at, entry, entries, (index) => {
    const route = routes[index]
    const sizes = route?.resolutions ?? resolutions
    return [...(edit && route?.edit !== false ? ["edit" as const] : []), ...(sizes.length > 1 ? sizes : [])]
  })
  if (edit && routes.every((route) => route.edit === false)) say([...at, "routes"], "no route serves edit")
}

const checkClipPrice = (say: Say, path: Path, price: VideoModelEntry["pricing"]) => {
  if ((price.per_second_usd === undefined) === (price.per_video_usd === undefined)) {
    say(path, "give exactly one of per_second_usd and per_video_usd")
  }
}

const checkVideo = (say: Say, at: Path, entry: VideoModelEntry) => {
  const { pricing, reference_image: own = "none", routes, seconds } = entry
  checkClipPrice(say, [...at, "pricing"], pricing)
  const unit = pricing.per_second_usd === undefined ? "per_video_usd" : "per_second_usd"
  if (pricing.official !== undefined && Object.keys(pricing.official).join() !== unit) {
    say([...at, "pricing", "official"], `must be given as ${unit}, like the price`)
  }
  const allowed = seconds.allowed.map(String)
  for (const twice of repeats(allowed)) say([...at, "seconds", "allowed"], `${twice} stands twice`)
  if (!seconds.allowed.includes(seconds.default)) say([...at, "seconds", "default"], "must be one of allowed")
  checkNarrowing(
    say,
    at,
    "seconds",
    allowed,
    routes.map((route) => route.seconds?.map(String))
  )
  routes.forEach((route, index) => {
    const path = [...at, "routes", index]
    const narrowed = route.reference_image ?? own
    if (narrowed !== own && own !== "optional") say([...path, "reference_image"], `the model's own is ${own}`)
    if (narrowed === "none" && route.image_model !== undefined)
      say([...path, "image_model"], "takes no reference image")
    if (route.cost !== undefined) checkClipPrice(say, [...path, "cost"], route.cost)
  })
  if (own !== "optional") return
  const narrowed = routes.map((route) => route.reference_image ?? own)
  if (narrowed.every((reference) => reference === "none")) say([...at, "routes"], "no route takes a reference image")
  if (narrowed.every((reference) => reference === "required")) say([...at, "routes"], "no route serves text alone")
}

/** What is wrong between entries that are each well-formed. */
export const mistakes = (entries: Entries): ReadonlyArray<Mistake> => {
  const found: Array<Mistake> = []
  const say: Say = (path, message) => void found.push({ path, message })
  for (const [name, entry] of entries.providers) checkProvider(say, name, entry, entries.wires)
  const seen = new Map<string, number>()
  for (const { index, entry } of entries.models) {
    const at = ["models", index]
    const first = seen.get(entry.id)
    if (first === undefined) seen.set(entry.id, index)
    else say([...at, "id"], `${entry.id} is the id of models[${first}] too`)
    checkRoutes(say, at, entry, entries)
    if (entry.surface === "chat") checkChat(say, at, entry, entries)
    else if (entry.surface === "image") checkImage(say, at, entry, entries)
    else checkVideo(say, at, entry)
  }
  return found
}
