import { Array as Arr, DateTime, Effect, Either, Struct } from "effect"
import { withoutControls } from "../../domain/Csv.ts"
import type { Feature } from "../../domain/Model.ts"
import { nounFor } from "../../domain/Plural.ts"
import { type CatalogOptions, readOffers } from "../../services/catalog/Catalog.ts"
import type { ProviderEntry } from "../../services/catalog/CatalogFormat.ts"
import { type Entries, sandboxAdapter } from "../../services/catalog/CatalogRules.ts"
import { routeOptions, write } from "../../services/catalog/CatalogSource.ts"
import { CommandFailed } from "../CommandFailed.ts"
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

/** A provider of the catalog and the feed's names for it. */
interface Seller {
  readonly name: string
  readonly entry: ProviderEntry
  readonly vendors: ReadonlyArray<string>
}

export interface Proposals {
  /** By the feed's key, in the order of the catalog's providers. Bigints are amounts in nano-USD. */
  readonly proposed: ReadonlyArray<{ readonly entry: string; readonly model: Fields }>
  readonly skipped: ReadonlyArray<{ readonly entry: string; readonly why: string }>
  /** A catalog with what is proposed. */
  readonly yaml: string
}

const isPrice = (amount: bigint | undefined): amount is bigint => amount !== undefined && amount > 0n

/** Without prices of 0, which may be unknown; undefined without a price of prompt and completion. */
const pricesAbove = (fed: FeedModel, above: number): Fields | undefined => {
  const listed = tokenPrices.map(({ key, part }) => [key, priceAbove(fed, above, part)] as const)
  const prices = Object.fromEntries(listed.filter(([, price]) => isPrice(price)))
  return prices.prompt_per_1m_usd === undefined || prices.completion_per_1m_usd === undefined ? undefined : prices
}

const draftTokenPrices = (fed: FeedModel): Either.Either<Fields, string> => {
  const [above = 0, ...others] = Arr.dedupe(fed.rates.map((rate) => rate.above)).filter((mark) => mark > 0)
  if (others.length > 0) return Either.left("its price changes at several lengths of prompt")
  const base = pricesAbove(fed, 0)
  const long = pricesAbove(fed, above)
  if (base === undefined || long === undefined) {
    return Either.left("it has no price of prompt and completion, or 0, which may be unknown")
  }
  return Either.right(above === 0 ? base : { ...base, long_context: { above, ...long } })
}

/** Takes the provider's first family that fits, or else the catalog's. */
const findFamily = ({ families, models }: Entries, provider: string, canSample: boolean): string | undefined => {
  const used = models.flatMap(({ entry }) =>
    entry.surface === "chat" && entry.routes.some((route) => route.provider === provider) ? [entry.family] : []
  )
  return [...used, ...families.keys()].find((name) => canSample || families.get(name)?.sampling === false)
}

const draftChat = (entries: Entries, { name }: Seller, fed: FeedModel, supported: ReadonlySet<Feature>) =>
  Either.map(draftTokenPrices(fed), (prices): Fields => {
    const searches = isPrice(fed.webSearch) ? { web_search_per_1k_usd: fed.webSearch } : undefined
    const isPriced = (one: Feature) => one !== "web_search" || searches !== undefined
    const capabilities = fed.capabilities.filter((one) => supported.has(one) && isPriced(one))
    return {
      family: findFamily(entries, name, supported.has("sampling")),
      context_length: fed.contextLengths.find((length) => length >= (fed.maxOutput ?? 0)),
      max_output: fed.maxOutput,
      reasoning: "none",
      capabilities,
      pricing: { ...prices, ...(capabilities.includes("web_search") && searches) }
    }
  })

const draftImage = ({ perImage }: FeedModel): Either.Either<Fields, string> =>
  isPrice(perImage)
    ? Either.right({ pricing: { per_image_usd: perImage } })
    : Either.left("it has no price of an image, or 0, which may be unknown")

const makers = new Set(["gemini", "openai", "anthropic", "xai"])

/** Its price and its route's cost are the vendor's. Fails with the reason to skip the entry. */
const draftModel = (entries: Entries, sellers: ReadonlyArray<Seller>, today: string, listing: FeedEntry) =>
  Either.gen(function* () {
    const { name, vendor } = listing
    const own = sellers.filter(({ vendors }) => vendors.includes(vendor))
    // A maker's own names have neither: with one it is the price of a size, a region or a fine-tuned model.
    if (makers.has(vendor) && /[/:]/.test(name)) return yield* Either.left("it is a variant's price")
    const fed = yield* readModel(listing)
    const { otherCharge, retirement, surface } = fed
    if (retirement !== undefined && retirement <= today) return yield* Either.left("the feed says it is retired")
    if (surface === undefined) return yield* Either.left("it is of a kind that the gateway does not sell")
    if (surface === "video") return yield* Either.left("the feed does not say how long its videos can be")
    if (otherCharge !== undefined) return yield* Either.left(`a catalog cannot state its ${otherCharge}`)
    for (const seller of own) {
      const { adapter, options } = seller.entry
      const supported = entries.wires.get(adapter)?.surfaces.get(surface)?.(routeOptions(options))
      if (supported === undefined) continue
      const fields = yield* surface === "chat" ? draftChat(entries, seller, fed, supported) : draftImage(fed)
      const routes = [{ provider: seller.name, model: name, cost: fields.pricing }]
      const model: Fields = { id: idOf(listing), surface, ...fields, routes }
      return model
    }
    return yield* Either.left(`no adapter of ${own.map((seller) => seller.name).join(", ")} has ${surface} models`)
  })

