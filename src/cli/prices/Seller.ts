import type { Feature, Surface } from "../../domain/Model.ts"
import type { ProviderEntry } from "../../services/catalog/CatalogFormat.ts"
import { type Entries, sandboxAdapter } from "../../services/catalog/CatalogRules.ts"
import { routeOptions } from "../../services/catalog/CatalogSource.ts"
import type { FamilyEntry } from "../../services/catalog/EntryFields.ts"
import { hostOf, type PriceList, vendorNames } from "./FeedModel.ts"

/** A provider of the catalog, as a place to buy what the feed lists. */
export interface Seller {
  readonly name: string
  readonly entry: ProviderEntry
  readonly position: number
  /** The feed's names of it. */
  readonly vendors: ReadonlySet<string>
  /** Undefined where its wire format has no such models. */
  readonly featuresOf: (surface: Surface) => ReadonlySet<Feature> | undefined
}

export const sellersOf = ({ providers, wires }: Entries, kind: PriceList["kind"]): ReadonlyArray<Seller> =>
  [...providers]
    .filter(([, { adapter }]) => adapter !== sandboxAdapter)
    .map(([name, entry], position) => ({
      name,
      entry,
      position,
      vendors: new Set(vendorNames({ name, baseUrl: entry.base_url }, kind)),
      featuresOf: (surface) => wires.get(entry.adapter)?.surfaces.get(surface)?.(routeOptions(entry.options))
    }))

const makersHosts = new Set(["generativelanguage.googleapis.com", "api.openai.com", "api.anthropic.com", "api.x.ai"])

/** Their own names have no slash: with one it is a region's or a tier's price. */
export const isMaker = ({ entry }: Seller): boolean => makersHosts.has(hostOf(entry.base_url) ?? "")

/** The first in the catalog's order. */
export const firstSeller = (sellers: ReadonlyArray<Seller>, surface: Surface): Seller | undefined =>
  sellers.find(({ featuresOf }) => featuresOf(surface) !== undefined)

export interface ChosenFamily {
  readonly name: string
  readonly entry: FamilyEntry
  readonly isOwn: boolean
}

const countUses = ({ models }: Entries, family: string, sellers: ReadonlyArray<Seller>): number =>
  models.filter(
    ({ entry }) =>
      entry.surface === "chat" &&
      entry.family === family &&
      entry.routes.some(({ provider }) => sellers.some(({ name }) => name === provider))
  ).length

/** That of most of the sellers' models; a new one where none has the same `sampling`. */
export const chooseFamily = (
  entries: Entries,
  sellers: ReadonlyArray<Seller>,
  sampling: boolean | undefined,
  canSample: boolean
): ChosenFamily => {
  const fitting = [...entries.families].filter(
    ([, family]) => (canSample || !family.sampling) && (sampling === undefined || family.sampling === sampling)
  )
  const [first] = fitting
    .map(([name, entry]) => ({ name, entry, isOwn: true, uses: countUses(entries, name, sellers) }))
    .toSorted((a, b) => b.uses - a.uses)
  if (first !== undefined) return first
  const isSampled = sampling === true && canSample
  const name = isSampled ? "feed-sampled" : "feed-unsampled"
  return { name, entry: { sampling: isSampled }, isOwn: false }
}
