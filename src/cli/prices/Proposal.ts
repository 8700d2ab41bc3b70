import { Array as Arr, Effect, Either, Struct } from "effect"
import { withoutControls } from "../../domain/Csv.ts"
import type { Feature } from "../../domain/Model.ts"
import { findNearest } from "../../domain/Nearest.ts"
import { nounFor } from "../../domain/Plural.ts"
import { type CatalogOptions, readOffers } from "../../services/catalog/Catalog.ts"
import type { ProviderEntry } from "../../services/catalog/CatalogFormat.ts"
import { type Entries, sandboxAdapter } from "../../services/catalog/CatalogRules.ts"
import { routeOptions, write } from "../../services/catalog/CatalogSource.ts"
import type { FamilyEntry } from "../../services/catalog/EntryFields.ts"
import { CommandFailed } from "../CommandFailed.ts"
import type { Fields } from "../Output.ts"
import { type Feed, type FeedEntry, type FeedModel, feedName, priceAt, tokenPrices, vendorsOf } from "./Feed.ts"

/** A provider of the catalog and the feed's names for it. */
interface Seller {
  readonly name: string
  readonly entry: ProviderEntry
  readonly vendors: ReadonlyArray<string>
}

interface Draft {
  readonly family?: { readonly name: string; readonly entry: FamilyEntry }
  readonly pricing: Fields
  readonly fields: Fields
  readonly remarks: ReadonlyArray<string>
}

/** An entry for a catalog, and what the catalog's reader says against it. */
export interface Proposal {
  readonly id: string
  /** The feed's key. */
  readonly entry: string
  readonly seller: Seller
  readonly family: Draft["family"]
  /** Bigints are amounts in nano-USD. */
  readonly model: Fields
  readonly remarks: ReadonlyArray<string>
  readonly problem: string | undefined
}

export interface Proposals {
  /** In the order of the catalog's providers. */
  readonly complete: ReadonlyArray<Proposal>
  /** Each has a problem. */
  readonly incomplete: ReadonlyArray<Proposal>
  readonly skipped: ReadonlyArray<{ readonly entry: string; readonly why: string }>
}

/** Text of a feed for one line of a message. */
const toLine = (text: string): string => withoutControls(text).slice(0, 120)

const toLines = (texts: ReadonlyArray<string>, most: number): string => {
  const rest = texts.length - most
  return `${texts.slice(0, most).map(toLine).join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`
}

const sellersOf = ({ providers }: Entries): ReadonlyArray<Seller> =>
  [...providers]
    .filter(([, { adapter }]) => adapter !== sandboxAdapter)
    .map(([name, entry]) => ({ name, entry, vendors: vendorsOf({ name, baseUrl: entry.base_url }) }))

/** The family of the seller's first model that fits it; a new one if the catalog has none. */
const chooseFamily = ({ families, models }: Entries, { name }: Seller, canSample: boolean) => {
  const used = models.flatMap(({ entry }) =>
    entry.surface === "chat" && entry.routes.some(({ provider }) => provider === name) ? [entry.family] : []
  )
  const fitting = [...used, ...families.keys()].flatMap((family) => {
    const entry = families.get(family)
    return entry === undefined || (entry.sampling && !canSample) ? [] : [{ name: family, entry }]
  })
  return fitting[0] ?? { name: "feed-unsampled", entry: { sampling: false } }
}

const isPrice = (amount: bigint | undefined): amount is bigint => amount !== undefined && amount > 0n

/** The prices of prompts above a length, without those that are 0; undefined without a price of prompt and completion. */
const pricesAbove = ({ tiers }: FeedModel, above: number) => {
  const listed = tokenPrices.map(({ key, part }) => [key, priceAt(tiers, above + 1, part)] as const)
  const prices = Object.fromEntries(listed.filter(([, price]) => isPrice(price)))
  const zeros = listed.flatMap(([key, price]) => (price === 0n ? [key] : []))
  return prices.prompt_per_1m_usd === undefined || prices.completion_per_1m_usd === undefined
    ? undefined
    : { prices, zeros }
}

