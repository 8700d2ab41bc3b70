import { BlockList } from "node:net"
import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Option, Redacted, Schedule, Schema } from "effect"
import ipaddr from "ipaddr.js"
import { type Caller, KeyId, keyPrefix, Scope } from "../../domain/ApiKey.ts"
import { InvalidApiKey, MissingApiKey, OrganizationSuspended } from "../../domain/Failure.ts"
import { compileModelPatterns } from "../../domain/ModelPatterns.ts"
import { OrgId } from "../../domain/Organization.ts"
import * as Monotonic from "../runtime/Monotonic.ts"
import { stepTimeout } from "../sql/DatabaseRetry.ts"
import * as StatementBatcher from "../sql/StatementBatcher.ts"
import { secretHash } from "./ApiKeys.ts"

const writeEvery = "10 seconds"
const seconds = 60

/** Returns what records a use; writes in the background, each key at most once a minute. */
const make = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  let used = new Set<KeyId>()

  const write = Effect.suspend(() => {
    if (used.size === 0) return Effect.void
    const ids = [...used].toSorted()
    used = new Set()
    return sql`
      INSERT INTO key_uses (key_id, last_used_at)
      SELECT id, now() FROM api_keys WHERE id = ANY(${ids}::text[]) ORDER BY id
      ON CONFLICT (key_id) DO UPDATE SET last_used_at = EXCLUDED.last_used_at
      WHERE key_uses.last_used_at <= EXCLUDED.last_used_at - ${seconds} * interval '1 second'`.pipe(
      Effect.catchAllCause((cause) => Effect.logDebug("The last uses of keys could not be written", cause)),
      Effect.asVoid
    )
  })

  yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(Effect.interruptible(write), "1 second")))
  yield* write.pipe(Effect.uninterruptible, Effect.schedule(Schedule.spaced(writeEvery)), Effect.forkScoped)
  return (key: KeyId): void => {
    used.add(key)
  }
})

const trustForMillis = 900

type AuthFailure = MissingApiKey | InvalidApiKey | OrganizationSuspended

interface KnownKey {
  readonly expiresAt: number
  readonly caller: Caller
}

/** Cached keys and block list, checked against one revision number: a revoked key fails everywhere within 1 s. */
export class Auth extends Context.Tag("gateway/Auth")<
  Auth,
  {
    readonly authenticate: (presented: Option.Option<Redacted.Redacted>) => Effect.Effect<Caller, AuthFailure>
    readonly isBlocked: (address: string) => Effect.Effect<boolean>
    /** The caller where memory alone can tell: of a key that is known and fresh, while no address is blocked. */
    readonly recall: (secret: string) => Caller | undefined
  }
