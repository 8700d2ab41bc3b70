import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Effect, identity, Redacted, Schema, Struct } from "effect"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { ApiKeys, type IssuedKey } from "../../services/access/ApiKeys.ts"
import { Key, type KeyLimits, limits, reissuing } from "../../services/access/Key.ts"
import { CurrentActor } from "../../services/admin/Actor.ts"
import * as Operations from "../../services/admin/KeyOperations.ts"
import { Catalog } from "../../services/catalog/Catalog.ts"
import { field, refuseUnknownFields } from "../../services/resources/BodyFields.ts"
import { bodyOf } from "../../services/resources/Input.ts"
import { TextOrNull } from "../../services/resources/Record.ts"
import { oneOf, parameter } from "../schema/Query.ts"
import { adminApiOf, ChangeErrors, ReadAccess, WriteAccess } from "./Access.ts"
import {
  answerOf,
  conflict,
  invalid,
  notFound,
  organizationReference,
  orNoBody,
  recordOf,
  refuseField,
  warningsLike
} from "./Fields.ts"
import { organizationOf, organizationParameter } from "./Filters.ts"
import { membersSee } from "./Members.ts"
import { cutPage, defaultListed, pageOf, pageParameters } from "./Page.ts"

const reference = Schema.Struct({ id: Schema.String.annotations({ description: "The key's id, not its secret." }) })

const warned = warningsLike("a pattern that matches no model")

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
      state: parameter("state", ...oneOf("live", "revoked"), "`live`: neither revoked nor expired; all if left out."),
      search: parameter("search", Schema.String, "must be a text", "An id, a hint, or a part of a name.")
    })
  )
  .addSuccess(pageOf(Key, "Keys"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List keys, newest first")
  .annotateContext(
    membersSee(pageOf(MemberKey, "MemberKeys"), {
      parameters: ["limit", "after", "organization", "state", "search"]
    })
  )

const create = HttpApiEndpoint.post("create", "/keys")
  .setPayload(
    refuseUnknownFields(
      Schema.extend(
        Schema.Struct({
          organization: field("organization", ...organizationReference, "Whose it is: an id or a name.")
        }),
        bodyOf(limits)
      )
    )
  )
  .addSuccess(Issued, { status: 201 })
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.create.summary)
  .annotateContext(membersSee(MemberIssued))

const show = HttpApiEndpoint.get("show", "/keys/:id")
  .setPath(reference)
  .addSuccess(Key)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Show a key")
  .annotateContext(membersSee(MemberKey))

const update = HttpApiEndpoint.patch("update", "/keys/:id")
  .setPath(reference)
  .setPayload(bodyOf(limits))
  .addSuccess(Changed)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.update.summary)
  .annotateContext(membersSee(Schema.Struct({ ...MemberKey.fields, ...warned })))

const revoke = HttpApiEndpoint.post("revoke", "/keys/:id/revoke")
  .setPath(reference)
  .addSuccess(Key)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.revoke.summary)
  .annotateContext(membersSee(MemberKey))

const reissue = HttpApiEndpoint.post("reissue", "/keys/:id/reissue")
  .setPath(reference)
  .setPayload(orNoBody(bodyOf(reissuing)))
  .addSuccess(Issued)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.reissue.summary)
  .annotateContext(membersSee(MemberIssued))
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
    const warned = (given: KeyLimits, scope: OrganizationScope) => {
      const warnings = Operations.warningsOf(given, Operations.modelsFor(scope, catalog.current))
      return warnings.length === 0 ? {} : { warnings }
    }
    return handlers
      .handle("list", ({ urlParams: { after, limit = defaultListed, organization, search, state } }) =>
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
            ...warned(payload, scope)
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
          answerOf(Operations.update.run(id, payload), (record) => ({ ...record, ...warned(payload, scope) }))
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
