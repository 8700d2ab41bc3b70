import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { AuditRow } from "../../../services/admin/AuditRow.ts"
import { parameter } from "../../schema/Query.ts"
import { ReadAccess, ReadErrors } from "../Access.ts"
import { organizationParameter, spanParameters } from "../Filters.ts"
import { pageOf, pageParameters } from "../Page.ts"

const filter = (name: string, description: string) => parameter(name, Schema.String, "must be a text", description)

const list = HttpApiEndpoint.get("list", "/audit")
  .setUrlParams(
    Schema.Struct({
      ...pageParameters,
      actor: filter("actor", "An operator's name, or `cli:` and who ran the command."),
      action: filter("action", "One action such as `keys.revoke`, or all of a resource such as `keys`."),
      target: filter("target", "The id of what was changed."),
      ...organizationParameter,
      ...spanParameters
    })
  )
  .addSuccess(pageOf(AuditRow, "Audit"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "What operators changed, newest first")

export const AuditGroup = HttpApiGroup.make("audit").add(list).addError(ReadErrors)
