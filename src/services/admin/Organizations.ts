import { SqlClient } from "@effect/sql"
import type { Fragment } from "@effect/sql/Statement"
import { Context, Data, Effect, Layer } from "effect"
import { type NanoUsd, toUsdText, zero } from "../../domain/Money.ts"
import { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { capResetsAt, capSpent } from "../access/Cap.ts"
import { LedgerAdmin } from "../ledger/LedgerAdmin.ts"
import { assignmentsOf, selectList } from "../resources/Input.ts"
import { Ids } from "../runtime/Ids.ts"
import { inScope, recordsOf, toLikePattern, toStorable, whenDefined } from "../sql/Statement.ts"
import { Organization, type OrganizationSettings, settings } from "./Organization.ts"

export class NameTaken extends Data.TaggedError("NameTaken")<{ readonly name: string }> {
  override get message() {
    return `An organization named ${this.name} exists already.`
  }
}

export class NameRefused extends Data.TaggedError("NameRefused")<{}> {
  override get message() {
    return "An organization's name has 1 to 100 printable characters, no space at its ends, and begins neither with org_ nor with a dash."
  }
}

export class OrganizationNotFound extends Data.TaggedError("OrganizationNotFound")<{ readonly reference: string }> {
  override get message() {
    return `There is no organization ${this.reference}.`
  }
}

/** What it has, or still runs, must be settled first. */
export class OrganizationInUse extends Data.TaggedError("OrganizationInUse")<{ readonly organization: Organization }> {
  override get message() {
    const { balance_usd, held_usd, id, name } = this.organization
    if (held_usd > 0n)
      return `${name} has ${toUsdText(held_usd)} USD held by requests that still run: wait, or cancel its videos.`
    const correction = `gateway credits adjust ${id} ${toUsdText(0n - balance_usd)} --note TEXT`
    return `${name} has a balance of ${toUsdText(balance_usd)} USD; take it to zero with ${correction}.`
  }
}

interface OrganizationQuery {
  /** An id, or a part of a name. */
  readonly search?: string | undefined
  /** Undefined: all that are not deleted. */
  readonly state?: "active" | "suspended" | "deleted" | undefined
  readonly after?: string | undefined
  readonly limit: number
}

const states = {
  active: "deleted_at IS NULL AND suspended_at IS NULL",
  suspended: "deleted_at IS NULL AND suspended_at IS NOT NULL",
  deleted: "deleted_at IS NOT NULL"
}

const nameRule = /^(?!org_|-|\s)[^\p{C}\p{Zl}\p{Zp}]{1,100}(?<!\s)$/iu

/** `reference` is an id or a name; no name looks like an id. */
export class Organizations extends Context.Tag("gateway/Organizations")<
  Organizations,
  {
    /** Credits are topped up in the same transaction. */
    readonly create: (organization: {
      readonly name: string
      readonly credits?: NanoUsd | undefined
    }) => Effect.Effect<Organization, NameTaken | NameRefused>
    readonly list: Effect.Effect<ReadonlyArray<Organization>>
    /** Newest first. */
    readonly page: (scope: OrganizationScope, query: OrganizationQuery) => Effect.Effect<ReadonlyArray<Organization>>
    readonly find: (scope: OrganizationScope, reference: string) => Effect.Effect<Organization, OrganizationNotFound>
    /** As `find`; it cannot be deleted before the transaction ends. */
    readonly keep: (scope: OrganizationScope, reference: string) => Effect.Effect<Organization, OrganizationNotFound>
    readonly update: (
      reference: string,
      changes: OrganizationSettings
    ) => Effect.Effect<Organization, OrganizationNotFound | NameTaken | NameRefused>
    /** Revokes its keys for good and frees its name. Its entries stay, and nothing but reports finds it by its id. */
    readonly delete: (reference: string) => Effect.Effect<Organization, OrganizationNotFound | OrganizationInUse>
    /** As `find`, of deleted ones too. */
    readonly findAny: (scope: OrganizationScope, reference: string) => Effect.Effect<Organization, OrganizationNotFound>
    /** Refuses every key until it is resumed. */
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
        ${capSpent} AS cap_spent_usd, ${capResetsAt} AS cap_resets_at`
      )

      const insert = (name: string) => sql`
        INSERT INTO organizations (id, name) VALUES (${ids.prefixed("org")}, ${name})
        ON CONFLICT (name) DO NOTHING RETURNING ${columns}`
      const selectAny = (scope: OrganizationScope, reference: string) => {
        const known = toStorable(reference).normalize()
        return sql`SELECT ${columns} FROM organizations WHERE ${sql.and([
          sql`(id = ${known} OR name = ${known})`,
          ...inScope(sql, scope, "id")
        ])}`
      }
      const selectLive = (scope: OrganizationScope, reference: string) =>
        sql`${selectAny(scope, reference)} AND deleted_at IS NULL`
      const select = (reference: string) => selectLive(OrganizationScope.all, reference)

      const one = Effect.fnUntraced(function* (reference: string, statement: Parameters<typeof records>[0]) {
        const [found] = yield* records(statement)
        return found ?? (yield* new OrganizationNotFound({ reference }))
      })

      const create = Effect.fn("Organizations.create")(
        function* (organization: { readonly name: string; readonly credits?: NanoUsd | undefined }) {
          const { credits = zero } = organization
          const name = organization.name.normalize()
          if (!nameRule.test(name)) return yield* new NameRefused()
          const [created] = yield* records(insert(name))
          if (created === undefined) return yield* new NameTaken({ name })
          if (credits === zero) return created
          yield* Effect.orDie(admin.topUp({ org: created.id, amount: credits, note: "opening credits" }))
          return yield* Effect.orDie(one(created.id, select(created.id)))
        },
        sql.withTransaction,
        Effect.catchTag("SqlError", Effect.die),
        Effect.uninterruptible
      )

      const set = (reference: string, assignment: Fragment) =>
        one(
          reference,
          sql`UPDATE organizations SET ${assignment}
            WHERE (id = ${reference} OR name = ${reference.normalize()}) AND deleted_at IS NULL RETURNING ${columns}`
        )

      const update = Effect.fn("Organizations.update")(function* (reference: string, changes: OrganizationSettings) {
        const name = changes.name?.normalize()
        if (name !== undefined && !nameRule.test(name)) return yield* new NameRefused()
        const found = yield* one(reference, select(reference))
        const { id } = found
        const changed = assignmentsOf(sql, settings, { ...changes, name })
        if (changed.length === 0) return found
        const [updated] = yield* records(sql`
          UPDATE organizations SET ${sql.csv(changed.map(({ column, value }) => sql`${sql(column)} = ${value}`))}
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
        // Waits for those who keep it, in a statement of its own: the next one sees what they have done.
        const organization = yield* one(reference, sql`${select(reference)} FOR UPDATE`)
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
        return deleted ?? (yield* new OrganizationInUse({ organization: yield* one(reference, select(reference)) }))
      })

      return Organizations.of({
        create,
        list: Effect.withSpan(
          records(sql`SELECT ${columns} FROM organizations WHERE deleted_at IS NULL ORDER BY created_at, id`),
          "Organizations.list"
        ),
        page: Effect.fn("Organizations.page")(
          (scope: OrganizationScope, { after, limit, search, state }: OrganizationQuery) =>
            records(sql`
            SELECT ${columns} FROM organizations WHERE ${sql.and([
              sql.literal(state === undefined ? "deleted_at IS NULL" : states[state]),
              ...inScope(sql, scope, "id"),
              ...whenDefined(search, (text) => sql`(id = ${toStorable(text)} OR name ILIKE ${toLikePattern(text)})`),
              ...whenDefined(after, (id) => sql`id < ${toStorable(id)}`)
            ])}
            ORDER BY id DESC LIMIT ${limit}`)
        ),
        update,
        delete: remove,
        findAny: Effect.fn("Organizations.findAny")((scope: OrganizationScope, reference: string) =>
          one(reference, selectAny(scope, reference))
        ),
        find: Effect.fn("Organizations.find")((scope: OrganizationScope, reference: string) =>
          one(reference, selectLive(scope, reference))
        ),
        keep: Effect.fn("Organizations.keep")((scope: OrganizationScope, reference: string) =>
          one(reference, sql`${selectLive(scope, reference)} FOR KEY SHARE`)
        ),
        suspend: Effect.fn("Organizations.suspend")((reference: string) =>
          set(reference, sql`suspended_at = coalesce(suspended_at, now())`)
        ),
        resume: Effect.fn("Organizations.resume")((reference: string) => set(reference, sql`suspended_at = NULL`))
      })
    })
  )
}
