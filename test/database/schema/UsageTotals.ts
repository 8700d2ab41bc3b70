/** `usageTotals`: the text of `migrations/functions/usage_totals.sql`, which sums each counted column of the log. */

import { Record } from "effect"
import { totalColumns } from "../../../src/services/requests/RequestColumns.ts"
import { requestCounts } from "../../../src/services/requests/RequestCounts.ts"

/** Breaks a list where a line would get longer than 120 characters. */
const wrap = (items: ReadonlyArray<string>, indent: string): string => {
  const lines = [""]
  for (const item of items) {
    const line = lines.at(-1) ?? ""
    const longer = line === "" ? item : `${line}, ${item}`
    if (line !== "" && indent.length + longer.length > 118) lines.push(item)
    else lines[lines.length - 1] = longer
  }
  return lines.join(`,\n${indent}`)
}

const series = ["org_id", "key_id", "model", "route", "provider", "surface", "status", "is_sold"]

/** Values are limited, so that no provider's report can overflow a sum. */
const limited = (value: string, limit: string) => `sign * least(coalesce(${value}, 0), ${limit}::bigint)`

/** What an attribute of a part is: of the request itself, and of a failed attempt `a` of it. */
const parts: Readonly<Record<string, readonly [own: string, attempt: string]>> = {
  hour: ["date_trunc('hour', r.at, 'UTC')", "date_trunc('hour', r.at, 'UTC')"],
  org_id: ["r.org_id", "r.org_id"],
  key_id: ["r.key_id", "r.key_id"],
  model: ["coalesce(r.model, '')", "coalesce(r.model, '')"],
  route: ["coalesce(r.route, '')", "coalesce(a.route, '')"],
  provider: ["coalesce(r.provider, '')", "coalesce(a.provider, '')"],
  surface: ["r.surface", "r.surface"],
  status: ["r.status", "r.status"],
  is_sold: [
    "r.status NOT IN (400, 404) OR r.hold_id IS NOT NULL",
    "r.status NOT IN (400, 404) OR r.hold_id IS NOT NULL"
  ],
  requests: ["sign::bigint", "0"],
  errors: ["sign::bigint * (r.status >= 500 OR r.code IS NOT DISTINCT FROM 'stream_error')::int", "0"],
  ...Record.map(requestCounts, (_, column) => [limited(`r.${column}`, "1e12"), "0"] as const),
  charge: ["sign * r.charge", "0"],
  cost: [limited("r.cost", "1e15"), limited("a.cost_nano", "1e15")],
  margin: [
    "CASE WHEN r.cost IS NULL THEN 0 ELSE sign * (r.charge - least(r.cost, 1e15::bigint)) END",
    `-${limited("a.cost_nano", "1e15")}`
  ],
  costed: ["sign::bigint * (r.cost IS NOT NULL)::int", "sign * (a.cost_nano IS NOT NULL)::int"],
  uncosted: ["sign::bigint * (r.cost IS NULL AND r.charge > 0)::int", "0"],
  series_id: ["NULL::integer", "NULL::integer"],
  tag: ["coalesce(r.tag, '')", "coalesce(r.tag, '')"],
  stated_cost: [limited("r.stated_cost", "1e15"), limited("a.stated_nano", "1e15")],
  compared_cost: [
    `CASE WHEN r.stated_cost IS NULL THEN 0 ELSE ${limited("r.cost", "1e15")} END`,
    `CASE WHEN a.stated_nano IS NULL THEN 0 ELSE ${limited("a.cost_nano", "1e15")} END`
  ],
  cost_drift: [
    `CASE WHEN r.stated_cost IS NULL OR r.cost IS NULL THEN 0
      ELSE sign * (least(r.stated_cost, 1e15::bigint) - least(r.cost, 1e15::bigint)) END`,
    `CASE WHEN a.stated_nano IS NULL OR a.cost_nano IS NULL THEN 0
      ELSE sign * (least(a.stated_nano, 1e15::bigint) - least(a.cost_nano, 1e15::bigint)) END`
  ]
}

const partOf = (attribute: string): readonly [string, string] => {
  const part = parts[attribute]
  if (part === undefined) throw new Error(`usage_part.${attribute} has no value`)
  return part
}

