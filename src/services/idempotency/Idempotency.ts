import { webcrypto } from "node:crypto"
import { SqlClient, type SqlError } from "@effect/sql"
import { Context, Duration, Effect, Layer, Schema, type Scope } from "effect"
import { IdempotencyConflict, InvalidRequest } from "../../domain/Failure.ts"
import type { Reference } from "../../domain/Media.ts"
import type { OrgId } from "../../domain/Organization.ts"
import { Instance, isAlive } from "../instance/Instance.ts"
import { release } from "../ledger/ClosingSql.ts"
import { Ids } from "../runtime/Ids.ts"
import { keyReleaseRetries, quickRetries } from "../runtime/Schedules.ts"
import { Timings } from "../runtime/Timings.ts"
import { stepTimeout, withTimeLimit } from "../sql/Outage.ts"
import { lockTimeout, runWith } from "../sql/SqlStatement.ts"

const retentionHours = 24

interface IdempotentRequest {
  readonly org: OrgId
  readonly endpoint: "images" | "videos"
  readonly key: string
  readonly fingerprint: string
}

/** The data of a response, without media. */
export type StoredResult = Readonly<Record<string, unknown>>

interface Claim extends IdempotentRequest {
  readonly id: string
  readonly instance: string
}

const ClaimRow = Schema.Struct({
  claim: Schema.String,
  state: Schema.Literal("working", "bound", "done"),
  isSame: Schema.Boolean,
  isExpired: Schema.Boolean,
  result: Schema.Unknown
})

/**
 * Returns the condition for a claim that is done or whose instance is dead. A row that was claimed while the statement
 * waited counts as unfinished, because its instance may be too new for the statement to see.
 */
const isFinished = (
  sql: SqlClient.SqlClient,
  deadAfter: Duration.Duration
) => sql`(kept.state = 'done' OR kept.created_at <= now() AND NOT EXISTS (
  SELECT FROM instances WHERE instances.id = kept.instance_id AND ${sql.literal(isAlive("instances", deadAfter))}
))`

/**
 * Claims a key that is free or was claimed by a dead process. If that process had bound a result, it becomes final
 * instead.
 */
export const insertClaim = (
  sql: SqlClient.SqlClient,
  { endpoint, fingerprint, id, instance, key, org }: Claim,
  deadAfter: Duration.Duration
) => sql`
  INSERT INTO idempotency_keys AS kept (claim, org_id, endpoint, key, fingerprint, instance_id)
  SELECT ${id}::uuid, ${org}, ${endpoint}, ${key}, ${fingerprint}, ${instance}::uuid WHERE ${lockTimeout(sql, "one")}
  ON CONFLICT (org_id, endpoint, key) DO UPDATE SET (claim, fingerprint, instance_id, created_at, state) = (
    SELECT
      CASE WHEN is_free THEN excluded.claim ELSE kept.claim END,
      CASE WHEN is_free THEN excluded.fingerprint ELSE kept.fingerprint END,
      CASE WHEN is_free THEN excluded.instance_id ELSE kept.instance_id END,
      CASE WHEN is_free THEN now() ELSE kept.created_at END,
      CASE WHEN is_over AND NOT is_free THEN 'done' ELSE kept.state END
    FROM (SELECT is_over, is_over AND kept.state = 'working' AS is_free FROM (SELECT ${isFinished(sql, deadAfter)} AS is_over) AS life) AS fate
  )
  RETURNING claim, state, result, fingerprint = ${fingerprint} AS is_same,
    state = 'done' AND created_at <= now() - ${retentionHours} * interval '1 hour' AS is_expired`

const selectClaim = (sql: SqlClient.SqlClient, { endpoint, key, org }: Omit<IdempotentRequest, "fingerprint">) => sql`
  SELECT claim FROM idempotency_keys WHERE org_id = ${org} AND endpoint = ${endpoint} AND key = ${key}`

export const releaseKey = (sql: SqlClient.SqlClient, id: string) => sql`
  UPDATE idempotency_keys SET key = NULL WHERE claim = ${id}`

/** Stores the result of a claim. Returns no row if the claim no longer owns its key. */
export const saveResult = (
  sql: SqlClient.SqlClient,
  id: string,
  state: "bound" | "done",
  { hold, result }: { readonly result: StoredResult; readonly hold: string }
) => sql`
  UPDATE idempotency_keys SET state = CASE state WHEN 'done' THEN 'done' ELSE ${state} END,
    result = ${JSON.stringify(result)}::jsonb, hold_id = ${hold}
  WHERE claim = ${id} AND key IS NOT NULL RETURNING claim`

const finishClaim = (sql: SqlClient.SqlClient, id: string) => sql`
  WITH freed AS (DELETE FROM idempotency_keys WHERE claim = ${id} AND state = 'working')
  UPDATE idempotency_keys SET state = 'done' WHERE claim = ${id} AND state = 'bound'`

/**
 * Like `finish`, for when a statement of the claim may still run. The row's id keeps that statement from claiming the
 * key.
 */
