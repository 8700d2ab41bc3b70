import { hash } from "node:crypto"
import { SqlClient } from "@effect/sql"
import type { Fragment } from "@effect/sql/Statement"
import { Context, Data, Effect, Layer, Redacted, Schema } from "effect"
import { CapPeriod, KeyId, keyPrefix, Scope } from "../../domain/ApiKey.ts"
import { type NanoUsd, NanoUsdFromRow } from "../../domain/Money.ts"
import { OrgId } from "../../domain/Organization.ts"
import { Ids } from "../runtime/Ids.ts"
import { listing } from "../sql/Listing.ts"
import { containing, equals, rowsOf, storable, whenDefined } from "../sql/Statement.ts"

/** `spent` is the settled spend of the running cap period; without a cap, of all time. */
export class ApiKey extends Schema.Class<ApiKey>("ApiKey")({
  id: KeyId,
  orgId: OrgId,
  orgName: Schema.String,
  name: Schema.String,
  /** The first characters of the secret; null for keys older than hints. */
  hint: Schema.NullOr(Schema.String),
  scopes: Schema.NullOr(Schema.Array(Scope)),
  rpm: Schema.NullOr(Schema.Number),
  cap: Schema.NullOr(NanoUsdFromRow),
  capPeriod: Schema.NullOr(CapPeriod),
  spent: NanoUsdFromRow,
  createdAt: Schema.DateFromSelf,
  expiresAt: Schema.NullOr(Schema.DateFromSelf),
  revokedAt: Schema.NullOr(Schema.DateFromSelf),
  /** To about a minute. */
  lastUsedAt: Schema.NullOr(Schema.DateFromSelf)
}) {}

export interface Cap {
  readonly amount: NanoUsd
  readonly period: CapPeriod
}

/** Null removes a limit, undefined keeps it. */
export interface KeyChanges {
  readonly name?: string | undefined
  readonly scopes?: ReadonlyArray<Scope> | null | undefined
  readonly rpm?: number | null | undefined
  readonly cap?: Cap | null | undefined
  readonly expiresAt?: Date | null | undefined
}

export interface KeyQuery {
  readonly org?: OrgId | undefined
  /** An id, the beginning of a secret, or a part of a name. */
  readonly search?: string | undefined
  /** `live`: neither revoked nor expired. */
  readonly state?: "live" | "revoked" | undefined
  readonly after?: string | undefined
  readonly limit: number
}

export interface IssuedKey {
  readonly record: ApiKey
  readonly secret: Redacted.Redacted
}

export class KeyNotFound extends Data.TaggedError("KeyNotFound")<{ readonly id: string }> {
  override get message() {
    return `There is no key with the id ${this.id}.`
  }
}

export class KeyRevoked extends Data.TaggedError("KeyRevoked")<{ readonly id: string }> {
  override get message() {
    return `The key ${this.id} is revoked.`
  }
}

/** Hexadecimal; 256 random bits need neither salt nor a slow hash. */
export const secretHash = (secret: string): string => hash("sha256", secret, "hex")

const states = {
  live: "revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())",
  revoked: "revoked_at IS NOT NULL"
}

const hintOf = (secret: string) => secret.slice(keyPrefix.length, keyPrefix.length + 8)

const searching = (sql: SqlClient.SqlClient, search: string) => {
  const text = storable(search)
  const hint = text.startsWith(keyPrefix) ? hintOf(text) : text
  return sql`(id = ${text} OR hint = ${hint} OR name ILIKE ${containing(text)})`
}

export class ApiKeys extends Context.Tag("gateway/ApiKeys")<
  ApiKeys,
  {
    readonly create: (key: KeyChanges & { readonly org: OrgId }) => Effect.Effect<IssuedKey>
    /** In order of creation, revoked ones included. */
    readonly list: (org: OrgId) => Effect.Effect<ReadonlyArray<ApiKey>>
    /** Newest first. */
    readonly page: (query: KeyQuery) => Effect.Effect<ReadonlyArray<ApiKey>>
    readonly find: (id: string) => Effect.Effect<ApiKey, KeyNotFound>
    readonly update: (id: string, changes: KeyChanges) => Effect.Effect<ApiKey, KeyNotFound | KeyRevoked>
    readonly revoke: (id: string) => Effect.Effect<ApiKey, KeyNotFound>
    /** Replaces the secret at once. */
    readonly reissue: (id: string) => Effect.Effect<IssuedKey, KeyNotFound | KeyRevoked>
  }
