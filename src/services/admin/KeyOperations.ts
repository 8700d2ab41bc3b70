import { Clock, Effect } from "effect"
import { findUnmatchedPatterns } from "../../domain/ModelPatterns.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { ApiKeys, type IssuedKey } from "../access/ApiKeys.ts"
import { capFrom, Key, type KeyLimits, type reissuing } from "../access/Key.ts"
import type { CatalogSnapshot } from "../catalog/Catalog.ts"
import { FieldRefused, type Values } from "../resources/ResourceInput.ts"
import { CurrentActor } from "./Actor.ts"
import { auditResource, operation } from "./AdminOperation.ts"
import { Organizations } from "./Organizations.ts"

const keys = auditResource({
  name: "keys",
  record: Key,
  find: (scope, id) => Effect.flatMap(ApiKeys, ({ find }) => find(scope, id))
})

const completeLimits = Effect.fnUntraced(function* (limits: KeyLimits, key?: Key) {
  const now = yield* Clock.currentTimeMillis
  if (limits.expires_at && limits.expires_at.getTime() <= now) {
    return yield* new FieldRefused({
      field: "expires_at",
      explain: (name) => `${name("expires_at")} must be in the future.`
    })
  }
  return { ...limits, ...(yield* capFrom(limits, key)) }
})

/** Returns the model ids of the catalog. For members only callable ones, because others are hidden from them. */
export const modelIdsFor = (
  scope: OrganizationScope,
  { models, saleStates }: CatalogSnapshot
): ReadonlyArray<string> =>
  scope.org === undefined ? saleStates.map(({ model }) => model.id) : models.map(({ id }) => id)

/** Returns warnings about input that is valid but may be a mistake. `ids` are the models that a pattern can match. */
export const warningsOf = (
  { models }: Pick<KeyLimits, "models">,
  ids: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const unmatched = findUnmatchedPatterns(models ?? [], ids)
  return unmatched.length === 0 ? [] : [`No model of the catalog matches ${unmatched.join(", ")}.`]
}

const recordOf = ({ record }: IssuedKey) => record

export const create = operation(
  "Create an API key. Its secret is shown only once",
  ({ organization, ...changes }: KeyLimits & { readonly organization: string }) => {
    const run = Effect.gen(function* () {
      const { scope } = yield* CurrentActor
      const limits = yield* completeLimits(changes)
      const { id: org } = yield* Effect.flatMap(Organizations, ({ findLocked }) => findLocked(scope, organization))
      return yield* Effect.flatMap(ApiKeys, ({ create }) => create({ org, ...limits }))
    })
    return keys.create("create", { organization, ...changes }, run, recordOf)
  }
)

export const update = operation(
  "Change the name and limits of a key. Omitted fields stay unchanged",
  (id: string, changes: KeyLimits) =>
    keys.change(
      "update",
      id,
      changes,
      Effect.fnUntraced(function* (scope, id) {
        const { find, update } = yield* ApiKeys
        return yield* update(scope, id, yield* completeLimits(changes, yield* find(scope, id)))
      })
    )
)

export const revoke = operation("Revoke a key permanently", (id: string) =>
  keys.change("revoke", id, {}, (scope, id) => Effect.flatMap(ApiKeys, ({ revoke }) => revoke(scope, id)))
)

export const reissue = operation(
  "Give a key a new secret. The old one stops working immediately, or after a grace period",
  (id: string, options: Values<typeof reissuing> = {}) =>
    keys.changeWith(
      "reissue",
      id,
      options,
      (scope, id) => Effect.flatMap(ApiKeys, ({ reissue }) => reissue(scope, id, options.grace_seconds ?? undefined)),
      recordOf
    )
)
