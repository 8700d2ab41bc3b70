import { Clock, Effect } from "effect"
import { unmatchedPatterns } from "../../domain/ModelPatterns.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { ApiKeys, type IssuedKey } from "../access/ApiKeys.ts"
import { capFrom } from "../access/Cap.ts"
import { Key, type KeyLimits, type reissuing } from "../access/Key.ts"
import type { CatalogSnapshot } from "../catalog/Catalog.ts"
import type { Values } from "../resources/Input.ts"
import { FieldRefused } from "../resources/Input.ts"
import { CurrentActor } from "./Actor.ts"
import { auditResource, operation } from "./Operation.ts"
import { Organizations } from "./Organizations.ts"

const keys = auditResource({
  name: "keys",
  record: Key,
  find: (scope, id) => Effect.flatMap(ApiKeys, ({ find }) => find(scope, id))
})

const limitsFrom = Effect.fnUntraced(function* (given: KeyLimits, present?: Key) {
  const now = yield* Clock.currentTimeMillis
  if (given.expires_at && given.expires_at.getTime() <= now) {
    return yield* new FieldRefused({
      field: "expires_at",
      explain: (name) => `${name("expires_at")} must be in the future.`
    })
  }
  return { ...given, ...(yield* capFrom(given, present)) }
})

/** Models that are off count as the catalog's, but for members, who are not told of them. */
export const modelsFor = (scope: OrganizationScope, { models, offers }: CatalogSnapshot): ReadonlyArray<string> =>
  scope.org === undefined ? offers.map(({ model }) => model.id) : models.map(({ id }) => id)

/** What is accepted and may be a mistake, in sentences; `ids` are the models that patterns may match. */
export const warningsOf = (
  { models }: Pick<KeyLimits, "models">,
  ids: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const unmatched = unmatchedPatterns(models ?? [], ids)
  return unmatched.length === 0 ? [] : [`No model of the catalog matches ${unmatched.join(", ")}.`]
}

const recordOf = ({ record }: IssuedKey) => record

export const create = operation(
  "Issue a key; its secret is shown this once",
  ({ organization, ...given }: KeyLimits & { readonly organization: string }) => {
    const run = Effect.gen(function* () {
      const { scope } = yield* CurrentActor
      const limits = yield* limitsFrom(given)
      const { id: org } = yield* Effect.flatMap(Organizations, ({ keep }) => keep(scope, organization))
      return yield* Effect.flatMap(ApiKeys, ({ create }) => create({ org, ...limits }))
    })
    return keys.create("create", { organization, ...given }, run, recordOf)
  }
)

export const update = operation("Change what a key may do; what is left out stays", (id: string, given: KeyLimits) =>
  keys.change(
    "update",
    id,
    given,
    Effect.fnUntraced(function* (scope, id) {
      const { find, update } = yield* ApiKeys
      return yield* update(scope, id, yield* limitsFrom(given, yield* find(scope, id)))
    })
  )
)

export const revoke = operation("Make a key useless, for good", (id: string) =>
  keys.change("revoke", id, {}, (scope, id) => Effect.flatMap(ApiKeys, ({ revoke }) => revoke(scope, id)))
)

export const reissue = operation(
  "Give a key a new secret; the old one stops working at once, or after a grace",
  (id: string, given: Values<typeof reissuing> = {}) =>
    keys.changeWith(
      "reissue",
      id,
      given,
      (scope, id) => Effect.flatMap(ApiKeys, ({ reissue }) => reissue(scope, id, given.grace_seconds ?? undefined)),
      recordOf
    )
)