>() {
  static readonly layer = Layer.effect(
    ApiKeys,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Ids
      const rows = rowsOf(ApiKey)
      const columns =
        sql.literal(`id, org_id, name, hint, scopes, rpm, cap, cap_period, created_at, expires_at, revoked_at,
        (SELECT organizations.name FROM organizations WHERE organizations.id = org_id) AS org_name,
        (SELECT last_used_at FROM key_uses WHERE key_id = api_keys.id) AS last_used_at,
        (SELECT coalesce(sum(key_spend.spent), 0) FROM key_spend
          WHERE key_id = api_keys.id AND day >= cap_period_start(coalesce(cap_period, 'total'))) AS spent`)

      const find = Effect.fn("ApiKeys.find")(function* (id: string) {
        const [found] = yield* rows(sql`SELECT ${columns} FROM api_keys WHERE id = ${storable(id)}`)
        return found ?? (yield* new KeyNotFound({ id }))
      })

      const changeLive = Effect.fnUntraced(function* (id: string, assignments: ReadonlyArray<Fragment>) {
        const [changed] = yield* rows(sql`
          UPDATE api_keys SET ${sql.csv(assignments)}
          WHERE id = ${id} AND revoked_at IS NULL RETURNING ${columns}`)
        if (changed !== undefined) return changed
        yield* find(id)
        return yield* new KeyRevoked({ id })
      })

      const assignments = ({ cap, expiresAt, name, rpm, scopes }: KeyChanges) => [
        ...equals(sql, { name, rpm, expires_at: expiresAt }),
        ...whenDefined(scopes, (scopes) => sql`scopes = ${scopes}::text[]`),
        ...whenDefined(cap, (cap) => sql`cap = ${cap?.amount ?? null}, cap_period = ${cap?.period ?? null}`)
      ]

      const create = Effect.fn("ApiKeys.create")(function* (key: KeyChanges & { readonly org: OrgId }) {
        const { cap, expiresAt = null, name = "", org, rpm = null, scopes = null } = key
        const secret = ids.secret(keyPrefix)
        const [record] = yield* rows(sql`
          INSERT INTO api_keys (id, org_id, name, hint, hash, scopes, rpm, cap, cap_period, expires_at)
          VALUES (${ids.prefixed("key")}, ${org}, ${name}, ${hintOf(secret)}, decode(${secretHash(secret)}, 'hex'), ${scopes}::text[], ${rpm},
            ${cap?.amount ?? null}, ${cap?.period ?? null}, ${expiresAt})
          RETURNING ${columns}`)
        return { record: record ?? (yield* Effect.dieMessage("no key was made")), secret: Redacted.make(secret) }
      })

      return ApiKeys.of({
        create,
        find,
        list: Effect.fn("ApiKeys.list")((org: OrgId) =>
          rows(sql`SELECT ${columns} FROM api_keys WHERE org_id = ${org} ORDER BY created_at, id`)
        ),
        page: Effect.fn("ApiKeys.page")(({ after, limit, org, search, state }: KeyQuery) =>
          rows(sql`
            SELECT ${columns} FROM api_keys ${listing(sql, {
              equal: { org_id: org },
              where: [
                ...whenDefined(state, (state) => sql.literal(states[state])),
                ...whenDefined(search, (search) => searching(sql, search)),
                ...whenDefined(after, (id) => sql`id < ${storable(id)}`)
              ],
              by: ["id"],
              limit
            })}`)
        ),
        update: Effect.fn("ApiKeys.update")(function* (id: string, changes: KeyChanges) {
          const wanted = assignments(changes)
          return yield* changeLive(id, wanted.length === 0 ? [sql`name = name`] : wanted)
        }),
        revoke: Effect.fn("ApiKeys.revoke")(function* (id: string) {
          const [revoked] = yield* rows(sql`
            UPDATE api_keys SET revoked_at = coalesce(revoked_at, now()) WHERE id = ${id} RETURNING ${columns}`)
          return revoked ?? (yield* new KeyNotFound({ id }))
        }),
        reissue: Effect.fn("ApiKeys.reissue")(function* (id: string) {
          const secret = ids.secret(keyPrefix)
          const record = yield* changeLive(id, [
            sql`hash = decode(${secretHash(secret)}, 'hex')`,
            sql`hint = ${hintOf(secret)}`
          ])
          return { record, secret: Redacted.make(secret) }
        })
      })
    })
  )
}
