import { BlockList } from "node:net"
import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Option, Redacted, Schedule, Schema, Struct } from "effect"
import ipaddr from "ipaddr.js"
import { type Caller, KeyId, keyPrefix, Scope } from "../../domain/ApiKey.ts"
import { InvalidApiKey, MissingApiKey, OrganizationSuspended } from "../../domain/Failure.ts"
import { compileModelPatterns } from "../../domain/ModelPatterns.ts"
import { OrgId } from "../../domain/Organization.ts"
import { presentIn, selectList } from "../resources/ResourceInput.ts"
import { monotonicMillisOf } from "../runtime/System.ts"
import { stepTimeout } from "../sql/Outage.ts"
import { decodeRows } from "../sql/SqlStatement.ts"
import * as StatementBatcher from "../sql/StatementBatcher.ts"
import { secretHash } from "./ApiKeys.ts"
import { requestLimits } from "./Key.ts"

const writeEvery = "10 seconds"
const minUseAgeSeconds = 60

/**
 * Returns a function that records the use of a key. The database is updated in the background, per key at most once a
 * minute.
 */
const makeUseRecorder = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  let usedKeys = new Set<KeyId>()

  const write = Effect.suspend(() => {
    if (usedKeys.size === 0) return Effect.void
    const ids = [...usedKeys].toSorted()
    usedKeys = new Set()
    return sql`
      INSERT INTO key_uses (key_id, last_used_at)
      SELECT id, now() FROM api_keys WHERE id = ANY(${ids}::text[]) ORDER BY id
      ON CONFLICT (key_id) DO UPDATE SET last_used_at = EXCLUDED.last_used_at
      WHERE key_uses.last_used_at <= EXCLUDED.last_used_at - ${minUseAgeSeconds} * interval '1 second'`.pipe(
      Effect.catchAllCause((cause) => Effect.logDebug("Writing the last uses of keys failed", cause)),
      Effect.asVoid
    )
  })

  yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(Effect.interruptible(write), "1 second")))
  yield* write.pipe(Effect.uninterruptible, Effect.schedule(Schedule.spaced(writeEvery)), Effect.forkScoped)
  return (key: KeyId): void => {
    usedKeys.add(key)
  }
})

const maxCacheAgeMillis = 900

type AuthFailure = MissingApiKey | InvalidApiKey | OrganizationSuspended

interface CachedKey {
  readonly expiresAt: number
  readonly caller: Caller
}

/**
 * Caches keys and the block list until their revision number in the database changes, so a revoked key fails on every
 * instance within 1 s.
 */
export class Auth extends Context.Tag("gateway/Auth")<
  Auth,
  {
    readonly authenticate: (presented: Option.Option<Redacted.Redacted>) => Effect.Effect<Caller, AuthFailure>
    readonly isBlocked: (address: string) => Effect.Effect<boolean>
    /** Returns the caller of a cached, fresh key without a query; undefined otherwise, or while any address is blocked. */
    readonly findCached: (secret: string) => Caller | undefined
  }
