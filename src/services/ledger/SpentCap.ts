import { Effect, type Scope } from "effect"
import type { CapSpend, KeyId } from "../../domain/ApiKey.ts"
import { stepTimeout } from "../sql/DatabaseRetry.ts"
import { Prepared, type Query, type Row } from "../sql/Statement.ts"
import * as StatementBatcher from "../sql/StatementBatcher.ts"
import { amountIn, unexpectedRow } from "./LedgerRows.ts"

interface KeySpend extends CapSpend {
  readonly key: string
}

const readSpend = (row: Row): KeySpend => {
  const { cap, held, key, resets_at, spent } = row
  if (typeof key !== "string" || !(resets_at === null || typeof resets_at === "string")) throw unexpectedRow(row)
  const resetsAt = resets_at === null ? undefined : new Date(resets_at)
  return { key, cap: amountIn(cap, row), spent: amountIn(spent, row), held: amountIn(held, row), resetsAt }
}

/** What holds add up against the caps of keys. */
export const spendOfKeys = (keys: ReadonlyArray<KeyId>): Query<KeySpend> => ({
  text: `
    SELECT id AS key, cap::text, (
      SELECT coalesce(sum(spent), 0) FROM key_spend
      WHERE key_id = api_keys.id AND day >= cap_period_start(api_keys.cap_period)
    )::text AS spent, (
      SELECT coalesce(sum(amount), 0) FROM holds
      WHERE key_id = api_keys.id AND state = 'open' AND instance_id IS NULL
    )::text AS held,
    CASE WHEN cap_period <> 'total' THEN
      to_char(cap_period_start(cap_period) + ('1 ' || cap_period)::interval, 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
    END AS resets_at
    FROM api_keys WHERE id = ANY ($1::text[]) AND cap IS NOT NULL`,
  values: [keys],
  read: readSpend
})

/** Undefined where the cap is not reached any more. */
export const spendOf = (rows: ReadonlyArray<KeySpend>, key: KeyId): CapSpend | undefined => {
  const found = rows.find((row) => row.key === key)
  if (found === undefined || found.spent + found.held < found.cap) return undefined
  const { cap, held, resetsAt, spent } = found
  return { cap, held, resetsAt, spent }
}

/** Of the key of a refused hold. */
export type FindSpend = (key: KeyId) => Effect.Effect<CapSpend | undefined>

/** Looks up what a reached cap comes to; one statement for many refusals, and no words where it fails. */
export const makeSpendLookup: Effect.Effect<FindSpend, never, Prepared | Scope.Scope> = Effect.gen(function* () {
  const prepared = yield* Prepared
  const lookUp = yield* StatementBatcher.make({
    maxSize: 256,
    timeout: stepTimeout,
    run: (keys: ReadonlyArray<KeyId>) =>
      Effect.map(prepared.run(spendOfKeys(keys)), (rows) => keys.map((key) => spendOf(rows, key)))
  })
  return (key) => Effect.catchAllCause(lookUp(key), () => Effect.succeed(undefined))
})
