import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Key, limits, reissuing } from "../../../services/access/Key.ts"
import * as Operations from "../../../services/admin/KeyOperations.ts"
import { field, Text } from "../../../services/resources/BodyFields.ts"
import { bodyOf } from "../../../services/resources/Input.ts"
import { TextOrNull } from "../../../services/resources/Record.ts"
import { refuseUnknownFields } from "../../../services/resources/UnknownFields.ts"
import { parameter } from "../../schema/Query.ts"
import { ChangeErrors, ReadAccess, WriteAccess } from "../Access.ts"
import { orNoBody } from "../Fields.ts"
import { organizationParameter } from "../Filters.ts"
import { membersSee, OpenToMembers } from "../Members.ts"
import { pageOf, pageParameters } from "../Page.ts"

const reference = Schema.Struct({ id: Schema.String.annotations({ description: "The key's id, not its secret." }) })

const warned = {
  warnings: Schema.optional(Schema.Array(Schema.String)).annotations({
    description:
      "What was accepted and may be a mistake, such as a pattern that matches no model; left out where nothing."
  })
}

const Changed = Schema.Struct({ ...Key.fields, ...warned }).annotations({ identifier: "ChangedKey" })

const Issued = Schema.Struct({
  ...Key.fields,
  ...warned,
  key: TextOrNull.annotations({
    description: "The secret, this once; null where an `Idempotency-Key` repeats the answer."
  })
}).annotations({ identifier: "IssuedKey" })

const limitNames = [
  "name",
  "scopes",
  "models",
  "rpm",
  "tpm",
  "concurrency",
  "cap_usd",
  "cap_period",
  "expires_at"
] as const

const MemberKey = Key.pick(
  "id",
  "org",
  "org_name",
  "hint",
  ...limitNames,
  "spent_usd",
  "created_at",
  "last_used_at",
  "previous_expires_at",
  "revoked_at"
)
const MemberIssued = Schema.Struct({ ...MemberKey.fields, ...warned, key: Issued.fields.key })

const list = HttpApiEndpoint.get("list", "/keys")
  .setUrlParams(
    Schema.Struct({
      ...pageParameters,
      ...organizationParameter,
      state: parameter(
        "state",
        Schema.Literal("live", "revoked"),
        "must be one of live, revoked",
        "`live`: neither revoked nor expired; all if left out."
      ),
      search: parameter("search", Schema.String, "must be a text", "An id, a hint, or a part of a name.")
    })
  )
  .addSuccess(pageOf(Key, "Keys"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List keys, newest first")
  .annotate(
    OpenToMembers,
    membersSee(pageOf(MemberKey, "MemberKeys"), {
      parameters: ["limit", "after", "organization", "state", "search"]
    })
  )

const create = HttpApiEndpoint.post("create", "/keys")
  .setPayload(
    refuseUnknownFields(
      Schema.extend(
        Schema.Struct({
          organization: field("organization", Text, "must be an id or a name", "Whose it is: an id or a name.")
        }),
        bodyOf(limits)
      )
    )
  )
  .addSuccess(Issued, { status: 201 })
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.create.summary)
  .annotate(OpenToMembers, membersSee(MemberIssued))

const show = HttpApiEndpoint.get("show", "/keys/:id")
  .setPath(reference)
  .addSuccess(Key)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Show a key")
  .annotate(OpenToMembers, membersSee(MemberKey))

const update = HttpApiEndpoint.patch("update", "/keys/:id")
  .setPath(reference)
  .setPayload(bodyOf(limits))
  .addSuccess(Changed)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.update.summary)
  .annotate(OpenToMembers, membersSee(Schema.Struct({ ...MemberKey.fields, ...warned })))

const revoke = HttpApiEndpoint.post("revoke", "/keys/:id/revoke")
  .setPath(reference)
  .addSuccess(Key)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.revoke.summary)
  .annotate(OpenToMembers, membersSee(MemberKey))

const reissue = HttpApiEndpoint.post("reissue", "/keys/:id/reissue")
  .setPath(reference)
  .setPayload(orNoBody(bodyOf(reissuing)))
  .addSuccess(Issued)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.reissue.summary)
  .annotate(OpenToMembers, membersSee(MemberIssued))
  .annotate(OpenApi.Transform, ({ requestBody, ...operation }) => ({
    ...operation,
    requestBody: { ...requestBody, required: false }
  }))

export const KeysGroup = HttpApiGroup.make("keys")
  .add(list)
  .add(create)
  .add(show)
  .add(update)
  .add(revoke)
  .add(reissue)
  .addError(ChangeErrors)
