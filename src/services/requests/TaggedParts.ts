import { totalColumns } from "./RequestColumns.ts"

const group = "hour, org_id, key_id, model, route, provider, surface, status, is_sold"
const added = totalColumns.map((name) => `sum(${name})::bigint AS ${name}`).join(", ")
const shown = `${group}, ${totalColumns.join(", ")}`

/** As `usage_tags` numbers them. */
const maxTagsPerDay = 1_000

/**
 * The SQL before and after a query of `usage_parts()` that sums it by tag. New tags of a day, in order, get the numbers that
 * are left; the rest is summed as `other`.
 */
export const taggedParts = {
  before: `
    SELECT ${shown},
      CASE WHEN NOT is_new OR dense_rank() OVER (PARTITION BY day, org_id, is_new ORDER BY tag) <= ${maxTagsPerDay} - (
        SELECT coalesce(max(number), 0) FROM usage_tags WHERE day = summed.day AND org_id = summed.org_id
      ) THEN tag ELSE 'other' END AS tag
    FROM (
      SELECT sums.*, sums.tag NOT IN ('', 'other') AND own.tag IS NULL AS is_new
      FROM (SELECT ${group}, usage_day(hour) AS day, tag, ${added} FROM (`,
  after: `) AS parts GROUP BY ${group}, tag) AS sums
      LEFT JOIN usage_tags AS own ON own.day = sums.day AND own.org_id = sums.org_id AND own.tag = sums.tag
    ) AS summed`
}
