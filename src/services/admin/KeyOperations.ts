import { Clock, Effect } from "effect"
import { unmatchedPatterns } from "../../domain/ModelPatterns.ts"
import { ApiKeys, type IssuedKey } from "../access/ApiKeys.ts"
import { Key, type KeyLimits, type reissuing } from "../access/Key.ts"
import type { CatalogSnapshot } from "../catalog/Catalog.ts"
import { FieldRefused } from "../resources/FieldRefused.ts"
import type { Written } from "../resources/Input.ts"
import { auditResource, operation } from "./Operation.ts"
import { Organizations } from "./Organizations.ts"

const keys = auditResource({
  name: "keys",
  record: Key,
  find: (id) => Effect.flatMap(ApiKeys, ({ find }) => find(id))
})

const periods = "day, week, month or total"

/** A cap and its period are there together. */
const capFrom = ({ cap_period, cap_usd }: KeyLimits, present?: Key) => {
  const given = cap_period ?? undefined
  if (cap_usd === undefined && given === undefined) return Effect.succeed({})
  if (cap_usd === null) {
    return given === undefined
      ? Effect.succeed({ cap_usd, cap_period: null })
      : new FieldRefused({ field: "cap_period", explain: (name) => `Without a cap there is no ${name("cap_period")}.` })
  }
  const cap = { cap_usd: cap_usd ?? present?.cap_usd, cap_period: given ?? present?.cap_period }
  if (cap.cap_usd === undefined || cap.cap_usd === null) {
    return new FieldRefused({ field: "cap_usd", explain: (name) => `${name("cap_period")} needs ${name("cap_usd")}.` })
  }
  if (cap.cap_period === undefined || cap.cap_period === null) {
    return new FieldRefused({
      field: "cap_period",
      explain: (name) => `${name("cap_usd")} needs ${name("cap_period", periods)}.`
    })
  }
  return Effect.succeed(cap)
}

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

/** What is accepted and may be a mistake, in sentences; models that are off count as the catalog's. */
export const warningsOf = (
  { models }: Pick<KeyLimits, "models">,
  { offers }: Pick<CatalogSnapshot, "offers">
): ReadonlyArray<string> => {
  const ids = offers.map(({ model }) => model.id)
  const unmatched = unmatchedPatterns(models ?? [], ids)
  return unmatched.length === 0 ? [] : [`No model of the catalog matches ${unmatched.join(", ")}.`]
}

const recordOf = ({ record }: IssuedKey) => record

export const create = operation(
  "Issue a key; its secret is shown this once",
  ({ organization, ...given }: KeyLimits & { readonly organization: string }) => {
    const run = Effect.gen(function* () {
      const limits = yield* limitsFrom(given)
      const { id: org } = yield* Effect.flatMap(Organizations, ({ keep }) => keep(organization))
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
    Effect.fnUntraced(function* (id) {
      const { find, update } = yield* ApiKeys
      return yield* update(id, yield* limitsFrom(given, yield* find(id)))
    })
  )
)

export const revoke = operation("Make a key useless, for good", (id: string) =>
  keys.change("revoke", id, {}, (id) => Effect.flatMap(ApiKeys, ({ revoke }) => revoke(id)))
)

export const reissue = operation(
  "Give a key a new secret; the old one stops working at once, or after a grace",
  (id: string, given: Written<typeof reissuing> = {}) =>
    keys.changeWith(
      "reissue",
      id,
      given,
      (id) => Effect.flatMap(ApiKeys, ({ reissue }) => reissue(id, given.grace_seconds ?? undefined)),
      recordOf
    )
)
