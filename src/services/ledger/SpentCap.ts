import { Effect, type Scope } from "effect"
import type { CapSpend, KeyId } from "../../domain/ApiKey.ts"
import type { OrgId } from "../../domain/Organization.ts"
import { capResetsAt, capSpent, jobHoldsOfKey, spentOfKey } from "../access/Cap.ts"
import { stepTimeout } from "../sql/DatabaseRetry.ts"
import { amountIn, Prepared, type Query, type Row, unexpectedRow } from "../sql/Statement.ts"
import * as StatementBatcher from "../sql/StatementBatcher.ts"

/** Ids of both begin with words of their own. */
type Payer = KeyId | OrgId

interface PayerSpend extends CapSpend {
  readonly id: string
}

const readSpend = (row: Row): PayerSpend => {
  const { cap, held, id, resets_at, spent } = row
  if (typeof id !== "string" || !(resets_at === null || typeof resets_at === "string")) throw unexpectedRow(row)
  const resetsAt = resets_at === null ? undefined : new Date(resets_at)
  return { id, cap: amountIn(cap, row), spent: amountIn(spent, row), held: amountIn(held, row), resetsAt }
}

const asText = (time: string) => `to_char(${time} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`

/** What is judged by the caps of keys and of organizations. */
export const spendOfPayers = (payers: ReadonlyArray<Payer>): Query<PayerSpend> => ({
  text: `
    SELECT id, cap::text, ${spentOfKey()}::text AS spent, ${jobHoldsOfKey}::text AS held, ${asText(capResetsAt)} AS resets_at
    FROM api_keys WHERE id = ANY ($1::text[]) AND cap IS NOT NULL
    UNION ALL
    SELECT id, cap::text, (${capSpent})::text, job_holds_of(id)::text, ${asText(capResetsAt)}
    FROM organizations WHERE id = ANY ($1::text[]) AND cap IS NOT NULL`,
  values: [payers],
  read: readSpend
})

/** Undefined where the cap is not reached any more. */
export const spendOf = (rows: ReadonlyArray<PayerSpend>, payer: Payer): CapSpend | undefined => {
  const found = rows.find(({ id }) => id === payer)
  if (found === undefined || found.spent + found.held < found.cap) return undefined
  const { cap, held, resetsAt, spent } = found
  return { cap, held, resetsAt, spent }
}

/** Of the key or the organization of a refused hold. */
export type FindSpend = (payer: Payer) => Effect.Effect<CapSpend | undefined>

/** Looks up what a reached cap comes to; one statement for many refusals, and no words where it fails. */
export const makeSpendLookup: Effect.Effect<FindSpend, never, Prepared | Scope.Scope> = Effect.gen(function* () {
  const prepared = yield* Prepared
  const lookUp = yield* StatementBatcher.make({
    maxSize: 256,
    timeout: stepTimeout,
    run: (payers: ReadonlyArray<Payer>) =>
      Effect.map(prepared.run(spendOfPayers(payers)), (rows) => payers.map((payer) => spendOf(rows, payer)))
  })
  return (payer) => Effect.catchAllCause(lookUp(payer), () => Effect.succeed(undefined))
})