/** Adds `rows`, a table expression with the columns of `usage_part`, to a table of totals by the day and by the hour. */
const addTo = (table: string, id: string, rows: string) => `INSERT INTO ${table} AS t (series_id, span, starts_at,
    ${wrap(totalColumns, "    ")})
  SELECT ${id}, s.span, s.starts_at,
    ${wrap(
      totalColumns.map((column) => `sum(p.${column})`),
      "    "
    )}
  FROM ${rows},
    LATERAL (VALUES ('day', date_trunc('day', p.hour, 'UTC')), ('hour', p.hour)) AS s (span, starts_at)
  GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
  ON CONFLICT (series_id, starts_at, span) DO UPDATE SET
    ${wrap(
      totalColumns.map((column) => `${column} = t.${column} + excluded.${column}`),
      "    "
    )};`

const taggedParts = `(SELECT part.*, usage_series_of(part) AS series, usage_tag_of(part) AS named
    FROM unnest(tagged) AS part OFFSET 0) AS p`

const named = new Set(["hour", ...series, "tag"])

/** The attributes of the type `usage_part`, in their order, from the text of `migrations/schema.sql`. */
export const attributesOf = (schema: string): ReadonlyArray<string> => {
  const [, list = ""] = /^CREATE TYPE usage_part AS \((.*?)^\)/ms.exec(schema) ?? []
  return Array.from(list.matchAll(/^ {2}(\w+)/gm), ([, name = ""]) => name)
}

export const usageTotals = (attributes: ReadonlyArray<string>): string => `\
-- \`npm run schema\` writes this file from services/requests/RequestCounts.ts. Its text is in
-- test/database/schema/UsageTotals.ts.

-- Returns the part that a log row adds to the totals, and one part for each failed attempt with a cost.
CREATE OR REPLACE FUNCTION usage_parts(sign integer, r request_log) RETURNS SETOF usage_part LANGUAGE sql STABLE AS $$
  SELECT ${wrap(
    attributes.map((attribute) => partOf(attribute)[0]),
    "    "
  )}
  UNION ALL
  SELECT ${wrap(
    attributes.map((attribute) => partOf(attribute)[1]),
    "    "
  )}
  FROM jsonb_to_recordset(r.attempts) AS a (provider text, route text, cost_nano bigint, stated_nano bigint)
  WHERE a.cost_nano IS NOT NULL OR a.stated_nano IS NOT NULL
$$;

-- To prevent deadlocks between writers, inserts series in one order, with sold models first, and then adds totals in
-- the order of their keys. These locks are the last ones that a transaction takes.
CREATE OR REPLACE FUNCTION add_usage(parts usage_part[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  -- Adds up the parts first, so fewer series are looked up.
  sums usage_part[] := ARRAY(
    SELECT ROW(${wrap(
      attributes.map((attribute) =>
        attribute === "series_id" ? "NULL" : named.has(attribute) ? `p.${attribute}` : `sum(p.${attribute})`
      ),
      "      "
    )})::usage_part
    FROM unnest(parts) AS p
    GROUP BY ${["hour", ...series, "tag"].map((column) => `p.${column}`).join(", ")}
  );
  sold boolean;
BEGIN
  PERFORM admit_tags(ARRAY(SELECT p FROM unnest(sums) AS p WHERE p.tag <> ''));
  FOREACH sold IN ARRAY ARRAY[true, false] LOOP
    INSERT INTO usage_series (${series.join(", ")})
    SELECT DISTINCT p.org_id, p.key_id, usage_model(p.model, p.is_sold), p.route, p.provider, p.surface, p.status, p.is_sold
    FROM unnest(sums) AS p WHERE p.is_sold = sold AND usage_series_of(p) IS NULL
    ORDER BY 1, 2, 3, 4, 5, 6, 7, 8
    ON CONFLICT DO NOTHING;
  END LOOP;
  ${addTo("usage_totals", "p.series", "(SELECT part.*, usage_series_of(part) AS series FROM unnest(sums) AS part OFFSET 0) AS p")}
  PERFORM add_tag_usage(ARRAY(SELECT p FROM unnest(sums) AS p WHERE p.tag <> ''));
END $$;

CREATE OR REPLACE FUNCTION add_tag_usage(tagged usage_part[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF cardinality(tagged) = 0 THEN
    RETURN;
  END IF;
  INSERT INTO usage_tag_series (series_id, tag)
  SELECT DISTINCT p.series, p.named FROM ${taggedParts}
  WHERE NOT EXISTS (SELECT FROM usage_tag_series AS t WHERE t.series_id = p.series AND t.tag = p.named)
  ORDER BY 1, 2
  ON CONFLICT DO NOTHING;
  ${addTo(
    "usage_tag_totals",
    "of_tag.id",
    `${taggedParts}
    JOIN usage_tag_series AS of_tag ON of_tag.series_id = p.series AND of_tag.tag = p.named`
  )}
END $$;
`