>() {
  static readonly layer = Layer.scoped(
    Auth,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const noteUse = yield* make(sql)
      const keys = new Map<string, KnownKey>()
      let blocked: BlockList | undefined
      let revision: string | undefined
      let checkedAt = Number.NEGATIVE_INFINITY
      const clock = yield* Effect.clock
      const now = () => Monotonic.millisOf(clock)

      const refresh = Effect.fnUntraced(function* () {
        const startedAt = now()
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
        Effect.suspend(() => (now() - checkedAt < trustForMillis ? use() : Effect.flatMap(refreshShared, use)))

      const lookUp = yield* StatementBatcher.make({
        maxSize: 256,
        timeout: stepTimeout,
        run: (hashes: ReadonlyArray<string>) =>
          Effect.map(
            Effect.flatMap(
              sql`
                SELECT api_keys.id, api_keys.org_id, encode(hash, 'hex') AS hash, scopes, models, rpm, tpm, concurrency, fit_holds,
                  suspended_at IS NOT NULL AS is_suspended, organizations.cap IS NOT NULL AS is_org_capped,
                  disputed_at IS NOT NULL AS is_disputed,
                  (extract(epoch FROM expires_at - now()) * 1000)::float8 AS left_ms,
                  encode(previous_hash, 'hex') AS previous_hash,
                  (extract(epoch FROM least(previous_expires_at, expires_at) - now()) * 1000)::float8 AS previous_left_ms
                FROM api_keys JOIN organizations ON organizations.id = api_keys.org_id AND revoked_at IS NULL
                WHERE hash = ANY (ARRAY(SELECT decode(h, 'hex') FROM unnest(${hashes}::text[]) AS t (h)))
                  OR previous_hash = ANY (ARRAY(SELECT decode(h, 'hex') FROM unnest(${hashes}::text[]) AS t (h)))`,
              decodeKeys
            ),
            (rows) => hashes.map((hash) => findSecret(rows, hash))
          )
      })

      const find = (hash: string): Effect.Effect<KnownKey, AuthFailure> => {
        const known = keys.get(hash)
        if (known !== undefined) return Effect.succeed(known)
        const revisionBefore = revision
        const askedAt = now()
        return Effect.flatMap(Effect.orDie(lookUp(hash)), (secret): Effect.Effect<KnownKey, AuthFailure> => {
          if (Option.isNone(secret)) return new InvalidApiKey()
          const { leftMs, row } = secret.value
          if (row.isSuspended) return (leftMs ?? 1) > 0 ? new OrganizationSuspended() : new InvalidApiKey()
          const { concurrency, fitHolds, id, isDisputed, isOrgCapped, models, orgId, rpm, scopes, tpm } = row
          const caller = {
            key: id,
            org: orgId,
            scopes: scopes ?? undefined,
            models: models === null ? undefined : compileModelPatterns(models),
            rpm: rpm ?? undefined,
            tpm: tpm ?? undefined,
            concurrency: concurrency ?? undefined,
            hasFittedHold: fitHolds,
            isOrgCapped,
            isDisputed
          }
          const found = { expiresAt: askedAt + (leftMs ?? Infinity), caller }
          // Neither unknown keys nor one read while the revision moved are cached.
          if (revision === revisionBefore) keys.set(hash, found)
          return Effect.succeed(found)
        })
      }

      const callerOf = ({ caller, expiresAt }: KnownKey): Effect.Effect<Caller, InvalidApiKey> => {
        if (expiresAt <= now()) return new InvalidApiKey()
        noteUse(caller.key)
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
          if (blocked === undefined || !ipaddr.isValid(address)) return Effect.succeed(false)
          const parsed = ipaddr.process(address)
          return Effect.succeed(blocked.check(parsed.toString(), parsed.kind()))
        })

      const recall = (secret: string): Caller | undefined => {
        const at = now()
        if (blocked !== undefined || at - checkedAt >= trustForMillis) return undefined
        const known = keys.get(secretHash(secret))
        if (known === undefined || known.expiresAt <= at) return undefined
        noteUse(known.caller.key)
        return known.caller
      }

      return Auth.of({ authenticate, isBlocked, recall })
    })
  )
}

const KeyRow = Schema.Struct({
  id: KeyId,
  orgId: OrgId,
  hash: Schema.String,
  scopes: Schema.NullOr(Schema.Array(Scope)),
  models: Schema.NullOr(Schema.Array(Schema.String)),
  rpm: Schema.NullOr(Schema.Number),
  tpm: Schema.NullOr(Schema.Number),
  concurrency: Schema.NullOr(Schema.Number),
  fitHolds: Schema.Boolean,
  isOrgCapped: Schema.Boolean,
  isDisputed: Schema.Boolean,
  isSuspended: Schema.Boolean,
  leftMs: Schema.NullOr(Schema.Number),
  previousHash: Schema.NullOr(Schema.String),
  /** Null where there is no secret before. */
  previousLeftMs: Schema.NullOr(Schema.Number)
})
type KeyRow = typeof KeyRow.Type

interface Secret {
  readonly row: KeyRow
  /** Null: it does not end. */
  readonly leftMs: number | null
}

/** The key's own, or the one before where a reissue has left it valid. */
const findSecret = (rows: ReadonlyArray<KeyRow>, hash: string): Option.Option<Secret> => {
  for (const row of rows) {
    if (row.hash === hash) return Option.some({ row, leftMs: row.leftMs })
    const { previousHash, previousLeftMs } = row
    if (previousHash === hash && previousLeftMs !== null && previousLeftMs > 0) {
      return Option.some({ row, leftMs: previousLeftMs })
    }
  }
  return Option.none()
}

const decodeKeys = Schema.decodeUnknown(Schema.Array(KeyRow))
const decodeRevision = Schema.decodeUnknown(Schema.Tuple(Schema.Struct({ revision: Schema.String })))
const decodeRanges = Schema.decodeUnknown(Schema.Array(Schema.Struct({ host: Schema.String, bits: Schema.Number })))
