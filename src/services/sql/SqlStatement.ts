import type { SqlClient, SqlError, Statement } from "@effect/sql"
import { Context, Effect, Schema, type Scope } from "effect"
import { NanoUsd } from "../../domain/Money.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { rowSchema } from "../resources/ResourceRecord.ts"

export type Row = Readonly<Record<string, unknown>>

export const unexpectedRow = (row: Row) => new Error(`unexpected row: ${JSON.stringify(row)}`)

export const amountIn = (value: unknown, row: Row): NanoUsd => {
  if (typeof value !== "string") throw unexpectedRow(row)
  return NanoUsd(BigInt(value))
}

/** A query whose text is constant, so the server plans it once per connection. */
export interface Query<A> {
  readonly text: string
  readonly values: ReadonlyArray<unknown>
  readonly read: (row: Row) => A
}

/** Runs the prepared statements that every request needs, outside of transactions and uninterruptibly. */
export class Prepared extends Context.Tag("gateway/Prepared")<
  Prepared,
  { readonly run: <A>(query: Query<A>) => Effect.Effect<ReadonlyArray<A>, SqlError.SqlError> }
>() {}

/**
 * Opens a scoped connection outside of the pool, because statements that take minutes must not occupy one of its
 * connections.
 */
export class OwnConnection extends Context.Tag("gateway/OwnConnection")<
  OwnConnection,
  { readonly connect: Effect.Effect<SqlClient.SqlClient, SqlError.SqlError, Scope.Scope> }
>() {}

export const runWith = <A>(
  sql: SqlClient.SqlClient,
  { read, text, values }: Query<A>
): Effect.Effect<ReadonlyArray<A>, SqlError.SqlError> =>
  Effect.map(sql.unsafe<Row>(text, values).withoutTransform, (rows) => rows.map(read))

type RowStatement = Effect.Effect<ReadonlyArray<unknown>, SqlError.SqlError>

/** Decodes the rows of a statement. SQL errors stay typed, for callers that retry; an unexpected row is a defect. */
export const decodeRows = <A, I>(schema: Schema.Schema<A, I>) => {
  const decode = Schema.decodeUnknown(Schema.Array(schema))
  return (statement: RowStatement): Effect.Effect<ReadonlyArray<A>, SqlError.SqlError> =>
    Effect.flatMap(statement, (rows) => Effect.orDie(decode(rows)))
}

/** Runs a statement uninterruptibly and decodes its rows. Failures are defects. */
export const rowsOf = <A, I>(schema: Schema.Schema<A, I>) => {
  const decode = decodeRows(schema)
  return (statement: RowStatement): Effect.Effect<ReadonlyArray<A>> =>
    Effect.uninterruptible(Effect.orDie(decode(statement)))
}

/** As `rowsOf`, for rows whose columns are named as the record's fields. */
export const recordsOf = <A, I>(record: Schema.Schema<A, I>) => {
  const rows = rowsOf(rowSchema(record))
  return (statement: Statement.Statement<Row>): Effect.Effect<ReadonlyArray<A>> => rows(statement.withoutTransform)
}

/** Returns the fragment for a value; none if the value is undefined. */
export const whenDefined = <A>(
  value: A | undefined,
  part: (value: A) => Statement.Fragment
): ReadonlyArray<Statement.Fragment> => (value === undefined ? [] : [part(value)])

export const equals = (
  sql: SqlClient.SqlClient,
  columns: Readonly<Record<string, string | number | Date | null | undefined>>
): ReadonlyArray<Statement.Fragment> =>
  Object.entries(columns).flatMap(([column, value]) => whenDefined(value, (value) => sql`${sql(column)} = ${value}`))

/** Returns the condition that limits rows to the scope. `column` has the organization's id. */
export const inScope = (
  sql: SqlClient.SqlClient,
  scope: OrganizationScope,
  column = "org_id"
): ReadonlyArray<Statement.Fragment> => equals(sql, { [column]: scope.org })

/** Returns the conditions of a time range that includes `since` and excludes `until`, in Unix milliseconds. */
export const inTimeRange = (
  sql: SqlClient.SqlClient,
  column: string,
  { since, until }: { readonly since?: number | undefined; readonly until?: number | undefined }
): ReadonlyArray<Statement.Fragment> => [
  ...whenDefined(since, (from) => sql`${sql(column)} >= ${new Date(from)}`),
  ...whenDefined(until, (to) => sql`${sql(column)} < ${new Date(to)}`)
]

/** Locks the name until the transaction ends. Waits while another transaction has the lock. */
export const lockName = (sql: SqlClient.SqlClient, name: string): Effect.Effect<void> =>
  Effect.asVoid(Effect.orDie(sql`SELECT pg_advisory_xact_lock(hashtextextended(${toStorable(name)}, 0))`))

const lockTimeouts = { many: 250, one: 1_000 } as const

export type Waiter = keyof typeof lockTimeouts

/** Returns a parameter for `lockTimeoutSql`, in milliseconds. */
export const lockTimeoutOf = (waiter: Waiter): string => String(lockTimeouts[waiter])

/** Returns SQL that is always true and sets the transaction's lock timeout to an SQL expression in milliseconds. */
export const lockTimeoutSql = (millis: string) => `(SELECT set_config('lock_timeout', ${millis}, true)) IS NOT NULL`

/**
 * Returns SQL that is always true and reads all rows of a `WITH` expression, which takes their locks before the rest runs.
 */
export const afterAllOf = (expression: string) => `(SELECT count(*) FROM ${expression}) >= 0`

export const lockTimeout = (sql: SqlClient.SqlClient, waiter: Waiter) =>
  sql.literal(lockTimeoutSql(`'${lockTimeoutOf(waiter)}'`))

/** Replaces control characters and lone surrogates by `?`, because PostgreSQL rejects NUL and lone surrogates. */
export const toStorable = (text: string): string => text.replace(/[\p{Cc}\p{Cs}]/gu, "?")

/** Returns a `LIKE` pattern that matches the text literally, anywhere. */
export const toLikePattern = (text: string): string =>
  `%${toStorable(text)
    .normalize()
    .replace(/[\\%_]/g, "\\$&")}%`
