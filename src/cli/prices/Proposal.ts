import { Array as Arr, DateTime, Effect, Either, Struct } from "effect"
import { withoutControls } from "../../domain/Csv.ts"
import type { Feature } from "../../domain/Model.ts"
import { nounFor } from "../../domain/Wording.ts"
import { CommandFailed } from "../../ExitCode.ts"
import { type CatalogOptions, readSaleStates } from "../../services/catalog/Catalog.ts"
import type { ProviderEntry } from "../../services/catalog/CatalogProblems.ts"
import { type Entries, sandboxAdapter } from "../../services/catalog/CatalogRules.ts"
import { routeOptions, write } from "../../services/catalog/CatalogSource.ts"
import type { Fields } from "../Output.ts"
import {
  type Feed,
  type FeedEntry,
  type FeedModel,
  feedName,
  priceAbove,
  readModel,
  tokenPrices,
  vendorsOf
} from "./Feed.ts"

/** A provider of the catalog with its possible names in the feed. */
interface Seller {
  readonly name: string
  readonly entry: ProviderEntry
  readonly vendors: ReadonlyArray<string>
}

interface Proposals {
  /** `entry` is the feed's key. In the order of the catalog's providers. Bigints are amounts in nano-USD. */
  readonly proposed: ReadonlyArray<{ readonly entry: string; readonly model: Fields }>
  readonly skipped: ReadonlyArray<{ readonly entry: string; readonly why: string }>
  /** A catalog with the proposed models. */
  readonly yaml: string
}

const isPrice = (amount: bigint | undefined): amount is bigint => amount !== undefined && amount > 0n

/** Omits prices of 0, which may mean unknown. Returns undefined if the prompt or the completion has no price. */
const pricesAbove = (feedPrice: FeedModel, above: number): Fields | undefined => {
  const listed = tokenPrices.map(({ part, price }) => [price, priceAbove(feedPrice, above, part)] as const)
  const prices = Object.fromEntries(listed.filter(([, price]) => isPrice(price)))
  return prices.prompt_per_1m_usd === undefined || prices.completion_per_1m_usd === undefined ? undefined : prices
}

const draftTokenPrices = (feedPrice: FeedModel): Either.Either<Fields, string> => {
  const [above = 0, ...others] = Arr.dedupe(feedPrice.rates.map((rate) => rate.above)).filter((mark) => mark > 0)
  if (others.length > 0) return Either.left("its price changes at several prompt lengths")
  const base = pricesAbove(feedPrice, 0)
  const long = pricesAbove(feedPrice, above)
  if (base === undefined || long === undefined) {
    return Either.left("its price of prompt or completion is missing or 0")
  }
  return Either.right(above === 0 ? base : { ...base, long_context: { above, ...long } })
}

/** Prefers a family that the provider's models already use. `canSample` is whether the provider accepts sampling parameters. */
const findFamily = ({ families, models }: Entries, provider: string, canSample: boolean): string | undefined => {
  const used = models.flatMap(({ entry }) =>
    entry.surface === "chat" && entry.routes.some((route) => route.provider === provider) ? [entry.family] : []
  )
  return [...used, ...families.keys()].find((name) => canSample || families.get(name)?.sampling === false)
}

const draftChat = (entries: Entries, { name }: Seller, feedPrice: FeedModel, supported: ReadonlySet<Feature>) =>
  Either.map(draftTokenPrices(feedPrice), (prices): Fields => {
    const searches = isPrice(feedPrice.webSearch) ? { web_search_per_1k_usd: feedPrice.webSearch } : undefined
    const isPriced = (one: Feature) => one !== "web_search" || searches !== undefined
    const capabilities = feedPrice.capabilities.filter((one) => supported.has(one) && isPriced(one))
    return {
      family: findFamily(entries, name, supported.has("sampling")),
      context_length: feedPrice.contextLengths.find((length) => length >= (feedPrice.maxOutput ?? 0)),
      max_output: feedPrice.maxOutput,
      reasoning: "none",
      capabilities,
      pricing: { ...prices, ...(capabilities.includes("web_search") && searches) }
    }
  })

const draftImage = ({ perImage }: FeedModel): Either.Either<Fields, string> =>
  isPrice(perImage)
    ? Either.right({ pricing: { per_image_usd: perImage } })
    : Either.left("its price of an image is missing or 0")

const modelVendors = new Set(["gemini", "openai", "anthropic", "xai"])

/** Returns a catalog entry with the feed's price as both price and cost. Fails with the reason to skip the feed's entry. */
const draftModel = (entries: Entries, sellers: ReadonlyArray<Seller>, today: string, feedEntry: FeedEntry) =>
  Either.gen(function* () {
    const { name, vendor } = feedEntry
    const own = sellers.filter(({ vendors }) => vendors.includes(vendor))
    // These vendors' model names contain no slash or colon. An entry with one prices a size, a region or a fine-tuned model.
    if (modelVendors.has(vendor) && /[/:]/.test(name))
      return yield* Either.left("its price is for a variant of a model")
    const feedPrice = yield* readModel(feedEntry)
    const { otherCharge, retirement, surface } = feedPrice
    if (retirement !== undefined && retirement <= today) return yield* Either.left("the feed says it is retired")
    if (surface === undefined) return yield* Either.left("the gateway does not support its kind of model")
    if (surface === "video") return yield* Either.left("the feed lacks the lengths of its videos")
    if (otherCharge !== undefined) return yield* Either.left(`a catalog cannot express its ${otherCharge}`)
    for (const seller of own) {
      const { adapter, options } = seller.entry
      const supported = entries.adapters.get(adapter)?.surfaces.get(surface)?.(routeOptions(options))
      if (supported === undefined) continue
      const fields = yield* surface === "chat"
        ? draftChat(entries, seller, feedPrice, supported)
        : draftImage(feedPrice)
      const routes = [{ provider: seller.name, model: name, cost: fields.pricing }]
      const model: Fields = { id: idOf(feedEntry), surface, ...fields, routes }
      return model
    }
    return yield* Either.left(`no adapter of ${own.map((seller) => seller.name).join(", ")} has ${surface} models`)
  })

