import { Array as Arr, Schema } from "effect"
import {
  type Capability,
  type ChatModel,
  type ChatPricing,
  type Feature,
  type ReasoningEffort,
  type Route
} from "../../domain/Model.ts"
import { zero } from "../../domain/Money.ts"
import type { Path } from "./CatalogSource.ts"
import { chatMargins, listChat } from "./ChatListing.ts"
import { latest, routeAt } from "./DatedPrices.ts"
import {
  Capabilities,
  dated,
  type FamilyEntry,
  familyRules,
  Instant,
  model,
  Name,
  optional,
  route,
  Tokens,
  Usd,
  UsdPerMillion
} from "./EntryFields.ts"
import {
  type BaseOf,
  checkNarrowing,
  type EntryContext,
  firstCost,
  lacks,
  type NonEmpty,
  type Report,
  requireValue,
  type Surface
} from "./Surface.ts"

const tokenPrices = { prompt_per_1m_usd: UsdPerMillion, completion_per_1m_usd: UsdPerMillion }
const cachePrices = {
  cached_prompt_per_1m_usd: optional(UsdPerMillion),
  cache_write_per_1m_usd: optional(UsdPerMillion),
  cache_write_1h_per_1m_usd: optional(UsdPerMillion)
}
const prices = {
  ...tokenPrices,
  ...cachePrices,
  web_search_per_1k_usd: optional(Usd),
  long_context: optional(Schema.Struct({ above: Tokens, ...tokenPrices, ...cachePrices }))
}
const ChatCost = Schema.Struct(prices)
const RouteEntry = Schema.Struct({
  ...route,
  capabilities: optional(Capabilities),
  reasoning: optional(Schema.Literal("none")),
  cost: optional(ChatCost),
  cost_from: dated(Schema.Struct({ at: Instant, ...prices }))
})
const sold = { ...prices, official: optional(Schema.Struct(tokenPrices)) }
export const ChatModelEntry = Schema.Struct({
  ...model,
  surface: Schema.Literal("chat"),
  family: Name,
  context_length: Tokens,
  ...familyRules,
  pricing: Schema.Struct(sold),
  pricing_from: dated(Schema.Struct({ at: Instant, ...sold })),
  routes: Schema.NonEmptyArray(RouteEntry)
})
export type ChatModelEntry = typeof ChatModelEntry.Type

const chatRules = (entry: ChatModelEntry, family: FamilyEntry | undefined) => {
  const caps = [entry.max_output, family?.max_output].filter((cap) => cap !== undefined)
  const reasoning: ReadonlyArray<ReasoningEffort> | "binary" | "none" = entry.reasoning ?? family?.reasoning ?? "none"
  return {
    maxOutput: caps.length === 0 ? undefined : Math.min(...caps),
    maxOutputPolicy: family?.max_output_policy ?? "clamp",
    sampling: family?.sampling ?? false,
    reasoning,
    capabilities: entry.capabilities ?? family?.capabilities ?? [],
    imageTokens: entry.image_tokens ?? family?.image_tokens ?? 5000,
    webSearchTokens: entry.web_search_tokens ?? family?.web_search_tokens ?? 25_000,
    maxWebSearches: entry.max_web_searches ?? family?.max_web_searches ?? 10
  } as const
}

const reasonsOf = ({ reasoning }: Pick<ChatModel, "reasoning">): ReadonlyArray<Capability> =>
  reasoning === "none" ? [] : ["reasoning"]

const checkChat = (report: Report, at: Path, entry: ChatModelEntry, { families, knownFamilies }: EntryContext) => {
  const rules = chatRules(entry, families.get(entry.family))
  const isKnown = knownFamilies.has(entry.family)
  if (!isKnown) report([...at, "family"], lacks("families", "family", entry.family, knownFamilies))
  if (rules.maxOutput === undefined && families.has(entry.family))
    report(at, "max_output is missing: add it to the model or to its family")
  if ((rules.maxOutput ?? 0) > entry.context_length) report([...at, "max_output"], "must not exceed context_length")
  const checkNarrowed = checkNarrowing(report, at, entry.routes)
  if (isKnown || entry.capabilities !== undefined)
    checkNarrowed("capabilities", rules.capabilities, (route) => route.capabilities)
  if (isKnown || entry.reasoning !== undefined)
    checkNarrowed("reasoning", reasonsOf(rules), (route) => (route.reasoning ? [] : undefined))
}

