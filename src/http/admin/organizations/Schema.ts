import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { OrganizationRecord } from "../../../services/admin/OrganizationChanges.ts"
import { field, optionalField, usdWhere } from "../../../services/resources/Body.ts"
import { parameter } from "../../schema/Query.ts"
import { ChangeErrors, OwnerAccess, ReadAccess, WriteAccess } from "../Access.ts"
import { usdProblem } from "../Fields.ts"
import { pageOf, pageParameters } from "../Page.ts"

const reference = Schema.Struct({ org: Schema.String.annotations({ description: "Its id or its name." }) })
const name = [Schema.String, "must be a text", "A name that no other organization has."] as const

const list = HttpApiEndpoint.get("list", "/organizations")
  .setUrlParams(
    Schema.Struct({
      ...pageParameters,
      search: parameter("search", Schema.String, "must be a text", "An id, or a part of a name."),
      state: parameter(
        "state",
        Schema.Literal("active", "suspended", "deleted"),
        "must be one of active, suspended, deleted",
        "Those that are not deleted, if left out."
      )
    })
  )
  .addSuccess(pageOf(OrganizationRecord, "Organizations"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List organizations, newest first")

const create = HttpApiEndpoint.post("create", "/organizations")
  .setPayload(
    Schema.Struct({
      name: field("name", ...name),
      credits_usd: optionalField(
        "credits_usd",
        usdWhere((amount) => amount >= 0n),
        usdProblem.nonNegative,
        "USD to begin with."
      )
    })
  )
  .addSuccess(OrganizationRecord, { status: 201 })
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, "Make an organization")

const show = HttpApiEndpoint.get("show", "/organizations/:org")
  .setPath(reference)
  .addSuccess(OrganizationRecord)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Show an organization, a deleted one too")

const update = HttpApiEndpoint.patch("update", "/organizations/:org")
  .setPath(reference)
  .setPayload(
    Schema.Struct({
      name: optionalField("name", ...name),
      notify_below_usd: optionalField(
        "notify_below_usd",
        Schema.NullOr(usdWhere((amount) => amount > 0n)),
        `${usdProblem.positive}, or null`,
        "The balance below which its webhook endpoints get an event; null: never."
      ),
      fit_holds: optionalField(
        "fit_holds",
        Schema.Boolean,
        "must be true or false",
        "Whether chats run with a lower cap where the balance does not cover theirs."
      )
    })
  )
  .addSuccess(OrganizationRecord)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, "Change an organization")

const suspend = HttpApiEndpoint.post("suspend", "/organizations/:org/suspend")
  .setPath(reference)
  .addSuccess(OrganizationRecord)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, "Refuse all its keys until it is resumed")

const resume = HttpApiEndpoint.post("resume", "/organizations/:org/resume")
  .setPath(reference)
  .addSuccess(OrganizationRecord)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, "Let it in again")

const remove = HttpApiEndpoint.del("delete", "/organizations/:org")
  .setPath(reference)
  .addSuccess(OrganizationRecord)
  .middleware(OwnerAccess)
  .annotate(OpenApi.Summary, "Delete one without balance and holds: revokes its keys, frees its name")

export const OrganizationsGroup = HttpApiGroup.make("organizations")
  .add(list)
  .add(create)
  .add(show)
  .add(update)
  .add(suspend)
  .add(resume)
  .add(remove)
  .addError(ChangeErrors)
