import { hash } from "node:crypto"
import { SqlClient } from "@effect/sql"
import type { Fragment } from "@effect/sql/Statement"
import { Context, Data, Effect, Layer, Redacted } from "effect"
import { keyPrefix } from "../../domain/ApiKey.ts"
import type { OrgId } from "../../domain/Organization.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { assignmentsOf, selectList } from "../resources/ResourceInput.ts"
import { Ids } from "../runtime/Ids.ts"
import { listing } from "../sql/Listing.ts"
import { inScope, lockName, recordsOf, toLikePattern, toStorable, whenDefined } from "../sql/SqlStatement.ts"
import { Key, type KeyLimits, limits } from "./Key.ts"

interface KeyQuery {
  readonly org?: OrgId | undefined
  /** An id, the start of a secret, or part of a name. */
  readonly search?: string | undefined
  readonly name?: string | undefined
  /** `live`: neither revoked nor expired. */
  readonly state?: "live" | "revoked" | undefined
  readonly after?: string | undefined
  readonly limit: number
}

export interface IssuedKey {
  readonly record: Key
  readonly secret: Redacted.Redacted
}

class KeyNotFound extends Data.TaggedError("KeyNotFound")<{ readonly id: string }> {
  override get message() {
    return `There is no key with the id ${this.id}.`
  }
}

class KeyRevoked extends Data.TaggedError("KeyRevoked")<{ readonly id: string }> {
  override get message() {
    return `The key ${this.id} is revoked.`
  }
}

/** Per organization. Revoked and expired keys do not count. */
const maxLiveKeys = 1_000

class TooManyKeys extends Data.TaggedError("TooManyKeys")<{}> {
  override get message() {
    return `An organization may have ${maxLiveKeys} keys: revoke one of them first.`
  }
}

/** Returns a hexadecimal hash. 256 random bits need neither salt nor a slow hash. */
export const secretHash = (secret: string): string => hash("sha256", secret, "hex")

const states = {
  live: "revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())",
  revoked: "revoked_at IS NOT NULL"
}

const hintOf = (secret: string) => secret.slice(keyPrefix.length, keyPrefix.length + 8)

const matchSearch = (sql: SqlClient.SqlClient, search: string) => {
  const text = toStorable(search)
  const hint = text.startsWith(keyPrefix) ? hintOf(text) : text
  return sql`(id = ${text} OR hint = ${hint} OR (previous_hint = ${hint} AND previous_expires_at > now())
    OR name ILIKE ${toLikePattern(text)})`
}

export class ApiKeys extends Context.Tag("gateway/ApiKeys")<
  ApiKeys,
  {
    readonly create: (key: KeyLimits & { readonly org: OrgId }) => Effect.Effect<IssuedKey, TooManyKeys>
    /** Returns all keys in order of creation, including revoked ones. */
    readonly list: (org: OrgId) => Effect.Effect<ReadonlyArray<Key>>
    /** Newest first. */
    readonly page: (scope: OrganizationScope, query: KeyQuery) => Effect.Effect<ReadonlyArray<Key>>
    readonly find: (scope: OrganizationScope, id: string) => Effect.Effect<Key, KeyNotFound>
    readonly update: (
      scope: OrganizationScope,
      id: string,
      changes: KeyLimits
    ) => Effect.Effect<Key, KeyNotFound | KeyRevoked | TooManyKeys>
    readonly revoke: (scope: OrganizationScope, id: string) => Effect.Effect<Key, KeyNotFound>
    /**
     * Returns the key with a new secret. The old one stays valid for `graceSeconds`, by default 0. One from before it,
     * still in its own grace period, expires now.
     */
    readonly reissue: (
      scope: OrganizationScope,
      id: string,
      graceSeconds?: number
    ) => Effect.Effect<IssuedKey, KeyNotFound | KeyRevoked>
  }