>() {
  static readonly layer = Layer.scoped(
    Auth,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const markUsed = yield* makeUseRecorder(sql)
      const keys = new Map<string, CachedKey>()
      let blockedAddresses: BlockList | undefined
      let revision: string | undefined
      let checkedAt = Number.NEGATIVE_INFINITY
      const clock = yield* Effect.clock
      const now = () => monotonicMillisOf(clock)

      const refresh = Effect.fnUntraced(function* () {
        const startedAt = now()
        const [current] = yield* Effect.flatMap(sql`SELECT revision FROM access_revision`, decodeRevision)
        if (current.revision !== revision) {
          const ranges = yield* decodeRanges(sql`SELECT host(range) AS host, masklen(range) AS bits FROM blocklist`)
          const next = new BlockList()
          for (const { bits, host } of ranges) next.addSubnet(host, bits, host.includes(":") ? "ipv6" : "ipv4")
          blockedAddresses = ranges.length === 0 ? undefined : next
          keys.clear()
          revision = current.revision
        }
        checkedAt = startedAt
      })
      // Callers with a stale cache share one query.
      const submitRefresh = yield* StatementBatcher.make({
        maxSize: 10_000,
        timeout: stepTimeout,
        run: (waiting: ReadonlyArray<true>) => Effect.as(refresh(), waiting)
      })
      const refreshShared = Effect.orDie(submitRefresh(true))
      const withFreshCache = <A, E>(use: () => Effect.Effect<A, E>): Effect.Effect<A, E> =>
        Effect.suspend(() => (now() - checkedAt < maxCacheAgeMillis ? use() : Effect.flatMap(refreshShared, use)))

      const submitLookup = yield* StatementBatcher.make({
        maxSize: 256,
        timeout: stepTimeout,
        run: (hashes: ReadonlyArray<string>) =>
          Effect.map(
            decodeKeys(
              sql`
                SELECT api_keys.id, api_keys.org_id, encode(hash, 'hex') AS hash, scopes, models,
                  ${sql.literal(selectList(Object.keys(requestLimits)))}, fit_holds, discount_percent,
                  suspended_at IS NOT NULL AS is_suspended,
                  disputed_at IS NOT NULL AS is_disputed,
                  (extract(epoch FROM expires_at - now()) * 1000)::float8 AS left_ms,
                  encode(previous_hash, 'hex') AS previous_hash,
                  (extract(epoch FROM least(previous_expires_at, expires_at) - now()) * 1000)::float8 AS previous_left_ms
                FROM api_keys JOIN organizations ON organizations.id = api_keys.org_id AND revoked_at IS NULL
                WHERE hash = ANY (ARRAY(SELECT decode(h, 'hex') FROM unnest(${hashes}::text[]) AS t (h)))
                  OR previous_hash = ANY (ARRAY(SELECT decode(h, 'hex') FROM unnest(${hashes}::text[]) AS t (h)))`
                .withoutTransform
            ),
            (rows) => hashes.map((hash) => findSecret(rows, hash))
          )
      })

      const find = (hash: string): Effect.Effect<CachedKey, AuthFailure> => {
        const cached = keys.get(hash)
        if (cached !== undefined) return Effect.succeed(cached)
        const revisionBefore = revision
        const startedAt = now()
        return Effect.flatMap(Effect.orDie(submitLookup(hash)), (secret): Effect.Effect<CachedKey, AuthFailure> => {
          if (Option.isNone(secret)) return new InvalidApiKey()
          const { leftMs, row } = secret.value
          if (row.is_suspended) return (leftMs ?? 1) > 0 ? new OrganizationSuspended() : new InvalidApiKey()
          const caller: Caller = {
            ...Struct.pick(row, ...Struct.keys(requestLimits)),
            key: row.id,
            org: row.org_id,
            scopes: row.scopes ?? undefined,
            models: row.models === null ? undefined : compileModelPatterns(row.models),
            canReduceHold: row.fit_holds,
            discountPercent: row.discount_percent,
            isDisputed: row.is_disputed
          }
          const key = { expiresAt: startedAt + (leftMs ?? Infinity), caller }
          // If the revision has changed during the query, the key may be outdated already.
          if (revision === revisionBefore) keys.set(hash, key)
          return Effect.succeed(key)
        })
      }

      const callerOf = ({ caller, expiresAt }: CachedKey): Effect.Effect<Caller, InvalidApiKey> => {
        if (expiresAt <= now()) return new InvalidApiKey()
        markUsed(caller.key)
        return Effect.succeed(caller)
      }

      const authenticate = (presented: Option.Option<Redacted.Redacted>): Effect.Effect<Caller, AuthFailure> => {
        const secret = Option.isSome(presented) ? Redacted.value(presented.value) : ""
        if (secret === "") return new MissingApiKey()
        if (!secret.startsWith(keyPrefix)) return new InvalidApiKey()
        return withFreshCache(() => Effect.flatMap(find(secretHash(secret)), callerOf))
      }

      const isBlocked = (address: string): Effect.Effect<boolean> =>
        withFreshCache(() => {
          if (blockedAddresses === undefined || !ipaddr.isValid(address)) return Effect.succeed(false)
          const parsed = ipaddr.process(address)
          return Effect.succeed(blockedAddresses.check(parsed.toString(), parsed.kind()))
        })

      const findCached = (secret: string): Caller | undefined => {
        const at = now()
        if (blockedAddresses !== undefined || at - checkedAt >= maxCacheAgeMillis) return undefined
        const cached = keys.get(secretHash(secret))
        if (cached === undefined || cached.expiresAt <= at) return undefined
        markUsed(cached.caller.key)
        return cached.caller
      }

      return Auth.of({ authenticate, isBlocked, findCached })
    })
  )
}

const KeyRow = Schema.extend(
  Schema.Struct({
    id: KeyId,
    org_id: OrgId,
    hash: Schema.String,
    scopes: Schema.NullOr(Schema.Array(Scope)),
    models: Schema.NullOr(Schema.Array(Schema.String)),
    fit_holds: Schema.Boolean,
    discount_percent: Schema.Number,
    is_disputed: Schema.Boolean,
    is_suspended: Schema.Boolean,
    left_ms: Schema.NullOr(Schema.Number),
    previous_hash: Schema.NullOr(Schema.String),
    /** Null if the key has no previous secret. */
    previous_left_ms: Schema.NullOr(Schema.Number)
  }),
  presentIn(requestLimits)
)
type KeyRow = typeof KeyRow.Type

interface Secret {
  readonly row: KeyRow
  /** Null: it never expires. */
  readonly leftMs: number | null
}

/** Finds the key whose current secret has the hash, or whose previous one has it and is still in its grace period. */
const findSecret = (rows: ReadonlyArray<KeyRow>, hash: string): Option.Option<Secret> => {
  for (const row of rows) {
    if (row.hash === hash) return Option.some({ row, leftMs: row.left_ms })
    const { previous_hash, previous_left_ms } = row
    if (previous_hash === hash && previous_left_ms !== null && previous_left_ms > 0) {
      return Option.some({ row, leftMs: previous_left_ms })
    }
  }
  return Option.none()
}

const decodeKeys = decodeRows(KeyRow)
const decodeRevision = Schema.decodeUnknown(Schema.Tuple(Schema.Struct({ revision: Schema.String })))
const decodeRanges = decodeRows(Schema.Struct({ host: Schema.String, bits: Schema.Number }))