/** Fails with the reason why a catalog cannot state them. */
const draftPrices = (
  fed: FeedModel
): Either.Either<{ readonly prices: Fields; readonly zeros: ReadonlyArray<string> }, string> => {
  const base = pricesAbove(fed, 0)
  const [above, ...others] = fed.tiers.flatMap((tier) => (tier.above > 0 ? [tier.above] : []))
  if (base === undefined) return Either.left("it has no price of prompt and completion, or 0, which may be unknown")
  if (above === undefined) return Either.right(base)
  if (others.length > 0) return Either.left("its price changes at several lengths")
  const long = pricesAbove(fed, above)
  return long === undefined
    ? Either.left("its price of long prompts is 0, which may be unknown")
    : Either.right({
        prices: { ...base.prices, long_context: { above, ...long.prices } },
        zeros: Arr.union(base.zeros, long.zeros)
      })
}

const draftChat = (entries: Entries, seller: Seller, fed: FeedModel, able: ReadonlySet<Feature>) =>
  Either.map(draftPrices(fed), ({ prices, zeros }): Draft => {
    const family = chooseFamily(entries, seller, able.has("sampling"))
    const isPriced = (one: Feature) => one !== "web_search" || isPrice(fed.webSearch)
    const capabilities = fed.capabilities.filter((one) => one !== "reasoning" && able.has(one) && isPriced(one))
    const others = fed.capabilities.filter((one) => !capabilities.includes(one))
    const [input = 0, whole = 0] = fed.contextLengths
    const { maxOutput = 0 } = fed
    const window = input < maxOutput ? whole : input
    const remarks = [
      [true, "family: whether the model takes temperature is not in the feed"],
      [others.length > 0, `capabilities, reasoning: without ${others.join(", ")}: check what the provider offers`],
      [window < whole, `context_length: of the prompt; ${whole} if the vendor counts the output too`],
      [maxOutput > 0 && maxOutput === window, "max_output: as large as the window, so it may be unknown"],
      [zeros.length > 0, `pricing: ${zeros.join(", ")} is 0 in the feed, which may be unknown`]
    ] as const
    return {
      family,
      pricing: { ...prices, web_search_per_1k_usd: capabilities.includes("web_search") ? fed.webSearch : undefined },
      fields: {
        family: family.name,
        context_length: window === 0 ? undefined : window,
        max_output: fed.maxOutput,
        reasoning: "none",
        capabilities
      },
      remarks: remarks.flatMap(([applies, remark]) => (applies ? [remark] : []))
    }
  })

/** For models with one price. */
const draftUnit = (key: string, price: bigint | undefined, untold: string): Either.Either<Draft, string> =>
  isPrice(price)
    ? Either.right({ pricing: { [key]: price }, fields: {}, remarks: [`not in the feed: ${untold}`] })
    : Either.left(`it has no ${key}, or 0, which may be unknown`)

const draftOf = (entries: Entries, sellers: ReadonlyArray<Seller>, today: string, fed: FeedModel) =>
  Either.gen(function* () {
    const { otherCharge, perImage, perSecond, retirement, surface } = fed
    if (retirement !== undefined && retirement <= today) return yield* Either.left("the feed says it is retired")
    if (surface === undefined) return yield* Either.left("it is of a kind that the gateway does not sell")
    if (otherCharge !== undefined) {
      return yield* Either.left(`the feed prices it ${otherCharge}, which a catalog cannot state`)
    }
    for (const seller of sellers) {
      const { adapter, options } = seller.entry
      const able = entries.wires.get(adapter)?.surfaces.get(surface)?.(routeOptions(options))
      if (able === undefined) continue
      if (surface === "chat") return { seller, draft: yield* draftChat(entries, seller, fed, able) }
      const draft =
        surface === "image"
          ? draftUnit("per_image_usd", perImage, "edit, sizes or aspect_ratios, and the size of this price")
          : draftUnit("per_second_usd", perSecond, "seconds, reference_image, and the resolution of this price")
      return { seller, draft: yield* draft }
    }
    return yield* Either.left(`no wire format of ${sellers.map(({ name }) => name).join(", ")} has ${surface} models`)
  })

