import type { SqlClient, Statement } from "@effect/sql"
import type { Inputs, Written } from "./Input.ts"

/** The database counts in nano-USD, and does not say so. */
export const columnOf = (field: string): string => field.replace(/_usd$/, "")

/** For a SELECT whose rows have the names of the fields. */
export const selected = (fields: ReadonlyArray<string>): string =>
  fields.map((field) => (columnOf(field) === field ? field : `${columnOf(field)} AS ${field}`)).join(", ")

interface Assigned {
  readonly column: string
  readonly value: Statement.Fragment
}

/** What is undefined has no part in the statement. */
export const assigned = <Of extends Inputs>(
  sql: SqlClient.SqlClient,
  inputs: Of,
  written: Written<Of>
): ReadonlyArray<Assigned> =>
  Object.entries(inputs).flatMap(([name, { form }]) => {
    const value = written[name]
    if (value === undefined) return []
    return [{ column: columnOf(name), value: form.kind === "choices" ? sql`${value}::text[]` : sql`${value}` }]
  })
