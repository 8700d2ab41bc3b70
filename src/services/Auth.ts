import { BlockList } from "node:net"
import { SqlClient } from "@effect/sql"
import { Clock, Context, Effect, Layer, Option, Redacted, Ref, Schema } from "effect"
import ipaddr from "ipaddr.js"
import { type Caller, KeyId, keyPrefix, Scope } from "../domain/ApiKey.ts"
import { InvalidApiKey, MissingApiKey } from "../domain/Failure.ts"
import { OrgId } from "../domain/Organization.ts"
import { keyHash } from "./KeyHash.ts"
import * as KeyUses from "./KeyUses.ts"
import * as NaturalBatch from "./NaturalBatch.ts"

const trustForMillis = 900

/**
 * Keys and the address block list, remembered in memory and believed for less than a second: older memories are
 * checked against one revision number of the database, so a revoked key is dead everywhere within 1 s.
 */
export class Auth extends Context.Tag("gateway/Auth")<
  Auth,
  {
    readonly authenticate: (
      presented: Option.Option<Redacted.Redacted>
    ) => Effect.Effect<Caller, MissingApiKey | InvalidApiKey>
    readonly isBlocked: (address: string) => Effect.Effect<boolean>
  }
>() {
  static readonly layer = Layer.scoped(
    Auth,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const noteUse = yield* KeyUses.make(sql)
      const keys = new Map<string, KeyRow>()
      let blocked: BlockList | undefined
      let revision: string | undefined
      const checkedAt = yield* Ref.make(Number.NEGATIVE_INFINITY)

      const refresh = Effect.fnUntraced(function* () {
        const startedAt = yield* Clock.currentTimeMillis
        const [found] = yield* Effect.flatMap(sql`SELECT revision FROM access_revision`, decodeRevision)
        if (found.revision !== revision) {
          const ranges = yield* Effect.flatMap(
            sql`SELECT host(range) AS host, masklen(range) AS bits FROM blocklist`,
            decodeRanges
          )
          const next = new BlockList()
          for (const { bits, host } of ranges) next.addSubnet(host, bits, host.includes(":") ? "ipv6" : "ipv4")
          blocked = ranges.length === 0 ? undefined : next
          keys.clear()
          revision = found.revision
        }
        yield* Ref.set(checkedAt, startedAt)
      })
      // Callers that find the memory stale at the same time share one look at the database.
      const submitRefresh = yield* NaturalBatch.make({
        maxSize: 10_000,
        run: (waiting: ReadonlyArray<true>) => Effect.as(refresh(), waiting)
      })
      const fresh = Effect.gen(function* () {
        const age = (yield* Clock.currentTimeMillis) - (yield* Ref.get(checkedAt))
        if (age >= 0 && age < trustForMillis) return
        yield* submitRefresh(true)
      }).pipe(Effect.orDie)

      const lookUp = yield* NaturalBatch.make({
        maxSize: 256,
        run: (hashes: ReadonlyArray<string>) =>
          Effect.map(
            Effect.flatMap(
              sql`
                SELECT api_keys.id, api_keys.org_id, encode(hash, 'hex') AS hash, scopes, rpm,
                  (extract(epoch FROM expires_at) * 1000)::float8 AS expires_at_millis
                FROM api_keys JOIN organizations ON organizations.id = api_keys.org_id
                WHERE hash IN (SELECT decode(h, 'hex') FROM unnest(${hashes}::text[]) AS t (h))
                  AND revoked_at IS NULL AND suspended_at IS NULL`,
              decodeKeys
            ),
            (rows) => hashes.map((hash) => Option.fromNullable(rows.find((row) => row.hash === hash)))
          )
      })

      const find = Effect.fnUntraced(function* (hash: string) {
        const known = keys.get(hash)
        if (known !== undefined) return Option.some(known)
        const seen = revision
        const row = yield* Effect.orDie(lookUp(hash))
        // Unknown keys are not remembered, and neither is one read while the revision moved.
        if (Option.isSome(row) && revision === seen) keys.set(hash, row.value)
        return row
      })

      const authenticate = Effect.fnUntraced(function* (presented: Option.Option<Redacted.Redacted>) {
        if (Option.isNone(presented)) return yield* new MissingApiKey()
        const secret = Redacted.value(presented.value)
        if (secret === "") return yield* new MissingApiKey()
        if (!secret.startsWith(keyPrefix)) return yield* new InvalidApiKey()
        yield* fresh
        const row = yield* find(keyHash(secret))
        if (Option.isNone(row)) return yield* new InvalidApiKey()
        const { expiresAtMillis, id, orgId, rpm, scopes } = row.value
        if (expiresAtMillis !== null && expiresAtMillis <= (yield* Clock.currentTimeMillis)) {
          return yield* new InvalidApiKey()
        }
        noteUse(id)
        return { key: id, org: orgId, scopes: scopes ?? undefined, rpm: rpm ?? undefined }
      })

      const isBlocked = Effect.fnUntraced(function* (address: string) {
        yield* fresh
        if (blocked === undefined || !ipaddr.isValid(address)) return false
        const parsed = ipaddr.process(address)
        return blocked.check(parsed.toString(), parsed.kind())
      })

      return Auth.of({ authenticate, isBlocked })
    })
  )
}

const KeyRow = Schema.Struct({
  id: KeyId,
  orgId: OrgId,
  hash: Schema.String,
  scopes: Schema.NullOr(Schema.Array(Scope)),
  rpm: Schema.NullOr(Schema.Number),
  expiresAtMillis: Schema.NullOr(Schema.Number)
})
type KeyRow = typeof KeyRow.Type

const decodeKeys = Schema.decodeUnknown(Schema.Array(KeyRow))
const decodeRevision = Schema.decodeUnknown(Schema.Tuple(Schema.Struct({ revision: Schema.String })))
const decodeRanges = Schema.decodeUnknown(Schema.Array(Schema.Struct({ host: Schema.String, bits: Schema.Number })))