const promises = (entry: ChatModelEntry, { families, knownFamilies }: EntryContext) => {
  if (!knownFamilies.has(entry.family)) return entry.routes.map((): ReadonlyArray<Feature> => [])
  const rules = chatRules(entry, families.get(entry.family))
  return entry.routes.map(
    (route): ReadonlyArray<Feature> => [
      ...(route.capabilities ?? rules.capabilities),
      ...(route.reasoning ? [] : reasonsOf(rules)),
      ...(rules.sampling ? ["sampling" as const] : [])
    ]
  )
}

const chatEntryAt = (entry: ChatModelEntry, at: number): ChatModelEntry => ({
  ...entry,
  pricing: latest(entry.pricing_from, at) ?? entry.pricing,
  routes: Arr.map(entry.routes, (route) => routeAt(route, at))
})

type Prices = NonNullable<ChatModelEntry["routes"][number]["cost"]>

const tierOf = (entry: Omit<Prices, "long_context" | "web_search_per_1k_usd">) => ({
  prompt: entry.prompt_per_1m_usd,
  completion: entry.completion_per_1m_usd,
  cachedPrompt: entry.cached_prompt_per_1m_usd,
  cacheWrite: entry.cache_write_per_1m_usd,
  cacheWriteHour: entry.cache_write_1h_per_1m_usd
})

const chatPricing = (entry: Prices): ChatPricing => ({
  ...tierOf(entry),
  webSearch: entry.web_search_per_1k_usd,
  longContext:
    entry.long_context === undefined ? undefined : { above: entry.long_context.above, ...tierOf(entry.long_context) }
})

const compileChat = (entry: ChatModelEntry, base: BaseOf, { families }: EntryContext): ChatModel => {
  const { capabilities, maxOutput, ...rules } = chatRules(entry, families.get(entry.family))
  const reasons = rules.reasoning !== "none"
  const whole: ReadonlySet<Capability> = new Set(reasons ? [...capabilities, "reasoning"] : capabilities)
  const { official } = entry.pricing
  return {
    id: entry.id,
    surface: "chat",
    created: entry.created ?? 0,
    family: entry.family,
    contextLength: entry.context_length,
    maxOutput: requireValue(maxOutput, "max_output"),
    ownMaxOutput: entry.max_output,
    ...rules,
    capabilities: whole,
    pricing: chatPricing(entry.pricing),
    official: official && { prompt: official.prompt_per_1m_usd, completion: official.completion_per_1m_usd },
    routes: entry.routes.map((route) => {
      const can: ReadonlyArray<Capability> = route.capabilities ?? capabilities
      const narrowed = route.capabilities !== undefined || route.reasoning === "none"
      return {
        ...base(route),
        capabilities: narrowed
          ? new Set(reasons && route.reasoning !== "none" ? [...can, "reasoning" as const] : can)
          : undefined,
        cost: route.cost && chatPricing(route.cost)
      }
    })
  }
}

const narrowChat = (model: ChatModel, routes: NonEmpty<Route>): ChatModel => {
  const served = new Set<Capability>(routes.flatMap((route) => [...(route.capabilities ?? model.capabilities)]))
  return {
    ...model,
    routes,
    capabilities: new Set([...model.capabilities].filter((capability) => served.has(capability))),
    reasoning: served.has("reasoning") ? model.reasoning : "none"
  }
}

const free: ChatPricing = {
  prompt: zero,
  completion: zero,
  cachedPrompt: undefined,
  cacheWrite: undefined,
  longContext: undefined
}

export const chatSurface: Surface<ChatModelEntry, ChatModel, Route> = {
  check: checkChat,
  promises,
  entryAt: chatEntryAt,
  compile: compileChat,
  narrow: narrowChat,
  inSandbox: (model, bases) => {
    const cost = firstCost(model.routes) ?? free
    return { ...model, routes: bases.map((base) => ({ ...base, capabilities: undefined, cost })) }
  },
  list: listChat,
  margins: ({ pricing }, { cost }) => chatMargins(pricing, cost)
}
