import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Effect, Schema } from "effect"
import { lossesOf, ModelRecord, modelRecord } from "../../services/admin/CatalogRecord.ts"
import { awaitReload, ReloadRecord, requestReload } from "../../services/admin/CatalogReload.ts"
import { Catalog, perSnapshot } from "../../services/catalog/Catalog.ts"
import { offerAt } from "../../services/catalog/Offer.ts"
import { adminApiOf, ChangeErrors, ReadAccess, WriteAccess } from "./Access.ts"
import { recordOf } from "./Fields.ts"
import { pageOf, wholePage } from "./Page.ts"

export const CatalogAnswer = Schema.Struct({
  fingerprint: Schema.String.annotations({ description: "Of the file's text, as `/instances` has it." }),
  sandbox: Schema.Boolean.annotations({ description: "Whether models without a credential get made-up answers." }),
  losses: Schema.Array(Schema.String).annotations({ description: "A sentence for each price below its cost." }),
  ...pageOf(ModelRecord, "Catalog").fields
}).annotations({ identifier: "Catalog" })

export const ReloadAnswer = pageOf(ReloadRecord, "Reloads")

const show = HttpApiEndpoint.get("show", "/catalog")
  .addSuccess(CatalogAnswer)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "The catalog that this instance serves: what is off and why, prices, margins")

const reload = HttpApiEndpoint.post("reload", "/catalog/reload")
  .addSuccess(ReloadAnswer)
  .middleware(WriteAccess)
  .annotate(
    OpenApi.Summary,
    "Let every instance read its catalog and credentials again; answers what each says, within 10 seconds"
  )

export const CatalogGroup = HttpApiGroup.make("catalog").add(show).add(reload).addError(ChangeErrors)

export const CatalogHandlers = HttpApiBuilder.group(
  adminApiOf(CatalogGroup),
  "catalog",
  Effect.fnUntraced(function* (handlers) {
    const answer = perSnapshot(yield* Catalog, ({ fingerprint, offers, sandbox }, now) => {
      const models = offers.map((offer) => modelRecord(offerAt(offer, now)))
      return { fingerprint, sandbox, losses: lossesOf(models), ...wholePage(models) }
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
