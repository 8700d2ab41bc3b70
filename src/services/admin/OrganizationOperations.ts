import { Effect, identity } from "effect"
import { toUsdText } from "../../domain/Money.ts"
import { pluralize } from "../../domain/Wording.ts"
import { capFrom } from "../access/Key.ts"
import type { SaleState } from "../catalog/SaleState.ts"
import { auditResource, operation } from "./AdminOperation.ts"
import { discountLossesOf, lossText } from "./CatalogRecord.ts"
import { type NewOrganization, Organization, type OrganizationSettings, Organizations } from "./Organizations.ts"

const organizations = auditResource({
  name: "organizations",
  record: Organization,
  find: (scope, reference) => Effect.flatMap(Organizations, ({ find }) => find(scope, reference)),
  orgOf: ({ id }) => id
})

export const create = operation("Create an organization", (organization: NewOrganization) => {
  const run = Effect.flatMap(Organizations, ({ create }) => create(organization))
  return organizations.create("create", organization, run, identity)
})

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

/** Returns warnings about input that is valid but may be a mistake. */
export const warningsOf = (
  { notify_below_usd: threshold }: OrganizationSettings,
  { balance_usd: balance }: Organization
): ReadonlyArray<string> =>
  threshold === undefined || threshold === null || balance >= threshold
    ? []
    : [
        `The balance of ${toUsdText(balance)} USD is already below ${toUsdText(threshold)} USD. No event is sent now, only when the balance falls below the threshold again.`
      ]

/**
 * Returns a warning if the new discount sells below a cost that the listed prices cover. `saleStates` have the prices of
 * today.
 */
export const discountWarningsOf = (
  { discount_percent: percent = 0 }: OrganizationSettings,
  saleStates: ReadonlyArray<SaleState>
): ReadonlyArray<string> => {
  const [first, ...others] = percent > 0 ? discountLossesOf(saleStates, [percent]).map(lossText) : []
  if (first === undefined) return []
  const rest =
    others.length === 0
      ? ""
      : ` ${pluralize(others.length, "more price is", "more prices are")} below the cost: run gateway catalog check --discount ${percent}.`
  return [`${first.charAt(0).toUpperCase()}${first.slice(1)}.${rest}`]
}

export const suspend = operation(
  "Suspend an organization: refuse all its keys until it is resumed",
  (reference: string) =>
    organizations.change("suspend", reference, {}, (_, id) =>
      Effect.flatMap(Organizations, ({ suspend }) => suspend(id))
    )
)

export const resume = operation("Resume a suspended organization", (reference: string) =>
  organizations.change("resume", reference, {}, (_, id) => Effect.flatMap(Organizations, ({ resume }) => resume(id)))
)

export const remove = operation(
  "Delete an organization that has no balance and no holds. Its keys are revoked, its name is freed, and its ledger stays",
  (reference: string) =>
    organizations.change("delete", reference, {}, (_, id) =>
      Effect.flatMap(Organizations, (organizations) => organizations.delete(id))
    )
)
