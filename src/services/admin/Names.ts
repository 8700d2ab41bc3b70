import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Schema } from "effect"
import type { KeyId } from "../../domain/ApiKey.ts"
import { OrgId } from "../../domain/Organization.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { inScope, rowsOf } from "../sql/Statement.ts"
import { CurrentActor } from "./Actor.ts"

/** By the id of an organization or a key; deleted ones have theirs too. */
export type NameMap = ReadonlyMap<string, string>

interface Owned {
  readonly orgId: OrgId
  readonly keyId?: KeyId | null
}

const Named = Schema.Struct({ id: Schema.String, name: Schema.String })

export class Names extends Context.Tag("gateway/Names")<
  Names,
  { readonly of: (scope: OrganizationScope, owned: ReadonlyArray<Owned>) => Effect.Effect<NameMap> }
>() {
  static readonly layer = Layer.effect(
    Names,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const found = rowsOf(Named)
      return Names.of({
        of: Effect.fn("Names.of")(function* (scope: OrganizationScope, owned: ReadonlyArray<Owned>) {
          if (owned.length === 0) return new Map()
          const organizations = [...new Set(owned.map(({ orgId }) => orgId))]
          const keys = [...new Set(owned.flatMap(({ keyId }) => keyId ?? []))]
          const names = yield* found(sql`
            SELECT id, name FROM organizations
            WHERE ${sql.and([sql`id = ANY (${organizations}::text[])`, ...inScope(sql, scope, "id")])}
            UNION ALL SELECT id, name FROM api_keys
            WHERE ${sql.and([sql`id = ANY (${keys}::text[]) AND name IS NOT NULL`, ...inScope(sql, scope)])}`)
          return new Map(names.map(({ id, name }) => [id, name]))
        })
      })
    })
  )
}

interface OfOrganization {
  readonly org: string
}

/** Adds the name of each record's organization; null if the actor may not know it. */
export const nameAll = <Record extends OfOrganization>(records: ReadonlyArray<Record>) =>
  Effect.gen(function* () {
    const { scope } = yield* CurrentActor
    const names = yield* Names
    const known = yield* names.of(
      scope,
      records.map(({ org }) => ({ orgId: OrgId.make(org) }))
    )
    return records.map((record) => ({ ...record, org_name: known.get(record.org) ?? null }))
  })

export const nameOne = <Record extends OfOrganization>(record: Record) =>
  Effect.map(nameAll([record]), ([named = { ...record, org_name: null }]) => named)
