import { Effect, identity } from "effect"
import { type NanoUsd, toUsdText } from "../../domain/Money.ts"
import { capFrom } from "../access/Cap.ts"
import { Organization, type OrganizationSettings } from "../admin/Organization.ts"
import { auditResource, operation } from "./Operation.ts"
import { Organizations } from "./Organizations.ts"

const organizations = auditResource({
  name: "organizations",
  record: Organization,
  find: (scope, reference) => Effect.flatMap(Organizations, ({ find }) => find(scope, reference)),
  orgOf: ({ id }) => id
})

export const create = operation(
  "Make an organization",
  (given: { readonly name: string; readonly credits?: NanoUsd | undefined }) => {
    const run = Effect.flatMap(Organizations, ({ create }) => create(given))
    return organizations.create("create", given, run, identity)
  }
)

export const update = operation("Change an organization", (reference: string, changes: OrganizationSettings) =>
  organizations.change(
    "update",
    reference,
    changes,
    Effect.fnUntraced(function* (scope, id) {
      const { find, update } = yield* Organizations
      return yield* update(id, { ...changes, ...(yield* capFrom(changes, yield* find(scope, id))) })
    })
  )
)

/** What is accepted and may be a mistake, in sentences. */
export const warningsOf = (
  { notify_below_usd: threshold }: OrganizationSettings,
  { balance_usd: balance }: Organization
): ReadonlyArray<string> =>
  threshold === undefined || threshold === null || balance >= threshold
    ? []
    : [
        `The balance is ${toUsdText(balance)} USD, below ${toUsdText(threshold)} already: no event tells of that. The next one comes when it falls below after it was at or above it.`
      ]

export const suspend = operation("Refuse all keys of an organization until it is resumed", (reference: string) =>
  organizations.change("suspend", reference, {}, (_, id) => Effect.flatMap(Organizations, ({ suspend }) => suspend(id)))
)

export const resume = operation("Let a suspended organization in again", (reference: string) =>
  organizations.change("resume", reference, {}, (_, id) => Effect.flatMap(Organizations, ({ resume }) => resume(id)))
)

export const remove = operation(
  "Delete an organization without balance and holds: revoke its keys, free its name. Its ledger stays",
  (reference: string) =>
    organizations.change("delete", reference, {}, (_, id) =>
      Effect.flatMap(Organizations, (organizations) => organizations.delete(id))
    )
)
