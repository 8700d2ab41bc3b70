import { Either, Predicate } from "effect"
import {
  type Decoded,
  type FeedEntry,
  type FeedModel,
  type FeedTier,
  Fields,
  makers,
  type PriceList,
  perMillion,
  perOne,
  vendorNames
} from "./FeedModel.ts"

const parts = [
  ["prompt", "input_mtok"],
  ["completion", "output_mtok"],
  ["cachedPrompt", "cache_read_mtok"],
  ["cacheWrite", "cache_write_mtok"],
  ["cacheWriteHour", "cache_write_1h_mtok"]
] as const

/** From which length on what is charged. */
type Steps = ReadonlyMap<number, bigint | undefined>

const stepsOf = (prices: Fields, key: string): Decoded<Steps> =>
  Either.gen(function* () {
    const tiered = prices.part(key)
    if (tiered === undefined) return new Map([[0, yield* prices.nano(key, perMillion)]])
    const steps = new Map([[0, yield* tiered.nano("base", perMillion)]])
    for (const one of yield* tiered.list("tiers")) {
      steps.set((yield* one.tokens("start")) ?? 0, yield* one.nano("price", perMillion))
    }
    return steps
  })

const tiersOf = (prices: Fields): Decoded<ReadonlyArray<FeedTier>> =>
  Either.gen(function* () {
    const byPart = new Map<string, Steps>()
    for (const [part, key] of parts) byPart.set(part, yield* stepsOf(prices, key))
    const marks = new Set([...byPart.values()].flatMap((steps) => [...steps.keys()]))
    const at = (part: (typeof parts)[number][0], mark: number) => byPart.get(part)?.get(mark)
    return [...marks]
      .toSorted((a, b) => a - b)
      .map((above) => ({
        above,
        prompt: at("prompt", above),
        completion: at("completion", above),
        cachedPrompt: at("cachedPrompt", above),
        cacheWrite: at("cacheWrite", above),
        cacheWriteHour: at("cacheWriteHour", above)
      }))
  })

interface Current {
  readonly prices: Fields
  readonly hasHours: boolean
}

/** The last of several prices that has begun. */
const currentOf = (fields: Fields, isList: boolean, today: string): Decoded<Current> =>
  Either.gen(function* () {
    if (!isList) return { prices: yield* fields.within("prices"), hasHours: false }
    const dated = yield* fields.list("prices")
    const limits = dated.map((one) => one.part("constraint"))
    const hasHours = limits.some((limit) => limit !== undefined && limit.day("start_date") === undefined)
    const current = dated.findLast((_, index) => (limits[index]?.day("start_date") ?? "") <= today)
    return { prices: yield* (current ?? fields).within("prices"), hasHours }
  })

const chatUnits: ReadonlySet<string> = new Set([...parts.map(([, key]) => key), "web_searches_kcount"])

const otherCharge = (prices: Fields, hasHours: boolean): string | undefined => {
  if (hasHours) return "by the time of day"
  if (prices.has("requests_kcount")) return "for each request"
  const other = prices.keys.find((key) => !chatUnits.has(key))
  return other === undefined ? undefined : "for more than text"
}

const otherKinds = [
  ["images", ["image", "images", "imagen", "dall", "banana"]],
  ["audio", ["audio", "tts", "speech", "voice", "whisper", "transcribe", "realtime", "live", "music"]],
  ["videos", ["video", "veo", "sora"]],
  ["embeddings", ["embed", "embedding", "embeddings"]]
] as const

/** Prices per token do not tell a chat from what else is charged by the token. */
const otherKindOf = (texts: ReadonlyArray<string | undefined>): string | undefined => {
  const words = new Set(texts.flatMap((text) => text?.toLowerCase().split(/[^a-z]+/) ?? []))
  return otherKinds.find(([, names]) => names.some((name) => words.has(name)))?.[0]
}

const model = (entry: string, value: unknown, today: string): Decoded<FeedModel> =>
  Either.gen(function* () {
    const fields = yield* Fields.of(entry, value)
    const isList = Predicate.isReadonlyRecord(value) && Array.isArray(value.prices)
    const { hasHours, prices } = yield* currentOf(fields, isList, today)
    const context = yield* fields.tokens("context_window")
    return {
      entry,
      surface: prices.has("input_mtok") && prices.has("output_mtok") ? "chat" : undefined,
      makes: otherKindOf([fields.text("id"), fields.text("name")]),
      capabilities: undefined,
      efforts: [],
      sampling: undefined,
      created: undefined,
      retirement: fields.isTrue("deprecated") ? { on: undefined } : undefined,
      otherCharge: otherCharge(prices, hasHours),
      tiers: yield* tiersOf(prices),
      perImage: undefined,
      perSecond: undefined,
      webSearch: yield* prices.nano("web_searches_kcount", perOne),
      contextLengths: context === undefined ? [] : [context],
      maxOutput: undefined
    }
  })

interface Provider {
  readonly id: string
  readonly models: ReadonlyArray<{ readonly id: string; readonly value: unknown }>
}

const providersOf = (document: ReadonlyArray<unknown>): ReadonlyArray<Provider> =>
  document.flatMap((provider) => {
    if (!Predicate.isReadonlyRecord(provider) || typeof provider.id !== "string") return []
    if (!Array.isArray(provider.models)) return []
    const models = provider.models.flatMap((value: unknown) =>
      Predicate.isReadonlyRecord(value) && typeof value.id === "string" ? [{ id: value.id, value }] : []
    )
    return [{ id: provider.id, models }]
  })

/** Google's own API does not serve the models of Vertex that others made. */
const vendorOf = (provider: string, name: string): string =>
  provider === "google" && name.startsWith("claude-") ? "google-vertex" : provider

const hasPrices = (value: unknown): boolean =>
  Predicate.isReadonlyRecord(value) && typeof value.prices === "object" && value.prices !== null

export const isGenaiPrices = (document: ReadonlyArray<unknown>): boolean =>
  providersOf(document).some(({ models }) => models.some(({ value }) => hasPrices(value)))

/** `data.json`: providers, then their models, by id; prices per million tokens, some from a day on. */
export const genaiPrices = (document: ReadonlyArray<unknown>, today: string): PriceList => {
  const entries = providersOf(document).flatMap(({ id: provider, models }) =>
    models.map(({ id: name, value }): FeedEntry => {
      const entry = `${provider}/${name}`
      const maker = provider === "openrouter" ? name.split("/")[0] : undefined
      return { entry, vendor: vendorOf(provider, name), name, maker, read: () => model(entry, value, today) }
    })
  )
  const byEntry = new Map(entries.map((entry) => [entry.entry, entry]))
  const find = (vendors: ReadonlyArray<string>, name: string): Decoded<FeedModel | undefined> => {
    const found = vendors.map((vendor) => byEntry.get(`${vendor}/${name}`)).find(Predicate.isNotUndefined)
    return found === undefined ? Either.right(undefined) : found.read()
  }
  return {
    kind: "genai-prices",
    entries: entries.length,
    ofRoute: ({ model: name, provider }) => find(vendorNames(provider, "genai-prices"), name),
    ofMaker: (id) => find(makers("genai-prices"), id),
    all: () => entries
  }
}
