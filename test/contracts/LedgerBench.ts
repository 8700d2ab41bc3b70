import { Context, type Effect } from "effect"
import type { CapPeriod, KeyId } from "../../src/domain/ApiKey.ts"
import type { OrgId } from "../../src/domain/Organization.ts"

/** What a contract test needs besides the ledger itself: accounts to begin with, and a look at what is stored. */
export class LedgerBench extends Context.Tag("test/LedgerBench")<
  LedgerBench,
  {
    readonly organization: (balance: bigint) => Effect.Effect<{ readonly org: OrgId; readonly key: KeyId }>
    readonly cap: (key: KeyId, amount: bigint, period: CapPeriod) => Effect.Effect<void>
    /** Amounts charged, oldest first. */
    readonly charges: (org: OrgId) => Effect.Effect<ReadonlyArray<bigint>>
    readonly openHolds: (org: OrgId) => Effect.Effect<number>
    /** Whether every invariant holds. */
    readonly proved: Effect.Effect<boolean>
  }
>() {}
