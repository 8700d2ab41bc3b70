import { Effect } from "effect"
import { type CatalogOptions, readOffers } from "../../services/catalog/Catalog.ts"
import { lossesOf, type ReportedModel, reportModel } from "../../services/catalog/CatalogReport.ts"
import type { Entries } from "../../services/catalog/CatalogRules.ts"
import { compare, type Feed, type FeedReport } from "./Feed.ts"

export interface CatalogReport {
  /** With margins where the catalog has a cost. */
  readonly models: ReadonlyArray<ReportedModel>
  /** One line for every price below its cost, in the catalog or the feed. */
  readonly losses: ReadonlyArray<string>
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
  const models = all.map((offer) => withCosts(reportModel(offer)))
  const sold = all.map(({ model }) => model)
  const compared = feed === undefined ? undefined : yield* compare(sold, ownCaps(entries), feed)
  const report: CatalogReport = { models, losses: [...lossesOf(models), ...(compared?.losses ?? [])], feed: compared }
  return report
})
