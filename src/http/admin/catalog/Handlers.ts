import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { modelRecord } from "../../../services/admin/CatalogRecord.ts"
import { awaitReload, requestReload } from "../../../services/admin/CatalogReload.ts"
import { Catalog, perSnapshot } from "../../../services/catalog/Catalog.ts"
import { lossesOf, reportModel } from "../../../services/catalog/CatalogReport.ts"
import { offerAt } from "../../../services/catalog/Offer.ts"
import { AdminApi } from "../AdminApi.ts"
import { recordOf } from "../Fields.ts"
import { wholePage } from "../Page.ts"

export const CatalogHandlers = HttpApiBuilder.group(
  AdminApi,
  "catalog",
  Effect.fnUntraced(function* (handlers) {
    const answer = perSnapshot(yield* Catalog, ({ fingerprint, offers, sandbox }, now) => {
      const models = offers.map((offer) => reportModel(offerAt(offer, now)))
      return { fingerprint, sandbox, losses: lossesOf(models), ...wholePage(models.map(modelRecord)) }
    })
    return handlers
      .handle("show", () => answer)
      .handle("reload", () =>
        recordOf(requestReload).pipe(
          Effect.flatMap(({ generation }) => awaitReload(generation)),
          Effect.map(wholePage)
        )
      )
  })
)
