import type { SqlClient } from "@effect/sql"
import { taggedParts, totalColumns } from "../requests/RequestColumns.ts"
import type { Row } from "../sql/Statement.ts"

/** Both the totals and the rows are complete from here on. */
export const comparable = "(SELECT greatest(filled_from, rows_from) FROM usage_bounds)"
const added = totalColumns.map((name) => `sum(${name}) AS ${name}`).join(", ")
const [totalled, counted] = ["totals", "counted"].map((from) =>
  totalColumns.map((name) => `coalesce(${from}.${name}, 0)`).join(", ")
)
/** Totals merge names that were not on sale; one may be on sale later. */
const identity = [
  "org_id",
  "key_id",
  "CASE WHEN is_sold THEN model ELSE '' END AS model",
  "route",
  "provider",
  "surface",
  "status",
  "is_sold"
]

const parts = `
  SELECT p.* FROM request_log AS r, usage_parts(1, ROW(r.*)::request_log) AS p
  WHERE r.at >= ${comparable} AND r.id NOT IN (SELECT id FROM uncounted_requests)`

const hoursAgainstRows = (hours: string, rows: string, identity: ReadonlyArray<string>) => {
  const [named, numbers] = [identity.join(", "), identity.map((_, index) => index + 2).join(", ")]
  return `
    WITH totals AS (
      SELECT starts_at AS hour, ${named}, ${added} FROM ${hours} WHERE starts_at >= ${comparable} GROUP BY 1, ${numbers}
    ), counted AS (
      SELECT hour, ${named}, ${added} FROM (${rows}) AS rows GROUP BY 1, ${numbers}
    )
    SELECT *, totals.charge AS totalled, counted.charge AS counted FROM totals
    FULL JOIN counted USING (hour, ${identity.map((name) => name.replace(/^.* AS /, "")).join(", ")})
    WHERE (${totalled}) IS DISTINCT FROM (${counted})`
}

const taggedRows = `${taggedParts.before}SELECT * FROM (${parts}) AS parts WHERE tag <> ''${taggedParts.after}`

const taggedHours = `(
  SELECT usage_series.*, tag, hours.* FROM usage_tag_hours AS hours
  JOIN usage_tag_series AS tagged ON tagged.id = hours.series_id JOIN usage_series ON usage_series.id = tagged.series_id
) AS tagged_hours`

const daysAgainstHours = (days: string, hours: string) => `
  WITH totals AS (SELECT series_id, starts_at, ${added} FROM ${days} GROUP BY 1, 2), counted AS (
    SELECT series_id, date_trunc('day', starts_at, 'UTC') AS starts_at, ${added} FROM ${hours} GROUP BY 1, 2
  )
  SELECT series_id, starts_at AS day, totals.requests, totals.charge AS totalled, counted.charge AS counted
  FROM totals FULL JOIN counted USING (series_id, starts_at)
  WHERE (${totalled}) IS DISTINCT FROM (${counted})`

/** What the totals of usage say is what the rows of the log come to. */
export const totalsInvariants = (sql: SqlClient.SqlClient) => ({
  "an hour's totals are the sums of its requests": sql.unsafe<Row>(
    hoursAgainstRows("usage_hours JOIN usage_series ON usage_series.id = series_id", parts, identity)
  ),
  "a day's totals are the sums of its hours": sql.unsafe<Row>(daysAgainstHours("usage_days", "usage_hours")),
  "an hour's totals of a tag are the sums of its requests": sql.unsafe<Row>(
    hoursAgainstRows(taggedHours, taggedRows, [...identity, "tag"])
  ),
  "a day's totals of a tag are the sums of its hours": sql.unsafe<Row>(
    daysAgainstHours("usage_tag_days", "usage_tag_hours")
  )
})
