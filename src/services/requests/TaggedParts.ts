import { totalColumns } from "./RequestColumns.ts"

const group = "hour, org_id, key_id, model, route, provider, surface, status, is_sold"
const added = totalColumns.map((name) => `sum(${name})::bigint AS ${name}`).join(", ")
const shown = `${group}, ${totalColumns.join(", ")}`.replaceAll(/\w+/g, (name) => `summed.${name}`)

const lookUp = (name: string, condition: string) =>
  `LEFT JOIN usage_tags AS ${name} ON ${name}.day = usage_day(summed.hour) AND ${name}.org_id = summed.org_id AND ${condition}`

/**
 * What stands before and after a query of `usage_parts()` in one of their sums by what their tags are added up as: once a
 * day has its last tag, each other one is `other`.
 */
export const taggedParts = {
  before: `
    SELECT ${shown},
      CASE WHEN summed.tag IN ('', 'other') OR own.tag IS NOT NULL OR last.tag IS NULL THEN summed.tag ELSE 'other' END AS tag
    FROM (SELECT ${group}, tag, ${added} FROM (`,
  after: `) AS parts GROUP BY ${group}, tag) AS summed
    ${lookUp("own", "own.tag = summed.tag")}
    ${lookUp("last", "last.number = 1000")}`
}
