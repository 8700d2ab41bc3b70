import type { SqlClient, SqlError } from "@effect/sql"
import { Context, Effect, Schema } from "effect"

export type Row = Readonly<Record<string, unknown>>

/** A statement with its values by position; the same text each time, so that the server plans it once. */
export interface Query<A> {
  readonly text: string
  readonly values: ReadonlyArray<unknown>
  /** Reads a row as the driver gives it. */
  readonly read: (row: Row) => A
}

/** The shortest way to the database, for the statements of every request: outside of transactions, never interrupted. */
export class Prepared extends Context.Tag("gateway/Prepared")<
  Prepared,
  { readonly run: <A>(query: Query<A>) => Effect.Effect<ReadonlyArray<A>, SqlError.SqlError> }
>() {}

/** Runs a statement on the connection at hand, within its transaction. */
export const runWith = <A>(
  sql: SqlClient.SqlClient,
  { read, text, values }: Query<A>
): Effect.Effect<ReadonlyArray<A>, SqlError.SqlError> =>
  Effect.map(sql.unsafe<Row>(text, values).withoutTransform, (rows) => rows.map(read))

/** Runs statements that have to succeed, uninterrupted, and decodes their rows. */
export const rowsOf = <A, I>(schema: Schema.Schema<A, I>) => {
  const decode = Schema.decodeUnknown(Schema.Array(schema))
  return (statement: Effect.Effect<ReadonlyArray<unknown>, SqlError.SqlError>): Effect.Effect<ReadonlyArray<A>> =>
    Effect.uninterruptible(Effect.orDie(Effect.flatMap(statement, decode)))
}

/** Milliseconds to wait for a lock, for a statement of many requests and for one of a single organization's. */
const lockTimeouts = { many: 250, one: 1_000 } as const

export type Waiter = keyof typeof lockTimeouts

/** A condition that is always true, and that gives up the rest of the transaction when a lock is not had in time. */
export const waiting = (forWhom: Waiter) =>
  `(SELECT set_config('lock_timeout', '${lockTimeouts[forWhom]}', true)) IS NOT NULL`

export const waitsBriefly = (sql: SqlClient.SqlClient, forWhom: Waiter) => sql.literal(waiting(forWhom))

/** PostgreSQL takes neither NUL nor half a surrogate pair, and a client's or provider's text may hold either. */
export const storable = (text: string): string => text.replace(/[\p{Cc}\p{Cs}]/gu, "?")
