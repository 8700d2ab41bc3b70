import type { SqlClient, Statement } from "@effect/sql"

export interface Listing {
  /** Columns and what they must equal; an index begins with the first that is given. */
  readonly equal: Readonly<Record<string, string | undefined>>
  readonly where: ReadonlyArray<Statement.Fragment>
  /** The columns after it in that index. */
  readonly by: ReadonlyArray<string>
  /** Newest first by default. */
  readonly order?: "asc" | "desc"
  /** Undefined: all. */
  readonly limit: number | undefined
}

const reverse = { asc: "DESC", desc: "ASC" }

/**
 * WHERE, ORDER BY and LIMIT that leave the planner one way: to walk the index that serves the filter and the order, whatever
 * it knows of the rows. With a constant it may walk an index of time over everybody's rows instead, which an array's order
 * excludes; and with a limit that it knows it may sort all rows of one owner, where it takes them for few.
 */
export const listing = (
  sql: SqlClient.SqlClient,
  { by, equal, limit, order = "desc", where }: Listing
): Statement.Fragment => {
  const given = Object.entries(equal).filter(([, value]) => value !== undefined)
  const [first] = given
  const conditions = given.map(([column, value], index) =>
    index === 0 ? sql`${sql(column)} = ANY (ARRAY[${value}]::text[])` : sql`${sql(column)} = ${value}`
  )
  const sorted = [
    ...(first === undefined ? [] : [`${first[0]} ${reverse[order]}`]),
    ...by.map((column) => `${column} ${order.toUpperCase()}`)
  ]
  return sql`WHERE ${sql.and([...conditions, ...where])}
    ORDER BY ${sql.literal(sorted.join(", "))} LIMIT (SELECT ${limit ?? null}::bigint)`
}