export const writeTombstone = (sql: SqlClient.SqlClient, { endpoint, fingerprint, id, instance, org }: Claim) => sql`
  INSERT INTO idempotency_keys AS kept (claim, org_id, endpoint, fingerprint, instance_id)
  VALUES (${id}, ${org}, ${endpoint}, ${fingerprint}, ${instance})
  ON CONFLICT (claim) DO UPDATE SET
    key = CASE kept.state WHEN 'working' THEN NULL ELSE kept.key END,
    state = CASE kept.state WHEN 'bound' THEN 'done' ELSE kept.state END`

const releaseOldKeys = (
  sql: SqlClient.SqlClient,
  olderThanSeconds: number,
  limit: number,
  deadAfter: Duration.Duration
) => sql`
  UPDATE idempotency_keys SET key = NULL WHERE claim IN (
    SELECT claim FROM idempotency_keys AS kept
    WHERE created_at <= now() - ${olderThanSeconds} * interval '1 second' AND (key IS NULL OR ${isFinished(sql, deadAfter)})
    ORDER BY created_at LIMIT ${limit} FOR UPDATE SKIP LOCKED
  ) RETURNING claim, result`

const deleteClaims = (sql: SqlClient.SqlClient, ids: ReadonlyArray<string>) => sql`
  DELETE FROM idempotency_keys WHERE claim = ANY (${ids}::uuid[]) AND key IS NULL RETURNING claim`

const pruneBatch = 500

/** Owns a key until the scope closes. Its effects run in the caller's transaction and are safe to repeat. */
export interface FirstClaim {
  readonly _tag: "First"
  /**
   * Makes the result final. It releases the hold instead if another request has claimed the key, because this process
   * seemed dead.
   */
  readonly finalize: (result: StoredResult, hold: string) => Effect.Effect<void, SqlError.SqlError>
  /** Stores a result in case this process dies. It becomes final when the scope closes, unless the key was released. */
  readonly bind: (result: StoredResult, hold: string) => Effect.Effect<void, SqlError.SqlError | IdempotencyConflict>
  readonly releaseKey: Effect.Effect<void, SqlError.SqlError>
}

export interface Replay {
  readonly _tag: "Replay"
  readonly result: unknown
}

export class Idempotency extends Context.Tag("gateway/Idempotency")<
  Idempotency,
  {
    readonly claim: (
      request: IdempotentRequest
    ) => Effect.Effect<FirstClaim | Replay, IdempotencyConflict | InvalidRequest, Scope.Scope>
    /** Returns whether the key was used. The request may then be a replay, which is free. */
    readonly exists: (request: Omit<IdempotentRequest, "fingerprint">) => Effect.Effect<boolean>
    /** Removes older keys whose results `forget` has deleted. Returns the number of removed keys. */
    readonly prune: (
      olderThan: Duration.Duration,
      forget: (result: unknown) => Effect.Effect<boolean>
    ) => Effect.Effect<number>
  }
