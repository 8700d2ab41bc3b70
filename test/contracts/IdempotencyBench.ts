import type { SqlError } from "@effect/sql"
import { Context, type Duration, type Effect, type Scope } from "effect"
import type { OrgId } from "../../src/domain/Organization.ts"
import type { Idempotency } from "../../src/services/idempotency/Idempotency.ts"

/** How a process can be gone: its holds released, stopped in order, silent for a minute, or unheard of. */
export const deaths = ["swept", "stopped", "silent", "unknown"] as const
export type Death = (typeof deaths)[number]

/** What a contract test needs besides the keys themselves. */
export class IdempotencyBench extends Context.Tag("test/IdempotencyBench")<
  IdempotencyBench,
  {
    readonly organization: Effect.Effect<OrgId>
    /** What paid for a result: a hold that is settled. */
    readonly payment: (org: OrgId) => Effect.Effect<string>
    /** All of the statements happen, or none. */
    readonly atomically: <A, E>(statements: Effect.Effect<A, E>) => Effect.Effect<A, E | SqlError.SqlError>
    /** Makes what the organization's keys have older. */
    readonly age: (org: OrgId, by: Duration.DurationInput) => Effect.Effect<void>
    /** Another process on the same keys, and a way for what it works on to lose it. */
    readonly another: Effect.Effect<
      { readonly idempotency: Idempotency["Type"]; readonly die: (how: Death) => Effect.Effect<void> },
      never,
      Scope.Scope
    >
  }
>() {}