const entryText = ({ entry, model, problem, remarks }: Proposal): string => {
  const yaml = write([model])
  const lines = [
    `# ${entry}`,
    ...remarks.map((remark) => `# ${remark}`),
    ...(problem === undefined ? [yaml] : [`# ${problem}`, yaml.replace(/^(?=.)/gm, "# ")])
  ]
  return lines.join("\n").replace(/^(?=.)/gm, "  ")
}

const catalogOf = (complete: ReadonlyArray<Proposal>, incomplete: ReadonlyArray<Proposal>): string => {
  const models = [...complete, ...incomplete].map(entryText).join("\n")
  // Headers may hold a secret.
  const providers = complete.map(({ seller }) => [seller.name, Struct.omit(seller.entry, "headers")] as const)
  const families = complete.flatMap(({ family }) =>
    family === undefined ? [] : [[family.name, family.entry] as const]
  )
  const shared = { providers: Object.fromEntries(providers), families: Object.fromEntries(families) }
  return complete.length === 0 ? models : `${write(shared)}\nmodels:\n${models}`
}

/** A catalog of its own; an entry with a problem is a comment. */
export const proposalText = ({ complete, incomplete }: Proposals, { file, today }: Feed, catalog: string): string =>
  [
    `# From ${toLine(file)}, in the format of ${feedName}, on ${today}: what it prices and ${toLine(catalog)} lacks.`,
    complete.length === 0
      ? "# Nothing complete.\n"
      : "# The prices are the vendors': set yours. Providers (without headers) and families are repeated for a check.\n",
    catalogOf(complete, incomplete)
  ].join("\n")

const maxReasons = 20

/** One line for each reason. */
export const skipWarnings = ({ skipped }: Proposals): ReadonlyArray<string> => {
  const lines = Object.entries(Arr.groupBy(skipped, ({ why }) => why)).map(([why, some]) => {
    const names = some.map(({ entry }) => entry)
    return `${toLines(names, 3)} ${nounFor(names.length, "is", "are")} skipped: ${toLine(why)}.`
  })
  const rest = lines.length - maxReasons
  return rest > 0
    ? [...lines.slice(0, maxReasons), `More are skipped, for ${rest} other reasons; --json lists all.`]
    : lines
}

const narrow = ({ entries, file }: Feed, vendor: string | undefined, sellers: ReadonlyArray<Seller>) => {
  const all = [...entries.values()]
  if (vendor === undefined) return Either.right(all)
  const given = vendor.toLowerCase()
  const named = sellers.flatMap(({ name, vendors }) => (name.toLowerCase() === given ? vendors : []))
  const wanted = all.filter(
    ({ maker, vendor: own }) => own.toLowerCase() === given || maker?.toLowerCase() === given || named.includes(own)
  )
  if (wanted.length > 0) return Either.right(wanted)
  const known = [...new Set(all.map(({ maker, vendor: own }) => maker ?? own))].toSorted()
  const [nearest] = findNearest(given, known)
  const hint = nearest === undefined ? "." : `; did you mean ${toLine(nearest)}?`
  const message = `${file}: no vendor ${toLine(vendor)}${hint} The vendors are: ${toLines(known, 40)}`
  return Either.left(new CommandFailed({ message }))
}

const withoutMaker = ({ maker, name }: FeedEntry): string =>
  maker !== undefined && name.startsWith(`${maker}/`) ? name.slice(maker.length + 1) : name

const identityOf = (name: string): string => name.toLowerCase().replaceAll(/[._]/g, "-")

/** A snapshot is named by its day, the newest by `latest`. */
const version = /-(?:\d{4}-\d\d-\d\d|\d{8}|latest)$/

const makers = new Set(["gemini", "openai", "anthropic", "xai"])

