import { Clock, Effect } from "effect"
import { type CatalogOptions, readOffers } from "../../services/catalog/Catalog.ts"
import { laterLossesOf, lossesOf, type ReportedModel, reportModel } from "../../services/catalog/CatalogReport.ts"
import type { Entries } from "../../services/catalog/CatalogRules.ts"
import { findPast } from "../../services/catalog/DatedPrices.ts"
import { offerAt } from "../../services/catalog/Offer.ts"
import { findUnitPrices } from "../../services/catalog/PriceUnits.ts"
import { compare, type Feed, type FeedReport } from "./Feed.ts"

export interface CatalogReport {
  /** With margins where the catalog has a cost. */
  readonly models: ReadonlyArray<ReportedModel>
  /** One line for every price below its cost, in the catalog or the feed. */
  readonly losses: ReadonlyArray<string>
  /** Valid entries that are probably mistakes or could be shorter. */
  readonly warnings: ReadonlyArray<string>
  /** The warnings about units of prices. */
  readonly unitPrices: ReadonlyArray<string>
  readonly feed: FeedReport | undefined
}

const withCosts = (model: ReportedModel): ReportedModel => ({
  ...model,
  routes: model.routes.map((route) => ({
    ...route,
    margins: route.margins.filter(({ cost }) => cost !== undefined)
  }))
})

const ownCaps = ({ models }: Entries): ReadonlyMap<string, number> =>
  new Map(
    models.flatMap(({ entry }) =>
      entry.surface === "chat" && entry.max_output !== undefined ? [[entry.id, entry.max_output]] : []
    )
  )

/** Checks a catalog as a start would, and every route, callable or not, for prices below cost. */
export const check = Effect.fn("Catalog.check")(function* (options: CatalogOptions, feed?: Feed) {
  const { all, entries } = yield* readOffers(options)
  const now = yield* Clock.currentTimeMillis
  const offers = all.map((offer) => offerAt(offer, now))
  const models = offers.map((offer) => withCosts(reportModel(offer)))
  const sold = offers.map(({ model }) => model)
  const compared = feed === undefined ? undefined : yield* compare(sold, ownCaps(entries), feed)
  const unitPrices = entries.models.flatMap(({ entry }) => findUnitPrices(entry))
  const report: CatalogReport = {
    models,
    losses: [...lossesOf(models), ...laterLossesOf(offers), ...(compared?.losses ?? [])],
    warnings: [...unitPrices, ...entries.models.flatMap(({ entry }) => findPast(entry, now))],
    unitPrices,
    feed: compared
  }
  return report
})
