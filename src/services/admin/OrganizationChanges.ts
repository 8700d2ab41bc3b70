import { Effect, Schema } from "effect"
import type { NanoUsd } from "../../domain/Money.ts"
import { available } from "../../domain/Organization.ts"
import { type Organization, type OrganizationNotFound, Organizations } from "../access/Organizations.ts"
import { UnixSeconds, Usd } from "../resources/Record.ts"
import { Audit } from "./Audit.ts"

export const OrganizationRecord = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  created_at: UnixSeconds,
  suspended: Schema.Boolean,
  deleted_at: Schema.optional(UnixSeconds),
  balance_usd: Usd,
  held_usd: Usd,
  available_usd: Usd,
  fit_holds: Schema.Boolean,
  notify_below_usd: Schema.optional(Usd)
}).annotations({ identifier: "Organization" })
export type OrganizationRecord = typeof OrganizationRecord.Type

export const organizationRecord = (organization: Organization): OrganizationRecord => ({
  id: organization.id,
  name: organization.name,
  created_at: organization.createdAt,
  suspended: organization.suspendedAt !== null,
  ...(organization.deletedAt !== null && { deleted_at: organization.deletedAt }),
  balance_usd: organization.balance,
  held_usd: organization.held,
  available_usd: available(organization),
  fit_holds: organization.fitHolds,
  ...(organization.notifyBelow !== null && { notify_below_usd: organization.notifyBelow })
})

const common = {
  record: OrganizationRecord,
  recordOf: organizationRecord,
  targetOf: ({ id }: OrganizationRecord) => id,
  orgOf: ({ id }: OrganizationRecord) => id
}

export const createOrganization = (given: { readonly name: string; readonly credits?: NanoUsd | undefined }) =>
  Effect.gen(function* () {
    const audit = yield* Audit
    const { create } = yield* Organizations
    return yield* audit.create({ ...common, action: "organizations.create", input: given, run: create(given) })
  })

const changeOne = <E>(
  action: string,
  reference: string,
  input: unknown,
  run: (
    organizations: typeof Organizations.Service,
    id: string
  ) => Effect.Effect<Organization, E | OrganizationNotFound>
) =>
  Effect.gen(function* () {
    const { change } = yield* Audit
    const organizations = yield* Organizations
    return yield* change({
      ...common,
      action: `organizations.${action}`,
      input,
      target: reference,
      find: (reference) => Effect.map(organizations.find(reference), organizationRecord),
      run: (id) => run(organizations, id)
    })
  })

export const suspendOrganization = (reference: string) =>
  changeOne("suspend", reference, {}, ({ suspend }, id) => suspend(id))

export const resumeOrganization = (reference: string) =>
  changeOne("resume", reference, {}, ({ resume }, id) => resume(id))

export const deleteOrganization = (reference: string) =>
  changeOne("delete", reference, {}, (organizations, id) => organizations.delete(id))

/** Undefined keeps the value; null: no event for a low balance. */
export interface OrganizationChanges {
  readonly name?: string | undefined
  readonly notifyBelow?: NanoUsd | null | undefined
  readonly fitHolds?: boolean | undefined
}

export const updateOrganization = (reference: string, changes: OrganizationChanges) =>
  changeOne("update", reference, changes, ({ find, fitHolds, notifyBelow, rename }, id) =>
    Effect.gen(function* () {
      if (changes.name !== undefined) yield* rename(id, changes.name)
      if (changes.notifyBelow !== undefined) yield* notifyBelow(id, changes.notifyBelow)
      if (changes.fitHolds !== undefined) yield* fitHolds(id, changes.fitHolds)
      return yield* find(id)
    })
  )