/** Models that the feed prices and the catalog lacks. */
export const propose = Effect.fn("Catalog.propose")(function* (options: CatalogOptions, feed: Feed, vendor?: string) {
  const { entries } = yield* readOffers(options)
  const sellers = sellersOf(entries)
  const listed = yield* narrow(feed, vendor, sellers)
  const taken = new Set(
    entries.models.flatMap(({ entry }) => [entry.id, ...entry.routes.map(({ model }) => model)].map(identityOf))
  )
  const inFeed = new Set(listed.map(({ name, vendor: own }) => `${own} ${identityOf(name)}`))
  const isTaken = (entry: FeedEntry) => [entry.name, withoutMaker(entry)].some((name) => taken.has(identityOf(name)))
  const isSnapshot = (entry: FeedEntry) => {
    const name = entry.name.replace(version, "")
    return name !== entry.name && (inFeed.has(`${entry.vendor} ${identityOf(name)}`) || isTaken({ ...entry, name }))
  }
  const findExclusion = (entry: FeedEntry): string | undefined => {
    if (!/^[A-Za-z0-9][\w.:/-]{0,199}$/.test(entry.name)) return "its name is none that a catalog takes"
    if (entry.isSized) return "it is the price of one size and quality"
    if (isSnapshot(entry)) return "it is a version of a model that is there"
    // A maker's own names have no slash: with one it is the price of a region or a tier.
    const isVariant = makers.has(entry.vendor) && (entry.name.includes("/") || entry.name.startsWith("ft:"))
    return isVariant ? "it is a variant's price" : undefined
  }
  const proposeOne = (listing: FeedEntry): Either.Either<Proposal, string> =>
    Either.gen(function* () {
      const own = sellers.filter(({ vendors }) => vendors.includes(listing.vendor))
      if (own.length === 0) {
        return yield* Either.left("the catalog has no provider for its vendor, by base_url or by name")
      }
      const excluded = findExclusion(listing)
      if (excluded !== undefined) return yield* Either.left(excluded)
      const fed = yield* listing.read()
      const { draft, seller } = yield* draftOf(entries, own, feed.today, fed)
      const id = withoutMaker(listing)
      const routes = [{ provider: seller.name, model: listing.name, cost: draft.pricing }]
      const retirement = fed.retirement === undefined ? [] : [`retired on ${fed.retirement}, says the feed`]
      return {
        id,
        entry: listing.entry,
        seller,
        family: draft.family,
        model: { id, surface: fed.surface, ...draft.fields, pricing: draft.pricing, routes },
        remarks: [...draft.remarks, ...retirement],
        problem: undefined
      }
    })
  const findProblem = (proposal: Proposal) =>
    readOffers({ ...options, source: { file: proposal.entry, text: catalogOf([proposal], []) } }).pipe(
      Effect.as(undefined),
      Effect.catchTag("CatalogInvalid", ({ problems: [problem] }) =>
        Effect.succeed(`${problem?.key} ${problem?.message}`.replace(/^models\[0\][. ]?/, ""))
      )
    )

  const complete: Array<Proposal> = []
  const incomplete = new Map<string, Proposal>()
  const skipped: Array<Proposals["skipped"][number]> = []
  const positionOf = (entry: FeedEntry) => sellers.findIndex(({ vendors }) => vendors.includes(entry.vendor))
  for (const entry of listed.toSorted((a, b) => positionOf(a) - positionOf(b))) {
    if (isTaken(entry)) continue
    const proposed = proposeOne(entry)
    if (Either.isLeft(proposed)) {
      skipped.push({ entry: entry.entry, why: proposed.left })
      continue
    }
    const identity = identityOf(proposed.right.id)
    const problem = yield* findProblem(proposed.right)
    if (problem === undefined) {
      taken.add(identity)
      complete.push(proposed.right)
    } else if (!incomplete.has(identity)) incomplete.set(identity, { ...proposed.right, problem })
  }
  const proposals: Proposals = { complete, incomplete: [...incomplete.values()], skipped }
  return proposals
})
