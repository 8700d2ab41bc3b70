import type { SqlClient, Statement } from "@effect/sql"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"

interface Listing {
  /**
   * Columns and their values; undefined values are ignored. There must be an index that begins with the first defined one.
   */
  readonly equal: Readonly<Record<string, string | number | undefined>>
  readonly where: ReadonlyArray<Statement.Fragment>
  /** The columns by which rows are ordered. In the index, they follow the column of `equal`. */
  readonly by: ReadonlyArray<string>
  /** The direction of `by` in that index; its first column ascends. Default: descending. */
  readonly indexed?: "asc" | "desc"
  /** Default: descending, the newest first. */
  readonly order?: "asc" | "desc"
  /** Undefined: all. */
  readonly limit: number | undefined
}

/** Returns the direction in which the scan meets the index's first column, which ascends. */
const scanOrder = (order: "asc" | "desc", indexed: "asc" | "desc") => (order === indexed ? "ASC" : "DESC")

/**
 * Returns WHERE, ORDER BY and LIMIT in a form for which the planner always scans the index of the filter and the order.
 * With `=` instead of `= ANY`, it might scan an index of times or ids over the rows of all owners. With a limit outside of a
 * subquery, it might sort all rows of an owner for which it estimates few.
 */
export const listing = (
  sql: SqlClient.SqlClient,
  { by, equal, indexed = "desc", limit, order = "desc", where }: Listing
): Statement.Fragment => {
  const filters = Object.entries(equal).filter(([, value]) => value !== undefined)
  const [first] = filters
  const conditions = filters.map(([column, value], index) => {
    if (index > 0) return sql`${sql(column)} = ${value}`
    return sql`${sql(column)} = ANY (ARRAY[${value}]::${sql.literal(typeof value === "number" ? "integer" : "text")}[])`
  })
  const sortColumns = [
    ...(first === undefined ? [] : [`${first[0]} ${scanOrder(order, indexed)}`]),
    ...by.map((column) => `${column} ${order.toUpperCase()}`)
  ]
  return sql`WHERE ${sql.and([...conditions, ...where])}
    ORDER BY ${sql.literal(sortColumns.join(", "))} LIMIT (SELECT ${limit ?? null}::bigint)`
}

type Numbered = "ledger_entries" | "webhook_deliveries"

const uuidOf = {
  ledger_entries: (from: string) => `coalesce(${from}.hold_id, ${from}.public_id)`,
  webhook_deliveries: (from: string) => `${from}.public_id`
}

/** Returns SQL: a row's public id, which for older rows is their encrypted number. `from` is the table or an alias. */
export const publicId = (table: Numbered, from: string): string =>
  `coalesce(${uuidOf[table](from)}::text, seal('${table}', ${from}.id, ${from}.org_id))`

/**
 * Returns SQL: a row's id for the scope. Operators get the row number. Others get the public id, because numbers reveal the
 * volume of all organizations.
 */
export const idFor = (scope: OrganizationScope, table: Numbered, from: string): string =>
  scope.org === undefined ? `${from}.id` : publicId(table, from)

/** Whether the text has the form of a public id. */
export const isPublicId = (text: string): boolean =>
  /^(?:[0-9a-f]{16}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/.test(text)

/** Whether the text has the form of an id for the scope. */
export const isIdFor = (scope: OrganizationScope, text: string): boolean =>
  scope.org === undefined ? /^\d{1,15}$/.test(text) : isPublicId(text)

/** Returns SQL: the number of the row with that id. */
export const numberOf = (
  sql: SqlClient.SqlClient,
  scope: OrganizationScope,
  table: Numbered,
  id: string
): Statement.Fragment =>
  scope.org === undefined ? sql`${id}::bigint` : sql`(SELECT number_of(${table}, ${id}, ${scope.org}))`
