import type { SqlError } from "@effect/sql"
import { Context, type Duration, type Effect, type Scope } from "effect"
import type { IdempotencyConflict, InvalidRequest } from "../domain/Failure.ts"
import type { OrgId } from "../domain/Organization.ts"

export interface IdempotentRequest {
  readonly org: OrgId
  readonly endpoint: "images" | "videos"
  /** 1 to 255 visible ASCII characters. */
  readonly key: string
  /** Of the decoded request: a retry has the same, whatever its bytes were on the wire. */
  readonly fingerprint: string
}

/** What is kept of a result: enough to build the same answer again. Never media. */
export type KeptResult = Readonly<Record<string, unknown>>

/**
 * The right to work under a key. The effects are statements for a transaction of the caller's, who repeats them if need
 * be; the key is freed when the scope of the claim closes, unless a result was kept or bound.
 */
export interface FirstClaim {
  readonly _tag: "First"
  /** The final result, replayed from now on. `hold` is what paid for it. */
  readonly keep: (result: KeptResult, hold: string) => Effect.Effect<void, SqlError.SqlError>
  /**
   * A result that holds if this process dies now. Others still conflict while the scope is open; when it closes the
   * result is final, unless the key was freed.
   */
  readonly bind: (result: KeptResult, hold: string) => Effect.Effect<void, SqlError.SqlError>
  /** Frees a bound key: the request failed after all. */
  readonly free: Effect.Effect<void, SqlError.SqlError>
}

export interface Replay {
  readonly _tag: "Replay"
  readonly result: unknown
}

/** One request, one result, one charge, however often and from wherever it is sent. */
export class Idempotency extends Context.Tag("gateway/Idempotency")<
  Idempotency,
  {
    readonly claim: (
      request: IdempotentRequest
    ) => Effect.Effect<FirstClaim | Replay, IdempotencyConflict | InvalidRequest, Scope.Scope>
    /** Removes keys older than the age, and what `forget` is told of their results; says how many. */
    readonly prune: (
      olderThan: Duration.Duration,
      forget: (result: unknown) => Effect.Effect<void>
    ) => Effect.Effect<number>
  }
>() {}
