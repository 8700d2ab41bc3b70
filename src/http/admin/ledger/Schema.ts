import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { ListedEntryRecord, OpenHoldRecord } from "../../../services/admin/EntryRecord.ts"
import { parameter } from "../../schema/Query.ts"
import { ReadAccess, ReadErrors } from "../Access.ts"
import { organizationParameter, spanParameters } from "../Filters.ts"
import { pageOf, pageParameters } from "../Page.ts"

const filters = {
  ...organizationParameter,
  ...spanParameters,
  kind: parameter(
    "kind",
    Schema.Literal("top_up", "charge", "adjustment"),
    "must be one of top_up, charge, adjustment",
    "All if left out."
  ),
  hold: parameter("hold", Schema.UUID, "must be the id of a hold", "Its charge, and what was given back of it.")
}

const list = HttpApiEndpoint.get("list", "/ledger")
  .setUrlParams(Schema.Struct({ ...pageParameters, ...filters }))
  .addSuccess(pageOf(ListedEntryRecord, "Entries"))
  .middleware(ReadAccess)
  .annotateContext(OpenApi.annotations({ summary: "List the ledger's entries, newest first" }))

const holds = HttpApiEndpoint.get("holds", "/ledger/holds")
  .setUrlParams(
    Schema.Struct({
      ...pageParameters,
      ...organizationParameter,
      state: parameter("state", Schema.Literal("open"), "must be open", "Only those that are open are listed.")
    })
  )
  .addSuccess(pageOf(OpenHoldRecord, "OpenHolds"))
  .middleware(ReadAccess)
  .annotateContext(OpenApi.annotations({ summary: "List what requests and videos under way hold, oldest first" }))

export const LedgerGroup = HttpApiGroup.make("ledger").add(list).add(holds).addError(ReadErrors)