/** Returns a complete catalog, which `gateway catalog check` accepts. Omits headers, because they may contain a secret. */
const catalogOf = ({ families, providers }: Entries, models: ReadonlyArray<Fields>): string => {
  const providersWithoutHeaders = [...providers].map(([name, entry]) => [name, Struct.omit(entry, "headers")] as const)
  return write({
    models,
    providers: Object.fromEntries(providersWithoutHeaders),
    families: Object.fromEntries(families)
  })
}

/** A feed is foreign data: removes control characters from its text and shortens it. */
const toLine = (text: string): string => withoutControls(text).slice(0, 120)

export const proposalText = ({ proposed, yaml }: Proposals, { file }: Feed, catalog: string): string => {
  const heading = `# Models in ${toLine(file)} (${feedName}) that are not in ${toLine(catalog)}.`
  if (proposed.length === 0) return `${heading}\n# None can be proposed.`
  return [
    heading,
    "# The prices are the vendors' prices: set yours. Also set family and reasoning, which the feed does not contain.",
    "# Providers (without headers) and families are copied for gateway catalog check.",
    yaml
  ].join("\n")
}

/** Returns one line for each reason to skip entries. */
export const skipWarnings = ({ skipped }: Proposals): ReadonlyArray<string> =>
  Object.entries(Arr.groupBy(skipped, ({ why }) => why)).map(([why, [{ entry }, ...others]]) => {
    const more = others.length === 0 ? "" : ` and ${others.length} more`
    return `${toLine(entry)}${more} ${nounFor(others.length + 1, "is", "are")} skipped: ${toLine(why)}.`
  })

/** Removes the vendor from OpenRouter's model names, such as `anthropic/` from `anthropic/claude-opus-4`. */
const idOf = ({ name, vendor }: FeedEntry): string =>
  vendor === "openrouter" ? name.slice(name.indexOf("/") + 1) : name

/** Ends the names of a model's dated versions. */
const dateSuffix = /-(?:\d{4}-\d\d-\d\d|\d{8}|latest)$/

/** Returns the same text for all versions and spellings of a model. */
const identityOf = (name: string): string => name.toLowerCase().replace(dateSuffix, "").replaceAll(/[._]/g, "-")

/** Drafts catalog entries for models that the feed prices and the catalog lacks. Each passes the catalog check on its own. */
export const propose = Effect.fn("Catalog.propose")(function* (options: CatalogOptions, feed: Feed, vendor?: string) {
  const { entries } = yield* readSaleStates(options)
  const today = DateTime.formatIsoDateUtc(yield* DateTime.now)
  const all = [...entries.providers]
    .filter(([, { adapter }]) => adapter !== sandboxAdapter)
    .map(([name, entry]): Seller => ({ name, entry, vendors: vendorsOf({ name, baseUrl: entry.base_url }) }))
  const wanted = vendor?.toLowerCase()
  const sellers = all.filter(
    ({ vendors }) => wanted === undefined || vendors.some((one) => one.toLowerCase() === wanted)
  )
  if (vendor !== undefined && sellers.length === 0) {
    const names = Arr.dedupe(all.flatMap(({ vendors }) => vendors)).join(", ")
    return yield* new CommandFailed({ message: `The catalog has no provider ${vendor}. It has: ${names}` })
  }
  const existing = new Set(
    entries.models.flatMap(({ entry }) => [entry.id, ...entry.routes.map(({ model }) => model)].map(identityOf))
  )
  const findProblem = (entry: string, model: Fields) =>
    readSaleStates({ ...options, source: { file: entry, text: catalogOf(entries, [model]) } }).pipe(
      Effect.as(undefined),
      Effect.catchTag("CatalogInvalid", ({ problems: [problem] }) =>
        Effect.succeed(`${problem?.key} ${problem?.message}`.replace(/^models\[0\][. ]?/, ""))
      )
    )
  const proposed: Array<Proposals["proposed"][number]> = []
  const skipped: Array<Proposals["skipped"][number]> = []
  const datedRank = ({ name }: FeedEntry) => Number(dateSuffix.test(name))
  // A model comes before its dated versions, which are then skipped.
  const feedEntries = sellers.flatMap(({ vendors }) =>
    [...feed.entries.values()]
      .filter((feedEntry) => vendors.includes(feedEntry.vendor))
      .toSorted((a, b) => datedRank(a) - datedRank(b))
  )
  for (const feedEntry of new Set(feedEntries)) {
    const { entry, name } = feedEntry
    if ([name, idOf(feedEntry)].some((one) => existing.has(identityOf(one)))) continue
    const drafted = draftModel(entries, sellers, today, feedEntry)
    const problem = Either.isLeft(drafted) ? drafted.left : yield* findProblem(entry, drafted.right)
    if (problem !== undefined) skipped.push({ entry, why: problem })
    else if (Either.isRight(drafted)) {
      existing.add(identityOf(idOf(feedEntry)))
      proposed.push({ entry, model: drafted.right })
    }
  }
  const models = proposed.map(({ model }) => model)
  const proposals: Proposals = { proposed, skipped, yaml: catalogOf(entries, models) }
  return proposals
})
