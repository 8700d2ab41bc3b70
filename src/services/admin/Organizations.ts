import { SqlClient } from "@effect/sql"
import type { Fragment } from "@effect/sql/Statement"
import { Context, Data, Effect, Layer, Schema } from "effect"
import { type NanoUsd, toUsdText, zero } from "../../domain/Money.ts"
import { OrgId } from "../../domain/Organization.ts"
import { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { cap, limits } from "../access/Key.ts"
import { readDiscounts } from "../catalog/PriceLists.ts"
import { LedgerAdmin } from "../ledger/LedgerAdmin.ts"
import * as Input from "../resources/ResourceInput.ts"
import { assignmentsOf, describeInputs, type InputDescription, selectList } from "../resources/ResourceInput.ts"
import { TimeOrNull, UnixSeconds, Usd } from "../resources/ResourceRecord.ts"
import { Ids } from "../runtime/Ids.ts"
import { inScope, recordsOf, toLikePattern, toStorable, whenDefined } from "../sql/SqlStatement.ts"

/**
 * The settings of an organization. Request bodies, command options, forms and the audit log derive from them. The database
 * column of a setting has the same name without `_usd`.
 */
export const settings = {
  name: Input.ruledText({
    description: "A unique name",
    label: "Name",
    isRequired: true
  }),
  notify_below_usd: Input.orAbsent(
    { word: "none", means: "never" },
    Input.usd("positive", {
      description: "The balance below which its webhook endpoints receive an event",
      label: "Low-credits webhook (USD)"
    })
  ),
  fit_holds: Input.flag({
    description: "Whether chat requests run with a lower output limit if the balance is too low",
    label: "Lower the output limit of chat requests if the balance is too low"
  }),
  discount_percent: Input.percent(-100, 100, {
    description: "The discount on all prices, in percent; a negative value raises prices",
    label: "Discount (%)"
  }),
  ...cap
} as const

export type OrganizationSettings = Input.Values<typeof settings>

/** Describes the fields of the console's forms. The build copies this to the browser, which cannot import the services. */
export const consoleInputs: { readonly [Resource in "key" | "organization"]: ReadonlyArray<InputDescription> } = {
  key: describeInputs(limits),
  organization: describeInputs(settings)
}

export const Organization = Schema.Struct({
  id: OrgId,
  name: settings.name.record,
  created_at: UnixSeconds,
  suspended: Schema.Boolean,
  deleted_at: Schema.optional(UnixSeconds),
  balance_usd: Usd,
  held_usd: Usd,
  available_usd: Usd,
  fit_holds: settings.fit_holds.record,
  discount_percent: settings.discount_percent.record,
  notify_below_usd: Schema.optional(settings.notify_below_usd.record),
  cap_usd: settings.cap_usd.record,
  cap_period: settings.cap_period.record,
  cap_spent_usd: Schema.NullOr(Usd).annotations({
    description: "Spent in the current period of the cap, or null without a cap."
  }),
  cap_resets_at: TimeOrNull.annotations({ description: "The start of the next period, or null if there is none." })
}).annotations({ identifier: "Organization" })
export type Organization = typeof Organization.Type

class NameTaken extends Data.TaggedError("NameTaken")<{ readonly name: string }> {
  override get message() {
    return `An organization named ${this.name} already exists.`
  }
}

class NameRefused extends Data.TaggedError("NameRefused")<{}> {
  override get message() {
    return "An organization's name has 1 to 100 printable characters, no space at its ends, and starts neither with org_ nor with a dash."
  }
}

class OrganizationNotFound extends Data.TaggedError("OrganizationNotFound")<{ readonly reference: string }> {
  override get message() {
    return `There is no organization ${this.reference}.`
  }
}

class OrganizationInUse extends Data.TaggedError("OrganizationInUse")<{ readonly organization: Organization }> {
  override get message() {
    const { balance_usd, held_usd, id, name } = this.organization
    if (held_usd > 0n)
      return `${name} has ${toUsdText(held_usd)} USD held by running requests. Wait, or cancel its videos.`
    const correction = `gateway credits adjust ${id} ${toUsdText(0n - balance_usd)} --note TEXT`
    return `${name} has a balance of ${toUsdText(balance_usd)} USD. Set it to zero first: ${correction}`
  }
}

export interface NewOrganization {
  readonly name: string
  readonly credits?: NanoUsd | undefined
  readonly discount_percent?: number | undefined
}

interface OrganizationQuery {
  /** The organization's id, or a part of its name. */
  readonly search?: string | undefined
  /** The default is both active and suspended. */
  readonly state?: "active" | "suspended" | "deleted" | undefined
  readonly after?: string | undefined
  readonly limit: number
}

const stateConditions = {
  active: "deleted_at IS NULL AND suspended_at IS NULL",
  suspended: "deleted_at IS NULL AND suspended_at IS NOT NULL",
  deleted: "deleted_at IS NOT NULL"
}

const nameForm = /^(?!org_|-|\s)[^\p{C}\p{Zl}\p{Zp}]{1,100}(?<!\s)$/iu

/** A `reference` is an id or a name. Names cannot look like ids, so no reference is ambiguous. */
export class Organizations extends Context.Tag("gateway/Organizations")<
  Organizations,
  {
    /** Also adds the credits, as a top-up in the same transaction. */
    readonly create: (organization: NewOrganization) => Effect.Effect<Organization, NameTaken | NameRefused>
    readonly list: Effect.Effect<ReadonlyArray<Organization>>
    /** The discounts in percent that organizations have, each once. */
    readonly discounts: Effect.Effect<ReadonlyArray<number>>
    /** Newest first. */
    readonly page: (scope: OrganizationScope, query: OrganizationQuery) => Effect.Effect<ReadonlyArray<Organization>>
    readonly find: (scope: OrganizationScope, reference: string) => Effect.Effect<Organization, OrganizationNotFound>
    /** Like `find`, but locks the organization, so it cannot be deleted until the transaction ends. */
    readonly findLocked: (
      scope: OrganizationScope,
      reference: string
    ) => Effect.Effect<Organization, OrganizationNotFound>
    readonly update: (
      reference: string,
      changes: OrganizationSettings
    ) => Effect.Effect<Organization, OrganizationNotFound | NameTaken | NameRefused>
    /** Revokes the keys and frees the name. Keeps the ledger entries. Reports still find the organization by its id. */
    readonly delete: (reference: string) => Effect.Effect<Organization, OrganizationNotFound | OrganizationInUse>
    /** Like `find`, including deleted organizations. */
    readonly findIncludingDeleted: (
      scope: OrganizationScope,
      reference: string
    ) => Effect.Effect<Organization, OrganizationNotFound>
    /** Makes all API keys of the organization invalid until it is resumed. */
    readonly suspend: (reference: string) => Effect.Effect<Organization, OrganizationNotFound>
    readonly resume: (reference: string) => Effect.Effect<Organization, OrganizationNotFound>
  }
>() {
  static readonly layer = Layer.effect(
    Organizations,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const admin = yield* LedgerAdmin
      const ids = yield* Ids
      const records = recordsOf(Organization)
      const columns = sql.literal(
        `${selectList(["id", ...Object.keys(settings), "created_at", "deleted_at", "balance_usd", "held_usd"])},
        suspended_at IS NOT NULL AS suspended, balance - held AS available_usd,
        spent_of_organization(cap, cap_period, cap_since, cap_spent) AS cap_spent_usd, cap_period_end(cap_period) AS cap_resets_at`
      )

      const insert = (name: string, discountPercent: number) => sql`
        INSERT INTO organizations (id, name, discount_percent) VALUES (${ids.prefixed("org")}, ${name}, ${discountPercent})
        ON CONFLICT (name) DO NOTHING RETURNING ${columns}`
      const selectAny = (scope: OrganizationScope, reference: string) => {
        const text = toStorable(reference).normalize()
        return sql`SELECT ${columns} FROM organizations WHERE ${sql.and([
          sql`(id = ${text} OR name = ${text})`,
          ...inScope(sql, scope, "id")
        ])}`
      }
      const selectLive = (scope: OrganizationScope, reference: string) =>
        sql`${selectAny(scope, reference)} AND deleted_at IS NULL`
      const select = (reference: string) => selectLive(OrganizationScope.all, reference)

      const findOne = Effect.fnUntraced(function* (reference: string, statement: Parameters<typeof records>[0]) {
        const [organization] = yield* records(statement)
        return organization ?? (yield* new OrganizationNotFound({ reference }))
      })

      const create = Effect.fn("Organizations.create")(
        function* (organization: NewOrganization) {
          const { credits = zero, discount_percent: discountPercent = 0 } = organization
          const name = organization.name.normalize()
          if (!nameForm.test(name)) return yield* new NameRefused()
          const [created] = yield* records(insert(name, discountPercent))
          if (created === undefined) return yield* new NameTaken({ name })
          if (credits === zero) return created
          yield* Effect.orDie(admin.topUp({ org: created.id, amount: credits, note: "opening credits" }))
          return yield* Effect.orDie(findOne(created.id, select(created.id)))
        },
        sql.withTransaction,
        Effect.catchTag("SqlError", Effect.die),
        Effect.uninterruptible
      )

      const set = (reference: string, assignment: Fragment) =>
        findOne(
          reference,
          sql`UPDATE organizations SET ${assignment}
            WHERE (id = ${reference} OR name = ${reference.normalize()}) AND deleted_at IS NULL RETURNING ${columns}`
        )

      const update = Effect.fn("Organizations.update")(function* (reference: string, changes: OrganizationSettings) {
        const name = changes.name?.normalize()
        if (name !== undefined && !nameForm.test(name)) return yield* new NameRefused()
        const organization = yield* findOne(reference, select(reference))
        const { id } = organization
        const assignments = assignmentsOf(sql, settings, { ...changes, name })
        if (assignments.length === 0) return organization
        const [updated] = yield* records(sql`
          UPDATE organizations SET ${sql.csv(assignments.map(({ column, value }) => sql`${sql(column)} = ${value}`))}
          WHERE ${sql.and([
            sql`id = ${id} AND deleted_at IS NULL`,
            ...whenDefined(
              name,
              (name) => sql`NOT EXISTS (SELECT FROM organizations WHERE name = ${name} AND id <> ${id})`
            )
          ])}
          RETURNING ${columns}`)
        if (updated !== undefined) return updated
        return yield* name === undefined ? new OrganizationNotFound({ reference }) : new NameTaken({ name })
      })

      const remove = Effect.fn("Organizations.delete")(function* (reference: string) {
        // Waits for transactions that lock the organization. The deletion is a second statement, because only that sees
        // their changes.
        const organization = yield* findOne(reference, sql`${select(reference)} FOR UPDATE`)
        const [deleted] = yield* records(sql`
          WITH deleted AS (
            UPDATE organizations SET deleted_at = now(), suspended_at = coalesce(suspended_at, now()),
              name = name || ' (deleted ' || id || ')'
            WHERE id = ${organization.id} AND deleted_at IS NULL AND balance = 0 AND held = 0 RETURNING *
          ), revoked AS (
            UPDATE api_keys SET revoked_at = now() FROM deleted WHERE org_id = deleted.id AND revoked_at IS NULL
          ), members AS (
            UPDATE operators SET revoked_at = now() FROM deleted WHERE org_id = deleted.id AND operators.revoked_at IS NULL
          )
          SELECT ${columns} FROM deleted`)
        return deleted ?? (yield* new OrganizationInUse({ organization: yield* findOne(reference, select(reference)) }))
      })

      return Organizations.of({
        create,
        list: Effect.withSpan(
          records(sql`SELECT ${columns} FROM organizations WHERE deleted_at IS NULL ORDER BY created_at, id`),
          "Organizations.list"
        ),
        discounts: readDiscounts(sql),
        page: Effect.fn("Organizations.page")(
          (scope: OrganizationScope, { after, limit, search, state }: OrganizationQuery) =>
            records(sql`
            SELECT ${columns} FROM organizations WHERE ${sql.and([
              sql.literal(state === undefined ? "deleted_at IS NULL" : stateConditions[state]),
              ...inScope(sql, scope, "id"),
              ...whenDefined(search, (text) => sql`(id = ${toStorable(text)} OR name ILIKE ${toLikePattern(text)})`),
              ...whenDefined(after, (id) => sql`id < ${toStorable(id)}`)
            ])}
            ORDER BY id DESC LIMIT ${limit}`)
        ),
        update,
        delete: remove,
        findIncludingDeleted: Effect.fn("Organizations.findAny")((scope: OrganizationScope, reference: string) =>
          findOne(reference, selectAny(scope, reference))
        ),
        find: Effect.fn("Organizations.find")((scope: OrganizationScope, reference: string) =>
          findOne(reference, selectLive(scope, reference))
        ),
        findLocked: Effect.fn("Organizations.findLocked")((scope: OrganizationScope, reference: string) =>
          findOne(reference, sql`${selectLive(scope, reference)} FOR KEY SHARE`)
        ),
        suspend: Effect.fn("Organizations.suspend")((reference: string) =>
          set(reference, sql`suspended_at = coalesce(suspended_at, now())`)
        ),
        resume: Effect.fn("Organizations.resume")((reference: string) => set(reference, sql`suspended_at = NULL`))
      })
    })
  )
}
