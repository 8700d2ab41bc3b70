import { HttpApiBuilder } from "@effect/platform"
import { Effect, identity, Redacted, Struct } from "effect"
import type { OrganizationScope } from "../../../domain/OrganizationScope.ts"
import { ApiKeys, type IssuedKey } from "../../../services/access/ApiKeys.ts"
import type { Key, KeyLimits } from "../../../services/access/Key.ts"
import { CurrentActor } from "../../../services/admin/Actor.ts"
import * as Operations from "../../../services/admin/KeyOperations.ts"
import { Catalog } from "../../../services/catalog/Catalog.ts"
import { AdminApi } from "../AdminApi.ts"
import { answerOf, conflict, invalid, notFound, recordOf, refuseField } from "../Fields.ts"
import { organizationOf } from "../Filters.ts"
import { cutPage, defaultListed } from "../Page.ts"

const refusals = { KeyNotFound: notFound, KeyRevoked: conflict(null), FieldRefused: refuseField }

const withSecret = (record: Key, value: IssuedKey | undefined) => ({
  ...record,
  key: value === undefined ? null : Redacted.value(value.secret)
})

export const KeysHandlers = HttpApiBuilder.group(
  AdminApi,
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
