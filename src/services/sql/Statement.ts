import type { SqlClient, SqlError, Statement } from "@effect/sql"
import { Context, Effect, Schema, type Scope } from "effect"
import { NanoUsd } from "../../domain/Money.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { rowSchema } from "../resources/Record.ts"

export type Row = Readonly<Record<string, unknown>>

export const unexpectedRow = (row: Row) => new Error(`a statement answered ${JSON.stringify(row)}`)

export const amountIn = (value: unknown, row: Row): NanoUsd => {
  if (typeof value !== "string") throw unexpectedRow(row)
  return NanoUsd(BigInt(value))
}

/** The same text each time, so that the server plans it once. */
export interface Query<A> {
  readonly text: string
  readonly values: ReadonlyArray<unknown>
  readonly read: (row: Row) => A
}

/** For the statements of every request: outside of transactions, never interrupted. */
export class Prepared extends Context.Tag("gateway/Prepared")<
  Prepared,
  { readonly run: <A>(query: Query<A>) => Effect.Effect<ReadonlyArray<A>, SqlError.SqlError> }
>() {}

/** Opens a scoped connection beside the pool, for statements that take minutes. */
export class OwnConnection extends Context.Tag("gateway/OwnConnection")<
  OwnConnection,
  { readonly connect: Effect.Effect<SqlClient.SqlClient, SqlError.SqlError, Scope.Scope> }
>() {}

export const runWith = <A>(
  sql: SqlClient.SqlClient,
  { read, text, values }: Query<A>
): Effect.Effect<ReadonlyArray<A>, SqlError.SqlError> =>
  Effect.map(sql.unsafe<Row>(text, values).withoutTransform, (rows) => rows.map(read))

export const rowsOf = <A, I>(schema: Schema.Schema<A, I>) => {
  const decode = Schema.decodeUnknown(Schema.Array(schema))
  return (statement: Effect.Effect<ReadonlyArray<unknown>, SqlError.SqlError>): Effect.Effect<ReadonlyArray<A>> =>
    Effect.uninterruptible(Effect.orDie(Effect.flatMap(statement, decode)))
}

/** Runs a statement and decodes rows whose columns are named as the record's fields. */
export const recordsOf = <A, I>(record: Schema.Schema<A, I>) => {
  const rows = rowsOf(rowSchema(record))
  return (statement: Statement.Statement<Row>): Effect.Effect<ReadonlyArray<A>> => rows(statement.withoutTransform)
}

/** What a query or a change leaves out has no part in the statement. */
export const whenDefined = <A>(
  value: A | undefined,
  part: (value: A) => Statement.Fragment
): ReadonlyArray<Statement.Fragment> => (value === undefined ? [] : [part(value)])

export const equals = (
  sql: SqlClient.SqlClient,
  columns: Readonly<Record<string, string | number | Date | null | undefined>>
): ReadonlyArray<Statement.Fragment> =>
  Object.entries(columns).flatMap(([column, value]) => whenDefined(value, (value) => sql`${sql(column)} = ${value}`))

/** What is in the scope; `column` has the id of an organization. */
export const inScope = (
  sql: SqlClient.SqlClient,
  scope: OrganizationScope,
  column = "org_id"
): ReadonlyArray<Statement.Fragment> => equals(sql, { [column]: scope.org })

/** From `since` on, before `until`. */
export const inTimeRange = (
  sql: SqlClient.SqlClient,
  column: string,
  { since, until }: { readonly since?: number | undefined; readonly until?: number | undefined }
): ReadonlyArray<Statement.Fragment> => [
  ...whenDefined(since, (from) => sql`${sql(column)} >= ${new Date(from)}`),
  ...whenDefined(until, (to) => sql`${sql(column)} < ${new Date(to)}`)
]

/** Waits until no other transaction has locked the name, and locks it until this one ends. */
export const lockName = (sql: SqlClient.SqlClient, name: string): Effect.Effect<void> =>
  Effect.asVoid(Effect.orDie(sql`SELECT pg_advisory_xact_lock(hashtextextended(${toStorable(name)}, 0))`))

const lockTimeouts = { many: 250, one: 1_000 } as const

export type Waiter = keyof typeof lockTimeouts

/** Always true; the rest of the transaction fails when a lock takes longer. */
export const lockTimeoutSql = (waiter: Waiter) =>
  `(SELECT set_config('lock_timeout', '${lockTimeouts[waiter]}', true)) IS NOT NULL`

/** Always true; reads an expression of the `WITH` to its end first, so that its locks are taken before. */
export const afterAllOf = (expression: string) => `(SELECT count(*) FROM ${expression}) >= 0`

export const lockTimeout = (sql: SqlClient.SqlClient, waiter: Waiter) => sql.literal(lockTimeoutSql(waiter))

/** PostgreSQL takes neither NUL nor a lone surrogate. */
export const toStorable = (text: string): string => text.replace(/[\p{Cc}\p{Cs}]/gu, "?")

/** A pattern of `LIKE` that finds the text itself, whatever is in it. */
export const toLikePattern = (text: string): string =>
  `%${toStorable(text)
    .normalize()
    .replace(/[\\%_]/g, "\\$&")}%`
