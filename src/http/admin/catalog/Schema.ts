import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { ModelRecord } from "../../../services/admin/CatalogRecord.ts"
import { ReloadRecord } from "../../../services/admin/CatalogReload.ts"
import { ChangeErrors, ReadAccess, WriteAccess } from "../Access.ts"
import { pageOf } from "../Page.ts"

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