>() {
  static readonly layer = Layer.effect(
    ApiKeys,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Ids
      const records = recordsOf(Key)
      const columns =
        sql.literal(`${selectList(["id", ...Object.keys(limits), "hint", "created_at", "revoked_at"])}, org_id AS org,
        CASE WHEN revoked_at IS NULL AND previous_expires_at > now() THEN least(previous_expires_at, expires_at) END AS previous_expires_at,
        (SELECT organizations.name FROM organizations WHERE organizations.id = org_id) AS org_name,
        (SELECT last_used_at FROM key_uses WHERE key_id = api_keys.id) AS last_used_at,
        spent_of_key(id, coalesce(cap_period, 'total')) AS spent_usd`)

      const matchKey = (scope: OrganizationScope, id: string) => sql.and([sql`id = ${id}`, ...inScope(sql, scope)])

      /**
       * Returns SQL: whether the organization may have one more live key. Call `lockKeys` first, in the same transaction.
       */
      const hasRoom = (org: OrgId) => sql`(
        SELECT count(*) FROM api_keys AS other WHERE org_id = ${org} AND ${sql.literal(states.live)}
      ) < ${maxLiveKeys}`
      const lockKeys = (org: OrgId) => lockName(sql, `keys ${org}`)

      const find = Effect.fn("ApiKeys.find")(function* (scope: OrganizationScope, id: string) {
        const [found] = yield* records(sql`SELECT ${columns} FROM api_keys WHERE ${matchKey(scope, toStorable(id))}`)
        return found ?? (yield* new KeyNotFound({ id }))
      })

      const changeLive = Effect.fnUntraced(function* (
        scope: OrganizationScope,
        id: string,
        assignments: ReadonlyArray<Fragment>
      ) {
        const [changedKey] = yield* records(sql`
          UPDATE api_keys SET ${sql.csv(assignments)}
          WHERE ${matchKey(scope, id)} AND revoked_at IS NULL RETURNING ${columns}`)
        if (changedKey !== undefined) return changedKey
        yield* find(scope, id)
        return yield* new KeyRevoked({ id })
      })

      /** Fails if the key has expired and the organization has no room for it: a new expiry would reactivate it. */
      const requireRoomForExpired = Effect.fnUntraced(
        function* ({ id, org }: Key) {
          yield* lockKeys(org)
          const [exceedingKey] = yield* sql`
          SELECT FROM api_keys WHERE id = ${id} AND revoked_at IS NULL AND expires_at <= now() AND NOT ${hasRoom(org)}`
          if (exceedingKey !== undefined) return yield* new TooManyKeys()
        },
        Effect.catchTag("SqlError", Effect.die)
      )

      const create = Effect.fn("ApiKeys.create")(function* ({ org, ...values }: KeyLimits & { readonly org: OrgId }) {
        const secret = ids.secret(keyPrefix)
        const fields = [
          ...assignmentsOf(sql, limits, values),
          { column: "id", value: sql`${ids.prefixed("key")}` },
          { column: "org_id", value: sql`${org}` },
          { column: "hint", value: sql`${hintOf(secret)}` },
          { column: "hash", value: sql`decode(${secretHash(secret)}, 'hex')` }
        ]
        yield* lockKeys(org)
        const [record] = yield* records(sql`
          INSERT INTO api_keys (${sql.csv(fields.map(({ column }) => column))})
          SELECT ${sql.csv(fields.map(({ value }) => value))} WHERE ${hasRoom(org)} RETURNING ${columns}`)
        return { record: record ?? (yield* new TooManyKeys()), secret: Redacted.make(secret) }
      })

      return ApiKeys.of({
        create,
        find,
        list: Effect.fn("ApiKeys.list")((org: OrgId) =>
          records(sql`SELECT ${columns} FROM api_keys WHERE org_id = ${org} ORDER BY created_at, id`)
        ),
        page: Effect.fn("ApiKeys.page")(
          (scope: OrganizationScope, { after, limit, name, org, search, state }: KeyQuery) =>
            records(sql`
            SELECT ${columns} FROM api_keys ${listing(sql, {
              equal: { org_id: scope.narrow(org) },
              where: [
                ...whenDefined(state, (state) => sql.literal(states[state])),
                ...whenDefined(name, (name) => sql`name = ${toStorable(name)}`),
                ...whenDefined(search, (search) => matchSearch(sql, search)),
                ...whenDefined(after, (id) => sql`id < ${toStorable(id)}`)
              ],
              by: ["id"],
              limit
            })}`)
        ),
        update: Effect.fn("ApiKeys.update")(function* (scope: OrganizationScope, id: string, changes: KeyLimits) {
          if (changes.expires_at !== undefined) yield* requireRoomForExpired(yield* find(scope, id))
          const assignments = assignmentsOf(sql, limits, changes).map(
            ({ column, value }) => sql`${sql(column)} = ${value}`
          )
          return yield* changeLive(scope, id, assignments.length === 0 ? [sql`name = name`] : assignments)
        }),
        revoke: Effect.fn("ApiKeys.revoke")(function* (scope: OrganizationScope, id: string) {
          const [revokedKey] = yield* records(sql`
            UPDATE api_keys SET revoked_at = coalesce(revoked_at, now())
            WHERE ${matchKey(scope, id)} RETURNING ${columns}`)
          return revokedKey ?? (yield* new KeyNotFound({ id }))
        }),
        reissue: Effect.fn("ApiKeys.reissue")(function* (scope: OrganizationScope, id: string, graceSeconds?: number) {
          const secret = ids.secret(keyPrefix)
          const hasGrace = graceSeconds !== undefined
          const record = yield* changeLive(scope, id, [
            hasGrace ? sql`previous_hash = hash` : sql`previous_hash = NULL`,
            hasGrace ? sql`previous_hint = hint` : sql`previous_hint = NULL`,
            sql`previous_expires_at = now() + ${graceSeconds ?? null}::integer * interval '1 second'`,
            sql`hash = decode(${secretHash(secret)}, 'hex')`,
            sql`hint = ${hintOf(secret)}`
          ])
          return { record, secret: Redacted.make(secret) }
        })
      })
    })
  )
}