>() {
  static readonly layer = Layer.scoped(
    Idempotency,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Ids
      const instance = yield* Instance
      const { deadAfter } = yield* Timings
      const scope = yield* Effect.scope
      const withinStepTimeout = withTimeLimit(scope, stepTimeout)
      const decodeClaim = Schema.decodeUnknown(Schema.Tuple(ClaimRow))
      const decodeOldKeys = Schema.decodeUnknown(Schema.Array(OldKey))

      const releaseEventually = (statement: Effect.Effect<unknown, SqlError.SqlError>) =>
        Effect.uninterruptible(statement).pipe(
          Effect.retry(keyReleaseRetries),
          Effect.catchAllCause((cause) => Effect.logError("Failed to release an idempotency key", cause)),
          Effect.interruptible,
          Effect.forkIn(scope)
        )

      const finish = Effect.fnUntraced(function* (claim: Claim, mayStillRun: boolean) {
        const statement = mayStillRun ? writeTombstone(sql, claim) : finishClaim(sql, claim.id)
        yield* Effect.catchAllCause(withinStepTimeout(statement), () => releaseEventually(statement))
      })

      const claimKey = Effect.fnUntraced(function* (claim: Claim) {
        let mayStillRun = false
        const insert = insertClaim(sql, claim, deadAfter).pipe(
          Effect.flatMap(decodeClaim),
          Effect.tapErrorCause(() => Effect.sync(() => (mayStillRun = true)))
        )
        const claimUnexpired = Effect.repeat(
          Effect.tap(insert, ([{ claim: expiredClaim, isExpired }]) =>
            isExpired ? releaseKey(sql, expiredClaim) : Effect.void
          ),
          { while: ([{ isExpired }]) => isExpired }
        )
        const [row] = yield* claimUnexpired.pipe(
          Effect.retry(quickRetries),
          withinStepTimeout,
          Effect.onError(() => releaseEventually(writeTombstone(sql, claim))),
          Effect.orDie
        )
        const isOwner = row.claim === claim.id
        if (mayStillRun && !isOwner) yield* releaseEventually(writeTombstone(sql, claim))
        return { row, isOwner, mayStillRun }
      })

      const makeFirstClaim = ({ id }: Claim): FirstClaim => ({
        _tag: "First",
        finalize: (result, hold) =>
          saveResult(sql, id, "done", { result, hold }).pipe(
            Effect.flatMap(([savedRow]) =>
              savedRow === undefined ? Effect.asVoid(runWith(sql, release([hold]))) : Effect.void
            ),
            Effect.uninterruptible
          ),
        bind: (result, hold) =>
          saveResult(sql, id, "bound", { result, hold }).pipe(
            Effect.filterOrFail(
              ([savedRow]) => savedRow !== undefined,
              () => new IdempotencyConflict()
            ),
            Effect.asVoid,
            Effect.uninterruptible
          ),
        releaseKey: Effect.uninterruptible(Effect.asVoid(releaseKey(sql, id)))
      })

      const claim = Effect.fn("Idempotency.claim")(function* (request: IdempotentRequest) {
        const ownClaim = { ...request, id: ids.uuid(), instance: yield* instance.id }
        const { row, isOwner } = yield* Effect.acquireRelease(claimKey(ownClaim), (attempt) =>
          attempt.isOwner ? finish(ownClaim, attempt.mayStillRun) : Effect.void
        )
        if (isOwner) return makeFirstClaim(ownClaim)
        if (!row.isSame) {
          return yield* new InvalidRequest({
            message: "This `Idempotency-Key` was used with a different request.",
            param: null
          })
        }
        if (row.state !== "done") return yield* new IdempotencyConflict()
        return { _tag: "Replay", result: row.result } as const
      })

      const pruneSome = Effect.fnUntraced(function* (
        olderThan: Duration.Duration,
        forget: (result: unknown) => Effect.Effect<boolean>
      ) {
        const oldKeys = yield* Effect.flatMap(
          releaseOldKeys(sql, Duration.toSeconds(olderThan), pruneBatch, deadAfter),
          decodeOldKeys
        )
        const removableKeys = yield* Effect.filter(oldKeys, ({ result }) =>
          result === null ? Effect.succeed(true) : forget(result)
        )
        const removedRows = yield* deleteClaims(
          sql,
          removableKeys.map(({ claim: id }) => id)
        )
        return { removedCount: removedRows.length, hasMore: removableKeys.length === pruneBatch }
      })

      const exists = Effect.fnUntraced(function* ({ endpoint, key, org }: Omit<IdempotentRequest, "fingerprint">) {
        const rows = yield* selectClaim(sql, { endpoint, key, org })
        return rows.length > 0
      })

      return Idempotency.of({
        claim,
        exists: (request) => Effect.uninterruptible(Effect.orDie(exists(request))),
        prune: Effect.fn("Idempotency.prune")(function* (olderThan, forget) {
          let removedCount = 0
          while (true) {
            const batch = yield* Effect.orDie(pruneSome(olderThan, forget))
            removedCount += batch.removedCount
            if (!batch.hasMore) return removedCount
          }
        })
      })
    })
  )
}

const OldKey = Schema.Struct({ claim: Schema.String, result: Schema.Unknown })

type Json = null | boolean | number | string | ReadonlyArray<Json> | { readonly [name: string]: Json | undefined }

/** Returns JSON with sorted fields and without undefined ones. */
const canonicalize = (value: Json): string => {
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  if (isList(value)) return `[${value.map(canonicalize).join(",")}]`
  const fields = Object.entries(value).flatMap(([name, field]) =>
    field === undefined ? [] : [{ name, text: `${JSON.stringify(name)}:${canonicalize(field)}` }]
  )
  fields.sort((one, other) => (one.name < other.name ? -1 : 1))
  return `{${fields.map(({ text }) => text).join(",")}}`
}

const isList: (value: Json) => value is ReadonlyArray<Json> = Array.isArray

/** Hashes on another thread, because 20 MiB would block streams for too long. */
const sha256 = (bytes: Uint8Array): Effect.Effect<string> =>
  Effect.map(
    Effect.promise(() => webcrypto.subtle.digest("SHA-256", bytes)),
    (digest) => Buffer.from(digest).toString("hex")
  )

const identifyReference = (reference: Reference): Effect.Effect<Json> =>
  reference._tag === "Url"
    ? Effect.succeed({ url: reference.url })
    : Effect.map(sha256(reference.bytes), (hash) => ({ sha256: hash }))

/** Returns a hexadecimal hash that is equal for equal requests. References count in order, by bytes or URL. */
export const fingerprint = (
  fields: Readonly<Record<string, Json | undefined>>,
  references: ReadonlyArray<Reference>
): Effect.Effect<string> =>
  Effect.flatMap(Effect.forEach(references, identifyReference), (identities) =>
    sha256(Buffer.from(canonicalize([fields, identities])))
  )

const keyPattern = /^[\x21-\x7e]{1,255}$/

export const keyFrom = (header: string): Effect.Effect<string, InvalidRequest> =>
  keyPattern.test(header)
    ? Effect.succeed(header)
    : Effect.fail(
        new InvalidRequest({ message: "`Idempotency-Key` must be 1 to 255 visible ASCII characters.", param: null })
      )
