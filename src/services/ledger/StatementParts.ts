import type { SqlClient, SqlError } from "@effect/sql"
import { Effect } from "effect"
import { NanoUsd } from "../../domain/Money.ts"
import type { Query } from "./Prepared.ts"

/** Milliseconds that a statement for many waits for a lock: none of them may wait long for another's. */
const sharedLockWait = 250
/** The same for a statement of one organization's, of which few run at a time. */
const ownLockWait = 1_000

export type Waiter = "many" | "one"

/**
 * A condition that is always true, and by which a statement, and what follows it in its transaction, is given up when a
 * lock is not to be had in time: whoever waits occupies a connection.
 */
export const waiting = (forWhom: Waiter) =>
  `(SELECT set_config('lock_timeout', '${forWhom === "many" ? sharedLockWait : ownLockWait}', true)) IS NOT NULL`

export const waitsBriefly = (sql: SqlClient.SqlClient, forWhom: Waiter) => sql.literal(waiting(forWhom))

/** Seconds without a heartbeat after which an instance is dead and its holds are released. */
export const deadAfterSeconds = 45

export type Row = Readonly<Record<string, unknown>>

/** Runs a statement on the connection at hand. */
export const runWith = <A>(
  sql: SqlClient.SqlClient,
  { read, text, values }: Query<A>
): Effect.Effect<ReadonlyArray<A>, SqlError.SqlError> =>
  Effect.map(sql.unsafe<Row>(text, values).withoutTransform, (rows) => rows.map(read))

export const isKeyOf = <K extends string>(known: Readonly<Record<K, true>>, value: unknown): value is K =>
  typeof value === "string" && Object.hasOwn(known, value)

export const unexpectedRow = (row: Row) => new Error(`the ledger's statement answered ${JSON.stringify(row)}`)

export const amountIn = (value: unknown, row: Row): NanoUsd => {
  if (typeof value !== "string") throw unexpectedRow(row)
  return NanoUsd(BigInt(value))
}
