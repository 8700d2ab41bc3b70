import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Schema } from "effect"
import type { KeyId } from "../../domain/ApiKey.ts"
import { OrgId } from "../../domain/Organization.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { inScope, rowsOf } from "../sql/SqlStatement.ts"
import { CurrentActor } from "./Actor.ts"

/** Names by the id of an organization or key, including deleted ones. */
export type NameMap = ReadonlyMap<string, string>

interface OwnerIds {
  readonly orgId: OrgId
  readonly keyId?: KeyId | null
}

const NameRow = Schema.Struct({ id: Schema.String, name: Schema.String })

export class Names extends Context.Tag("gateway/Names")<
  Names,
  { readonly of: (scope: OrganizationScope, owned: ReadonlyArray<OwnerIds>) => Effect.Effect<NameMap> }
>() {
  static readonly layer = Layer.effect(
    Names,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const readNames = rowsOf(NameRow)
      return Names.of({
        of: Effect.fn("Names.of")(function* (scope: OrganizationScope, owned: ReadonlyArray<OwnerIds>) {
          if (owned.length === 0) return new Map()
          const organizations = [...new Set(owned.map(({ orgId }) => orgId))]
          const keys = [...new Set(owned.flatMap(({ keyId }) => keyId ?? []))]
          const names = yield* readNames(sql`
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

interface OrganizationRecord {
  readonly org: string
}

/** Adds the name of each record's organization, or null if the actor may not read it. */
export const nameAll = <Record extends OrganizationRecord>(records: ReadonlyArray<Record>) =>
  Effect.gen(function* () {
    const { scope } = yield* CurrentActor
    const names = yield* Names
    const nameMap = yield* names.of(
      scope,
      records.map(({ org }) => ({ orgId: OrgId.make(org) }))
    )
    return records.map((record) => ({ ...record, org_name: nameMap.get(record.org) ?? null }))
  })

export const nameOne = <Record extends OrganizationRecord>(record: Record) =>
  Effect.map(nameAll([record]), ([named = { ...record, org_name: null }]) => named)
