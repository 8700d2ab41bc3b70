import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Organizations } from "../../../services/access/Organizations.ts"
import * as Changes from "../../../services/admin/OrganizationChanges.ts"
import { AdminApi } from "../AdminApi.ts"
import { conflict, invalid, notFound, recordOf } from "../Fields.ts"
import { cutPage, defaultListed } from "../Page.ts"

const nameRefusals = { NameTaken: conflict("name"), NameRefused: invalid("name") }
const unknown = { OrganizationNotFound: notFound }

export const OrganizationsHandlers = HttpApiBuilder.group(
  AdminApi,
  "organizations",
  Effect.fnUntraced(function* (handlers) {
    const organizations = yield* Organizations
    return handlers
      .handle("list", ({ urlParams: { after, limit = defaultListed, search, state } }) =>
        Effect.map(organizations.page({ after, limit: limit + 1, search, state }), (rows) =>
          cutPage(rows, limit, Changes.organizationRecord, ({ id }) => id)
        )
      )
      .handle("create", ({ payload: { credits_usd, name } }) =>
        recordOf(Changes.createOrganization({ name, credits: credits_usd })).pipe(Effect.catchTags(nameRefusals))
      )
      .handle("show", ({ path: { org } }) =>
        Effect.map(organizations.findAny(org), Changes.organizationRecord).pipe(Effect.catchTags(unknown))
      )
      .handle("update", ({ path: { org }, payload: { fit_holds, name, notify_below_usd } }) =>
        recordOf(Changes.updateOrganization(org, { name, notifyBelow: notify_below_usd, fitHolds: fit_holds })).pipe(
          Effect.catchTags({ ...nameRefusals, ...unknown })
        )
      )
      .handle("suspend", ({ path: { org } }) =>
        recordOf(Changes.suspendOrganization(org)).pipe(Effect.catchTags(unknown))
      )
      .handle("resume", ({ path: { org } }) =>
        recordOf(Changes.resumeOrganization(org)).pipe(Effect.catchTags(unknown))
      )
      .handle("delete", ({ path: { org } }) =>
        recordOf(Changes.deleteOrganization(org)).pipe(
          Effect.catchTags({ ...unknown, OrganizationInUse: conflict(null) })
        )
      )
  })
)
