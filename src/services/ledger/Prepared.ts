import type { SqlError } from "@effect/sql"
import { Context, type Effect } from "effect"

/** A statement with its values by position; the same text each time, so that the server plans it once. */
export interface Query<Row> {
  readonly text: string
  readonly values: ReadonlyArray<unknown>
  /** Reads a row as the driver gives it. */
  readonly read: (row: Readonly<Record<string, unknown>>) => Row
}

/** The shortest way to the database, for the statements of every request: outside of transactions, never interrupted. */
export class Prepared extends Context.Tag("gateway/Prepared")<
  Prepared,
  { readonly run: <Row>(query: Query<Row>) => Effect.Effect<ReadonlyArray<Row>, SqlError.SqlError> }
>() {}
