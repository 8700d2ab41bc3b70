import type { SqlClient, Statement } from "@effect/sql"
import type { Form, Inputs, Values } from "./Input.ts"

/** Columns hold nano-USD under the name of the field without its unit. */
const columnOf = (field: string): string => field.replace(/_usd$/, "")

/** For a SELECT whose rows have the names of the fields. */
export const selectList = (fields: ReadonlyArray<string>): string =>
  fields.map((field) => (columnOf(field) === field ? field : `${columnOf(field)} AS ${field}`)).join(", ")

interface Assignment {
  readonly column: string
  readonly value: Statement.Fragment
}

const lists: ReadonlySet<Form["kind"]> = new Set(["choices", "patterns"])

/** Undefined values are left out. */
export const assignmentsOf = <Of extends Inputs>(
  sql: SqlClient.SqlClient,
  inputs: Of,
  values: Values<Of>
): ReadonlyArray<Assignment> =>
  Object.entries(inputs).flatMap(([name, { form }]) => {
    const value = values[name]
    if (value === undefined) return []
    return [{ column: columnOf(name), value: lists.has(form.kind) ? sql`${value}::text[]` : sql`${value}` }]
  })
