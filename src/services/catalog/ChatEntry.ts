import { Array as Arr, Record, Schema } from "effect"
import { type ChatPrices, type Listing, type ParamField, saving } from "../../domain/ListedModel.ts"
import {
  type Capability,
  type ChatModel,
  type ChatPricing,
  defaultMaxTokens,
  type Feature,
  type ReasoningEffort,
  type Route,
  reasoningEfforts
} from "../../domain/Model.ts"
import { toUsd, toUsdPerToken, zero } from "../../domain/Money.ts"
import { changeChatPricing, type Rates, ratesAt } from "../../domain/Pricing.ts"
import {
  baseKinds,
  orderedKinds,
  parentOfRare,
  partKinds,
  type TokenKindName,
  tokenKinds
} from "../../domain/TokenKinds.ts"
import type { Path } from "./CatalogSource.ts"
import {
  Capabilities,
  datedList,
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
  type EntryOperations,
  explainUnknownName,
  firstCost,
  type Margin,
  type NonEmpty,
  type Report,
  requireValue,
  sandboxMargin
} from "./EntryOperations.ts"
import { effectiveAt, routeAt } from "./PriceLists.ts"

const listedTokenPrices = (rates: Rates) =>
  Record.mapEntries(tokenKinds, ({ price }, name) => [price, toUsd(rates[name])])

const chatPrices = ({ maxWebSearches, official, pricing }: ChatModel): ChatPrices => {
  const rates = ratesAt(pricing, 0)
  const above = pricing.longContext?.above
  return {
    ...listedTokenPrices(rates),
    ...(above !== undefined && { long_context: { above, ...listedTokenPrices(ratesAt(pricing, above + 1)) } }),
    ...Record.mapEntries(tokenKinds, ({ exact }, name) => [exact, toUsdPerToken(rates[name])]),
    ...(pricing.webSearch !== undefined && {
      web_search_per_1k_usd: toUsd(pricing.webSearch),
      web_search: toUsdPerToken(pricing.webSearch * 1_000n),
      max_web_searches: maxWebSearches
    }),
    approximate: true,
    ...saving([pricing.prompt, official?.prompt], [pricing.completion, official?.completion]),
    ...(official && {
      official_prompt_per_1m_usd: toUsd(official.prompt),
      official_completion_per_1m_usd: toUsd(official.completion)
    })
  }
}

const penalty = (key: string): ParamField => ({ key, type: "slider", default: 0, min: -2, max: 2, step: 0.1 })

const chatParams = ({ capabilities, maxOutput, reasoning, sampling }: ChatModel): ReadonlyArray<ParamField> => {
  const fields: Array<ParamField> = []
  if (sampling) {
    fields.push({ key: "temperature", type: "slider", default: 1, min: 0, max: 2, step: 0.1 })
    fields.push({ key: "top_p", type: "slider", default: 1, min: 0, max: 1, step: 0.05 })
  }
  const tokens = Math.min(defaultMaxTokens, maxOutput)
  fields.push({ key: "max_tokens", type: "number", default: tokens, min: 1, max: maxOutput, step: 1 })
  if (reasoning !== "none") {
    const options = reasoning === "binary" ? reasoningEfforts : reasoning
    fields.push({ key: "reasoning_effort", type: "select", options })
  }
  if (capabilities.has("web_search")) fields.push({ key: "web_search", type: "boolean", default: false })
  fields.push({ key: "stop", type: "text" })
  if (sampling) {
    fields.push({ key: "seed", type: "number", step: 1 }, penalty("frequency_penalty"), penalty("presence_penalty"))
  }
  return fields
}

const listChat = (model: ChatModel): Listing => {
  const { capabilities, contextLength, maxOutput } = model
  const params = chatParams(model)
  return {
    context_length: contextLength,
    top_provider: { context_length: contextLength, max_completion_tokens: maxOutput },
    architecture: {
      input_modalities: capabilities.has("vision") ? ["text", "image"] : ["text"],
      output_modalities: ["text"]
    },
    capabilities: [...capabilities],
    supported_parameters: [
      ...params.map(({ key }) => key),
      "max_completion_tokens",
      ...(capabilities.has("tools") ? ["tools", "tool_choice", "parallel_tool_calls"] : []),
      ...(capabilities.has("response_format") ? ["response_format"] : [])
    ],
    pricing: chatPrices(model),
    params
  }
}

/**
 * Returns the margins of each token kind: from the first token on, and above each threshold of the price or of the cost.
 */
const chatMargins = (pricing: ChatPricing, cost: ChatPricing | undefined): ReadonlyArray<Margin> => {
  const thresholds = new Set([0, pricing.longContext?.above ?? 0, cost?.longContext?.above ?? 0])
  const searchCost = cost && (cost.webSearch ?? zero)
  const search = { unit: "1000 web searches", price: pricing.webSearch ?? zero, cost: searchCost }
  const tokens = [...thresholds].flatMap((threshold) => {
    const price = ratesAt(pricing, threshold + 1)
    const costRates = cost && ratesAt(cost, threshold + 1)
    const unitOf = (name: string) => `${name} per 1M${threshold === 0 ? "" : ` above ${threshold}`}`
    return orderedKinds.flatMap((name) => {
      const hasParentRate = (parent: TokenKindName) =>
        price[name] === price[parent] && costRates?.[name] === costRates?.[parent]
      const parent = parentOfRare(name)
      if (parent !== undefined && hasParentRate(parent)) return []
      return [{ unit: unitOf(tokenKinds[name].unit), price: price[name], cost: costRates?.[name] }]
    })
  })
  return pricing.webSearch === undefined && cost?.webSearch === undefined ? tokens : [...tokens, search]
}

