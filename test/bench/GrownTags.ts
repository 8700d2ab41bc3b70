import { totalColumns as sums } from "../../src/services/requests/RequestColumns.ts"

/** What few requests have. */
export const rareTag = "team-rare"

/** Of a row of the log that is being made of `drawn_holds`. */
export const attribution = `
  CASE WHEN abs(hashtext(key_id)) % 2 = 0 THEN 'user-' || abs(hashtext(id::text)) % 5000 END,
  CASE WHEN right(id::text, 5) = '0beef' THEN '${rareTag}'
    WHEN abs(hashtext(key_id)) % 2 = 0 THEN 'team-' || floor(20 * power(pick, 2))::int END`

const added = sums.map((name) => `sum(${name}) AS ${name}`).join(", ")

/** What the triggers would have added by tag, of `parts` that are of these columns of a series. */
export const tagTotals = (series: string) => `
  INSERT INTO usage_tags (day, org_id, tag, number)
  SELECT *, row_number() OVER (PARTITION BY day, org_id) FROM (
    SELECT DISTINCT usage_day(hour) AS day, org_id, tag FROM parts WHERE tag <> ''
  ) AS tags;
  INSERT INTO usage_tag_series (series_id, tag)
  SELECT DISTINCT id, tag FROM parts JOIN usage_series USING (${series}) WHERE tag <> '';
  ANALYZE usage_tag_series;
  INSERT INTO usage_tag_totals (span, series_id, starts_at, ${sums.join(", ")})
  SELECT 'hour', tagged.id, hour, ${sums.join(", ")}
  FROM parts JOIN usage_series USING (${series})
  JOIN usage_tag_series AS tagged ON tagged.series_id = usage_series.id AND tagged.tag = parts.tag ORDER BY hour;
  INSERT INTO usage_tag_totals (span, series_id, starts_at, ${sums.join(", ")})
  SELECT 'day', series_id, date_trunc('day', starts_at, 'UTC'), ${added} FROM usage_tag_hours GROUP BY 1, 2, 3 ORDER BY 3;`
