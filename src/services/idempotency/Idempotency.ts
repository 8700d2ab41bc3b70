import { SqlClient, type SqlError } from "@effect/sql"
import { Context, Duration, Effect, Layer, Schema, type Scope } from "effect"
import { IdempotencyConflict, InvalidRequest } from "../../domain/Failure.ts"
import { Instance } from "../instance/Instance.ts"
import { release } from "../ledger/ClosingSql.ts"
import { Ids } from "../runtime/Ids.ts"
import { briefRetries, keyReleaseRetries } from "../runtime/Schedules.ts"
import { Timings } from "../runtime/Timings.ts"
import * as DatabaseRetry from "../sql/DatabaseRetry.ts"
import { runWith } from "../sql/Statement.ts"
import type { IdempotentRequest, KeptResult } from "./Statements.ts"
import * as Statements from "./Statements.ts"

const pruneBatch = 500

/** Owns a key until the scope closes; its effects are statements for the caller's transaction, safe to repeat. */
export interface FirstClaim {
  readonly _tag: "First"
  /** Makes the result final; releases the hold if another request took the key from a process believed dead. */
  readonly keep: (result: KeptResult, hold: string) => Effect.Effect<void, SqlError.SqlError>
  /** Keeps a result in case this process dies; it becomes final when the scope closes, unless freed. */
  readonly bind: (result: KeptResult, hold: string) => Effect.Effect<void, SqlError.SqlError | IdempotencyConflict>
  readonly free: Effect.Effect<void, SqlError.SqlError>
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
    /** Whether the key is taken: a repetition may cost nothing. */
    readonly isKnown: (request: Omit<IdempotentRequest, "fingerprint">) => Effect.Effect<boolean>
    /** Removes older keys whose results `forget` could delete, and returns how many. */
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
      const inTime = DatabaseRetry.withTimeLimit(scope, DatabaseRetry.stepTimeout)
      const decodeFound = Schema.decodeUnknown(Schema.Tuple(Statements.Found))
      const decodeOld = Schema.decodeUnknown(Schema.Array(Old))

      const releaseEventually = (statement: Effect.Effect<unknown, SqlError.SqlError>) =>
        Effect.uninterruptible(statement).pipe(
          Effect.retry(keyReleaseRetries),
          Effect.catchAllCause((cause) => Effect.logError("An idempotency key could not be freed", cause)),
          Effect.interruptible,
          Effect.forkIn(scope)
        )

      const finish = Effect.fnUntraced(function* (claim: Statements.Claim, mayStillRun: boolean) {
        const statement = mayStillRun ? Statements.tombstone(sql, claim) : Statements.finish(sql, claim.id)
        yield* Effect.catchAllCause(inTime(statement), () => releaseEventually(statement))
      })

      const claimKey = Effect.fnUntraced(function* (claim: Statements.Claim) {
        let mayStillRun = false
        const insert = Statements.claim(sql, claim, deadAfter).pipe(
          Effect.flatMap(decodeFound),
          Effect.tapErrorCause(() => Effect.sync(() => (mayStillRun = true)))
        )
        const claimUnexpired = Effect.repeat(
          Effect.tap(insert, ([{ claim: old, isExpired }]) =>
            isExpired ? Statements.releaseKey(sql, old) : Effect.void
          ),
          { while: ([{ isExpired }]) => isExpired }
        )
        const [found] = yield* claimUnexpired.pipe(
          Effect.retry(briefRetries),
          inTime,
          Effect.onError(() => releaseEventually(Statements.tombstone(sql, claim))),
          Effect.orDie
        )
        const isMine = found.claim === claim.id
        if (mayStillRun && !isMine) yield* releaseEventually(Statements.tombstone(sql, claim))
        return { found, isMine, mayStillRun }
      })

      const makeFirstClaim = ({ id }: Statements.Claim): FirstClaim => ({
        _tag: "First",
        keep: (result, hold) =>
          Statements.saveResult(sql, id, "done", { result, hold }).pipe(
            Effect.flatMap(([saved]) =>
              saved === undefined ? Effect.asVoid(runWith(sql, release([hold]))) : Effect.void
            ),
            Effect.uninterruptible
          ),
        bind: (result, hold) =>
          Statements.saveResult(sql, id, "bound", { result, hold }).pipe(
            Effect.filterOrFail(
              ([saved]) => saved !== undefined,
              () => new IdempotencyConflict()
            ),
            Effect.asVoid,
            Effect.uninterruptible
          ),
        free: Effect.uninterruptible(Effect.asVoid(Statements.releaseKey(sql, id)))
      })

      const claim = Effect.fn("Idempotency.claim")(function* (request: IdempotentRequest) {
        const ownClaim = { ...request, id: ids.uuid(), instance: yield* instance.id }
        const { found, isMine } = yield* Effect.acquireRelease(claimKey(ownClaim), (attempt) =>
          attempt.isMine ? finish(ownClaim, attempt.mayStillRun) : Effect.void
        )
        if (isMine) return makeFirstClaim(ownClaim)
        if (!found.isSame) {
          return yield* new InvalidRequest({
            message: "This `Idempotency-Key` was used with a different request.",
            param: null
          })
        }
        if (found.state !== "done") return yield* new IdempotencyConflict()
        return { _tag: "Replay", result: found.result } as const
      })

      const pruneSome = Effect.fnUntraced(function* (
        olderThan: Duration.Duration,
        forget: (result: unknown) => Effect.Effect<boolean>
      ) {
        const old = yield* Effect.flatMap(
          Statements.releaseOldKeys(sql, Duration.toSeconds(olderThan), pruneBatch, deadAfter),
          decodeOld
        )
        const forgotten = yield* Effect.filter(old, ({ result }) =>
          result === null ? Effect.succeed(true) : forget(result)
        )
        const removed = yield* Statements.remove(
          sql,
          forgotten.map(({ claim: id }) => id)
        )
        return { removed: removed.length, more: forgotten.length === pruneBatch }
      })

      const isKnown = Effect.fnUntraced(function* ({ endpoint, key, org }: Omit<IdempotentRequest, "fingerprint">) {
        const found = yield* Statements.find(sql, { endpoint, key, org })
        return found.length > 0
      })

      return Idempotency.of({
        claim,
        isKnown: (request) => Effect.uninterruptible(Effect.orDie(isKnown(request))),
        prune: Effect.fn("Idempotency.prune")(function* (olderThan, forget) {
          let removed = 0
          while (true) {
            const some = yield* Effect.orDie(pruneSome(olderThan, forget))
            removed += some.removed
            if (!some.more) return removed
          }
        })
      })
    })
  )
}

const Old = Schema.Struct({ claim: Schema.String, result: Schema.Unknown })
