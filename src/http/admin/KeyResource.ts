import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Effect, identity, Redacted, Schema, Struct } from "effect"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { ApiKeys, type IssuedKey } from "../../services/access/ApiKeys.ts"
import { Key, type KeyLimits, limits, reissuing } from "../../services/access/Key.ts"
import { CurrentActor } from "../../services/admin/Actor.ts"
import * as Operations from "../../services/admin/KeyOperations.ts"
import { Catalog } from "../../services/catalog/Catalog.ts"
import { bodyOf, field, refuseUnknownFields } from "../../services/resources/ResourceInput.ts"
import { TextOrNull } from "../../services/resources/ResourceRecord.ts"
import { oneOf, queryParameter } from "../schema/Query.ts"
import { adminApiOf, ChangeErrors, exposeToMembers, ReadAccess, WriteAccess } from "./AdminAccess.ts"
import { cutPage, defaultLimit, organizationOf, organizationParameter, pageOf, pageParameters } from "./AdminLists.ts"
import {
  answerOf,
  conflict,
  invalid,
  notFound,
  optionalBody,
  organizationReference,
  recordOf,
  refuseField,
  warningsField
} from "./Fields.ts"

const reference = Schema.Struct({ id: Schema.String.annotations({ description: "The key's id, not its secret." }) })

const warningFields = warningsField("a pattern that matches no model")

const Changed = Schema.Struct({ ...Key.fields, ...warningFields }).annotations({ identifier: "ChangedKey" })

const Issued = Schema.Struct({
  ...Key.fields,
  ...warningFields,
  key: TextOrNull.annotations({
    description: "The secret. You cannot read it again. Null if an `Idempotency-Key` repeats the response."
  })
}).annotations({ identifier: "IssuedKey" })

const MemberKey = Key.pick(
  "id",
  "org",
  "org_name",
  "hint",
  ...Struct.keys(limits),
  "spent_usd",
  "created_at",
  "last_used_at",
  "previous_expires_at",
  "revoked_at"
)
const MemberIssued = Schema.Struct({ ...MemberKey.fields, ...warningFields, key: Issued.fields.key })

const listEndpoint = HttpApiEndpoint.get("list", "/keys")
  .setUrlParams(
    Schema.Struct({
      ...pageParameters,
      ...organizationParameter,
      state: queryParameter(
        "state",
        ...oneOf("live", "revoked"),
        "`live` means neither revoked nor expired. The default is all."
      ),
      search: queryParameter("search", Schema.String, "must be a string", "An id, a hint, or part of a name.")
    })
  )
  .addSuccess(pageOf(Key, "Keys"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List keys, newest first")
  .annotateContext(
    exposeToMembers(pageOf(MemberKey, "MemberKeys"), {
      parameters: ["limit", "after", "organization", "state", "search"]
    })
  )

const createEndpoint = HttpApiEndpoint.post("create", "/keys")
  .setPayload(
    refuseUnknownFields(
      Schema.extend(
        Schema.Struct({
          organization: field("organization", ...organizationReference, "The organization's id or name.")
        }),
        bodyOf(limits)
      )
    )
  )
  .addSuccess(Issued, { status: 201 })
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.create.summary)
  .annotateContext(exposeToMembers(MemberIssued))

const showEndpoint = HttpApiEndpoint.get("show", "/keys/:id")
  .setPath(reference)
  .addSuccess(Key)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Show a key")
  .annotateContext(exposeToMembers(MemberKey))

const updateEndpoint = HttpApiEndpoint.patch("update", "/keys/:id")
  .setPath(reference)
  .setPayload(bodyOf(limits))
  .addSuccess(Changed)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.update.summary)
  .annotateContext(exposeToMembers(Schema.Struct({ ...MemberKey.fields, ...warningFields })))

const revokeEndpoint = HttpApiEndpoint.post("revoke", "/keys/:id/revoke")
  .setPath(reference)
  .addSuccess(Key)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.revoke.summary)
  .annotateContext(exposeToMembers(MemberKey))

const reissueEndpoint = HttpApiEndpoint.post("reissue", "/keys/:id/reissue")
  .setPath(reference)
  .setPayload(optionalBody(bodyOf(reissuing)))
  .addSuccess(Issued)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.reissue.summary)
  .annotateContext(exposeToMembers(MemberIssued))
  .annotate(OpenApi.Transform, ({ requestBody, ...operation }) => ({
    ...operation,
    requestBody: { ...requestBody, required: false }
  }))

export const KeysGroup = HttpApiGroup.make("keys")
  .add(listEndpoint)
  .add(createEndpoint)
  .add(showEndpoint)
  .add(updateEndpoint)
  .add(revokeEndpoint)
  .add(reissueEndpoint)
  .addError(ChangeErrors)

const refusals = { KeyNotFound: notFound, KeyRevoked: conflict(null), FieldRefused: refuseField }

const withSecret = (record: Key, value: IssuedKey | undefined) => ({
  ...record,
  key: value === undefined ? null : Redacted.value(value.secret)
})

export const KeysHandlers = HttpApiBuilder.group(
  adminApiOf(KeysGroup),
  "keys",
  Effect.fnUntraced(function* (handlers) {
    const keys = yield* ApiKeys
    const catalog = yield* Catalog
    const warningFields = (values: KeyLimits, scope: OrganizationScope) => {
      const warnings = Operations.warningsOf(values, Operations.modelIdsFor(scope, catalog.current))
      return warnings.length === 0 ? {} : { warnings }
    }
    return handlers
      .handle("list", ({ urlParams: { after, limit = defaultLimit, organization, search, state } }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          const org = yield* organizationOf(organization)
          const rows = yield* keys.page(scope, { after, limit: limit + 1, org, search, state })
          return cutPage(rows, limit, identity<Key>, Struct.get("id"))
        })
      )
      .handle("create", ({ payload }) =>
        Effect.flatMap(CurrentActor, ({ scope }) =>
          answerOf(Operations.create.run(payload), (record, value) => ({
            ...withSecret(record, value),
            ...warningFields(payload, scope)
          }))
        ).pipe(
          Effect.catchTags({
            FieldRefused: refuseField,
            OrganizationNotFound: invalid("organization"),
            TooManyKeys: invalid(null)
          })
        )
      )
      .handle("show", ({ path: { id } }) =>
        Effect.flatMap(CurrentActor, ({ scope }) => keys.find(scope, id)).pipe(Effect.catchTag("KeyNotFound", notFound))
      )
      .handle("update", ({ path: { id }, payload }) =>
        Effect.flatMap(CurrentActor, ({ scope }) =>
          answerOf(Operations.update.run(id, payload), (record) => ({ ...record, ...warningFields(payload, scope) }))
        ).pipe(Effect.catchTags({ ...refusals, TooManyKeys: invalid(null) }))
      )
      .handle("revoke", ({ path: { id } }) =>
        Effect.catchTag(recordOf(Operations.revoke.run(id)), "KeyNotFound", notFound)
      )
      .handle("reissue", ({ path: { id }, payload }) =>
        answerOf(Operations.reissue.run(id, payload || {}), withSecret).pipe(
          Effect.catchTags(Struct.omit(refusals, "FieldRefused"))
        )
      )
  })
)
