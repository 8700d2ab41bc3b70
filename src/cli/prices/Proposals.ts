import { Effect, Either } from "effect"
import { findNearest } from "../../domain/Nearest.ts"
import { type CatalogOptions, readOffers } from "../../services/catalog/Catalog.ts"
import type { Entries } from "../../services/catalog/CatalogRules.ts"
import { type Feed, FeedInvalid } from "./Feed.ts"
import type { FeedEntry } from "./FeedModel.ts"
import { type Proposal, proposeEntry } from "./Proposal.ts"
import { isMaker, type Seller, sellersOf } from "./Seller.ts"
import { toLine } from "./Yaml.ts"

export interface Proposals {
  /** In the order of the catalog's providers. */
  readonly complete: ReadonlyArray<Proposal>
  readonly incomplete: ReadonlyArray<Proposal>
  readonly skipped: ReadonlyArray<{ readonly entry: string; readonly why: string }>
  /** Vendors of the feed that no provider of the catalog is, with the number of their entries. */
  readonly unserved: ReadonlyMap<string, number>
  readonly entries: Entries
}

const identityOf = (name: string): string => name.toLowerCase().replaceAll(/[._]/g, "-")

const withoutMaker = ({ maker, name }: FeedEntry): string =>
  maker !== undefined && name.startsWith(`${maker}/`) ? name.slice(maker.length + 1) : name

/** A snapshot is named by its day, the newest by `latest`. */
const version = /-(?:\d{4}-\d\d-\d\d|\d{8}|latest)$/

const soldNames = ({ models }: Entries): ReadonlySet<string> =>
  new Set(models.flatMap(({ entry }) => [entry.id, ...entry.routes.map(({ model }) => model)].map(identityOf)))

const most = 40

const listVendors = (vendors: ReadonlyArray<string>): string => {
  const rest = vendors.length - most
  const shown = vendors.slice(0, most).map(toLine).join(", ")
  return rest > 0 ? `${shown} and ${rest} more` : shown
}

const isOf = (vendor: string, { maker, vendor: own }: FeedEntry, sellers: ReadonlyArray<Seller>): boolean =>
  [own, maker].some((name) => name?.toLowerCase() === vendor) ||
  sellers.some(({ name, vendors }) => name.toLowerCase() === vendor && vendors.has(own))

const narrow = (
  { file, prices }: Feed,
  vendor: string | undefined,
  sellers: ReadonlyArray<Seller>
): Either.Either<ReadonlyArray<FeedEntry>, FeedInvalid> => {
  const all = prices.all()
  if (vendor === undefined) return Either.right(all)
  const wanted = all.filter((entry) => isOf(vendor.toLowerCase(), entry, sellers))
  if (wanted.length > 0) return Either.right(wanted)
  const names = new Set(all.map(({ maker, vendor: own }) => maker ?? own))
  const known = [...names].toSorted()
  const [nearest] = findNearest(vendor.toLowerCase(), known)
  const hint = nearest === undefined ? "" : `; did you mean ${toLine(nearest)}?`
  const message = `${file}: no vendor ${toLine(vendor)}${hint} The vendors are: ${listVendors(known)}`
  return Either.left(new FeedInvalid({ message: hint === "" ? message.replace(" The", ". The") : message }))
}

const isId = (name: string): boolean => /^[A-Za-z0-9][\w.:/-]{0,199}$/.test(name)

/** Models that the feed prices and the catalog lacks. */
export const propose = Effect.fn("Catalog.propose")(function* (options: CatalogOptions, feed: Feed, vendor?: string) {
  const { entries } = yield* readOffers(options)
  const sellers = sellersOf(entries, feed.prices.kind)
  const listed = yield* narrow(feed, vendor, sellers)
  const taken = new Set(soldNames(entries))
  const commented = new Set<string>()
  const inFeed = new Set(listed.map(({ name, vendor: own }) => `${own} ${identityOf(name)}`))
  const found: Array<Proposal> = []
  const skipped: Array<{ readonly entry: string; readonly why: string }> = []
  const unserved = new Map<string, number>()

  const sellersFor = ({ vendor: own }: FeedEntry) => sellers.filter(({ vendors }) => vendors.has(own))
  const isSold = (entry: FeedEntry) => [entry.name, withoutMaker(entry)].some((name) => taken.has(identityOf(name)))
  const isSnapshot = (entry: FeedEntry) => {
    const name = entry.name.replace(version, "")
    const base = { ...entry, name }
    return name !== entry.name && (inFeed.has(`${entry.vendor} ${identityOf(name)}`) || isSold(base))
  }
  const proposeOne = (entry: FeedEntry, own: ReadonlyArray<Seller>): Either.Either<Proposal, string> =>
    Either.gen(function* () {
      const id = withoutMaker(entry)
      if (!isId(id) || !isId(entry.name)) return yield* Either.left("its name is none that a catalog takes")
      if (entry.isSized === true) return yield* Either.left("it is the price of one size and quality")
      if (isSnapshot(entry)) return yield* Either.left("it is a version of a model that is there")
      if (own.some(isMaker) && (entry.name.includes("/") || entry.name.startsWith("ft:"))) {
        return yield* Either.left("it is a variant's price")
      }
      const fed = yield* Either.mapLeft(entry.read(), ({ message }) => message)
      const { retirement } = fed
      if (retirement !== undefined && (retirement.on === undefined || retirement.on <= feed.today)) {
        return yield* Either.left("the feed calls it retired or deprecated")
      }
      return yield* proposeEntry(id, entry, fed, own, entries)
    })

  const positionOf = (own: ReadonlyArray<Seller>) => own[0]?.position ?? Number.MAX_SAFE_INTEGER
  const bySeller = listed
    .map((entry) => ({ entry, own: sellersFor(entry) }))
    .toSorted((a, b) => positionOf(a.own) - positionOf(b.own))
  for (const { entry, own } of bySeller) {
    if (own.length === 0) {
      unserved.set(entry.vendor, (unserved.get(entry.vendor) ?? 0) + 1)
    } else if (!isSold(entry)) {
      const proposed = proposeOne(entry, own)
      if (Either.isRight(proposed)) {
        const { id, missing } = proposed.right
        const others = missing.length === 0 ? taken : commented
        if (!others.has(identityOf(id))) found.push(proposed.right)
        others.add(identityOf(id))
      } else skipped.push({ entry: entry.entry, why: proposed.left })
    }
  }
  const proposals: Proposals = {
    complete: found.filter(({ missing }) => missing.length === 0),
    incomplete: found.filter(({ missing }) => missing.length > 0),
    skipped,
    unserved,
    entries
  }
  return proposals
})