const tokenPrices = Record.mapEntries(baseKinds, ({ price }) => [price, UsdPerMillion])
const partPrices = Record.mapEntries(partKinds, ({ price }) => [price, optional(UsdPerMillion)])
const prices = {
  ...tokenPrices,
  ...partPrices,
  web_search_per_1k_usd: optional(Usd),
  long_context: optional(Schema.Struct({ above: Tokens, ...tokenPrices, ...partPrices }))
}
const ChatCost = Schema.Struct(prices)
const RouteEntry = Schema.Struct({
  ...route,
  capabilities: optional(Capabilities),
  reasoning: optional(Schema.Literal("none")),
  cost: optional(ChatCost),
  cost_from: datedList(Schema.Struct({ at: Instant, ...prices }))
})
const customerPrices = { ...prices, official: optional(Schema.Struct(tokenPrices)) }
export const ChatModelEntry = Schema.Struct({
  ...model,
  surface: Schema.Literal("chat"),
  family: Name,
  context_length: Tokens,
  ...familyRules,
  pricing: Schema.Struct(customerPrices),
  pricing_from: datedList(Schema.Struct({ at: Instant, ...customerPrices })),
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
  if (!isKnown) report([...at, "family"], explainUnknownName("families", "family", entry.family, knownFamilies))
  if (rules.maxOutput === undefined && families.has(entry.family))
    report(at, "max_output is missing: add it to the model or to its family")
  if ((rules.maxOutput ?? 0) > entry.context_length) report([...at, "max_output"], "must not exceed context_length")
  const checkRoutes = checkNarrowing(report, at, entry.routes)
  if (isKnown || entry.capabilities !== undefined)
    checkRoutes("capabilities", rules.capabilities, (route) => route.capabilities)
  if (isKnown || entry.reasoning !== undefined)
    checkRoutes("reasoning", reasonsOf(rules), (route) => (route.reasoning ? [] : undefined))
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
  pricing: effectiveAt(entry.pricing_from, at) ?? entry.pricing,
  routes: Arr.map(entry.routes, (route) => routeAt(route, at))
})

type Prices = NonNullable<ChatModelEntry["routes"][number]["cost"]>

const tierOf = (entry: Omit<Prices, "long_context" | "web_search_per_1k_usd">) => ({
  prompt: entry.prompt_per_1m_usd,
  completion: entry.completion_per_1m_usd,
  ...Record.map(partKinds, ({ price }) => entry[price])
})

const chatPricing = (entry: Prices): ChatPricing => ({
  ...tierOf(entry),
  webSearch: entry.web_search_per_1k_usd,
  longContext:
    entry.long_context === undefined ? undefined : { above: entry.long_context.above, ...tierOf(entry.long_context) }
})

const compileChat = (entry: ChatModelEntry, base: BaseOf, { families }: EntryContext): ChatModel => {
  const { capabilities, maxOutput, ...rules } = chatRules(entry, families.get(entry.family))
  const canReason = rules.reasoning !== "none"
  const withReasoning: ReadonlySet<Capability> = new Set(canReason ? [...capabilities, "reasoning"] : capabilities)
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
    capabilities: withReasoning,
    pricing: chatPricing(entry.pricing),
    official: official && { prompt: official.prompt_per_1m_usd, completion: official.completion_per_1m_usd },
    routes: entry.routes.map((route) => {
      const routeCapabilities: ReadonlyArray<Capability> = route.capabilities ?? capabilities
      const isNarrowed = route.capabilities !== undefined || route.reasoning === "none"
      return {
        ...base(route),
        capabilities: isNarrowed
          ? new Set(
              canReason && route.reasoning !== "none" ? [...routeCapabilities, "reasoning" as const] : routeCapabilities
            )
          : undefined,
        cost: route.cost && chatPricing(route.cost)
      }
    })
  }
}

const narrowChat = (model: ChatModel, routes: NonEmpty<Route>): ChatModel => {
  const servedCapabilities = new Set<Capability>(
    routes.flatMap((route) => [...(route.capabilities ?? model.capabilities)])
  )
  return {
    ...model,
    routes,
    capabilities: new Set([...model.capabilities].filter((capability) => servedCapabilities.has(capability))),
    reasoning: servedCapabilities.has("reasoning") ? model.reasoning : "none"
  }
}

export const chatOperations: EntryOperations<ChatModelEntry, ChatModel, Route> = {
  check: checkChat,
  promises,
  entryAt: chatEntryAt,
  compile: compileChat,
  narrow: narrowChat,
  inSandbox: (model, sandboxRoutes) => {
    const { pricing } = model
    const first = firstCost(model.routes)
    const isMargin = first !== undefined && (first.prompt !== pricing.prompt || first.completion !== pricing.completion)
    const cost = isMargin ? first : changeChatPricing(pricing, -sandboxMargin)
    return { ...model, routes: sandboxRoutes.map((base) => ({ ...base, capabilities: undefined, cost })) }
  },
  list: listChat,
  margins: ({ pricing }, { cost }) => chatMargins(pricing, cost)
}