/** A catalog of its own for a check. Headers are left out: they may hold a secret. */
const catalogOf = ({ families, providers }: Entries, models: ReadonlyArray<Fields>): string => {
  const accounts = [...providers].map(([name, entry]) => [name, Struct.omit(entry, "headers")] as const)
  return write({ models, providers: Object.fromEntries(accounts), families: Object.fromEntries(families) })
}

/** Text of a feed for one line of a message. */
const toLine = (text: string): string => withoutControls(text).slice(0, 120)

export const proposalText = ({ proposed, yaml }: Proposals, { file }: Feed, catalog: string): string => {
  const heading = `# Models that ${toLine(file)} (${feedName}) prices and ${toLine(catalog)} lacks.`
  if (proposed.length === 0) return `${heading}\n# None can be proposed.`
  return [
    heading,
    "# The prices are the vendors': set yours. The feed does not say which models take temperature (family) or reason.",
    "# Providers (without headers) and families are repeated for a check.",
    yaml
  ].join("\n")
}

/** One line for each reason. */
export const skipWarnings = ({ skipped }: Proposals): ReadonlyArray<string> =>
  Object.entries(Arr.groupBy(skipped, ({ why }) => why)).map(([why, [{ entry }, ...others]]) => {
    const more = others.length === 0 ? "" : ` and ${others.length} more`
    return `${toLine(entry)}${more} ${nounFor(others.length + 1, "is", "are")} skipped: ${toLine(why)}.`
  })

/** A reseller's name for a model begins with its maker. */
const idOf = ({ name, vendor }: FeedEntry): string =>
  vendor === "openrouter" ? name.slice(name.indexOf("/") + 1) : name

/** The end of the name of a dated version. */
const version = /-(?:\d{4}-\d\d-\d\d|\d{8}|latest)$/

/** Returns the same for all versions and spellings of a model. */
const identityOf = (name: string): string => name.toLowerCase().replace(version, "").replaceAll(/[._]/g, "-")

/** Finds models that the feed prices and the catalog lacks, each with a price and valid in a catalog. */
export const propose = Effect.fn("Catalog.propose")(function* (options: CatalogOptions, feed: Feed, vendor?: string) {
  const { entries } = yield* readOffers(options)
  const today = DateTime.formatIsoDateUtc(yield* DateTime.now)
  const all = [...entries.providers]
    .filter(([, { adapter }]) => adapter !== sandboxAdapter)
    .map(([name, entry]): Seller => ({ name, entry, vendors: vendorsOf({ name, baseUrl: entry.base_url }) }))
  const wanted = vendor?.toLowerCase()
  const sellers = all.filter(
    ({ vendors }) => wanted === undefined || vendors.some((one) => one.toLowerCase() === wanted)
  )
  if (vendor !== undefined && sellers.length === 0) {
    const known = Arr.dedupe(all.flatMap(({ vendors }) => vendors)).join(", ")
    return yield* new CommandFailed({ message: `No provider of the catalog is ${vendor}. It has: ${known}` })
  }
  const taken = new Set(
    entries.models.flatMap(({ entry }) => [entry.id, ...entry.routes.map(({ model }) => model)].map(identityOf))
  )
  const findProblem = (entry: string, model: Fields) =>
    readOffers({ ...options, source: { file: entry, text: catalogOf(entries, [model]) } }).pipe(
      Effect.as(undefined),
      Effect.catchTag("CatalogInvalid", ({ problems: [problem] }) =>
        Effect.succeed(`${problem?.key} ${problem?.message}`.replace(/^models\[0\][. ]?/, ""))
      )
    )
  const proposed: Array<Proposals["proposed"][number]> = []
  const skipped: Array<Proposals["skipped"][number]> = []
  const isVersion = ({ name }: FeedEntry) => Number(version.test(name))
  // In the order of the providers, a model before its dated versions.
  const listings = sellers.flatMap(({ vendors }) =>
    [...feed.entries.values()]
      .filter((listing) => vendors.includes(listing.vendor))
      .toSorted((a, b) => isVersion(a) - isVersion(b))
  )
  for (const listing of new Set(listings)) {
    const { entry, name } = listing
    if ([name, idOf(listing)].some((one) => taken.has(identityOf(one)))) continue
    const drafted = draftModel(entries, sellers, today, listing)
    const problem = Either.isLeft(drafted) ? drafted.left : yield* findProblem(entry, drafted.right)
    if (problem !== undefined) skipped.push({ entry, why: problem })
    else if (Either.isRight(drafted)) {
      taken.add(identityOf(idOf(listing)))
      proposed.push({ entry, model: drafted.right })
    }
  }
  const models = proposed.map(({ model }) => model)
  const proposals: Proposals = { proposed, skipped, yaml: catalogOf(entries, models) }
  return proposals
})
