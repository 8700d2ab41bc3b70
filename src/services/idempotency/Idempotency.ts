import { webcrypto } from "node:crypto"
import { SqlClient, type SqlError } from "@effect/sql"
import { Context, Duration, Effect, Layer, Schema, type Scope } from "effect"
import { IdempotencyConflict, InvalidRequest } from "../../domain/Failure.ts"
import type { Reference } from "../../domain/Media.ts"
import { Instance } from "../instance/Instance.ts"
import { release } from "../ledger/ClosingSql.ts"
import { Ids } from "../runtime/Ids.ts"
import { keyReleaseRetries, quickRetries } from "../runtime/Schedules.ts"
import { Timings } from "../runtime/Timings.ts"
import { stepTimeout, withTimeLimit } from "../sql/Outage.ts"
import { runWith } from "../sql/SqlStatement.ts"
import type { IdempotentRequest, StoredResult } from "./IdempotencySql.ts"
import * as Statements from "./IdempotencySql.ts"

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
      const decodeClaim = Schema.decodeUnknown(Schema.Tuple(Statements.ClaimRow))
      const decodeOldKeys = Schema.decodeUnknown(Schema.Array(OldKey))

      const releaseEventually = (statement: Effect.Effect<unknown, SqlError.SqlError>) =>
        Effect.uninterruptible(statement).pipe(
          Effect.retry(keyReleaseRetries),
          Effect.catchAllCause((cause) => Effect.logError("Failed to release an idempotency key", cause)),
          Effect.interruptible,
          Effect.forkIn(scope)
        )

      const finish = Effect.fnUntraced(function* (claim: Statements.Claim, mayStillRun: boolean) {
        const statement = mayStillRun ? Statements.tombstone(sql, claim) : Statements.finish(sql, claim.id)
        yield* Effect.catchAllCause(withinStepTimeout(statement), () => releaseEventually(statement))
      })

      const claimKey = Effect.fnUntraced(function* (claim: Statements.Claim) {
        let mayStillRun = false
        const insert = Statements.claim(sql, claim, deadAfter).pipe(
          Effect.flatMap(decodeClaim),
          Effect.tapErrorCause(() => Effect.sync(() => (mayStillRun = true)))
        )
        const claimUnexpired = Effect.repeat(
          Effect.tap(insert, ([{ claim: expiredClaim, isExpired }]) =>
            isExpired ? Statements.releaseKey(sql, expiredClaim) : Effect.void
          ),
          { while: ([{ isExpired }]) => isExpired }
        )
        const [row] = yield* claimUnexpired.pipe(
          Effect.retry(quickRetries),
          withinStepTimeout,
          Effect.onError(() => releaseEventually(Statements.tombstone(sql, claim))),
          Effect.orDie
        )
        const isOwner = row.claim === claim.id
        if (mayStillRun && !isOwner) yield* releaseEventually(Statements.tombstone(sql, claim))
        return { row, isOwner, mayStillRun }
      })

      const makeFirstClaim = ({ id }: Statements.Claim): FirstClaim => ({
        _tag: "First",
        finalize: (result, hold) =>
          Statements.saveResult(sql, id, "done", { result, hold }).pipe(
            Effect.flatMap(([savedRow]) =>
              savedRow === undefined ? Effect.asVoid(runWith(sql, release([hold]))) : Effect.void
            ),
            Effect.uninterruptible
          ),
        bind: (result, hold) =>
          Statements.saveResult(sql, id, "bound", { result, hold }).pipe(
            Effect.filterOrFail(
              ([savedRow]) => savedRow !== undefined,
              () => new IdempotencyConflict()
            ),
            Effect.asVoid,
            Effect.uninterruptible
          ),
        releaseKey: Effect.uninterruptible(Effect.asVoid(Statements.releaseKey(sql, id)))
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
          Statements.releaseOldKeys(sql, Duration.toSeconds(olderThan), pruneBatch, deadAfter),
          decodeOldKeys
        )
        const removableKeys = yield* Effect.filter(oldKeys, ({ result }) =>
          result === null ? Effect.succeed(true) : forget(result)
        )
        const removedRows = yield* Statements.remove(
          sql,
          removableKeys.map(({ claim: id }) => id)
        )
        return { removedCount: removedRows.length, hasMore: removableKeys.length === pruneBatch }
      })

      const exists = Effect.fnUntraced(function* ({ endpoint, key, org }: Omit<IdempotentRequest, "fingerprint">) {
        const rows = yield* Statements.find(sql, { endpoint, key, org })
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
