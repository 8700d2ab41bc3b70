-- `npm run schema` writes this file from services/requests/RequestCounts.ts. Its text is in
-- test/database/schema/UsageTotals.ts.

-- Returns the part that a log row adds to the totals, and one part for each failed attempt with a cost.
CREATE OR REPLACE FUNCTION usage_parts(sign integer, r request_log) RETURNS SETOF usage_part LANGUAGE sql STABLE AS $$
  SELECT date_trunc('hour', r.at, 'UTC'), r.org_id, r.key_id, coalesce(r.model, ''), coalesce(r.route, ''),
    coalesce(r.provider, ''), r.surface, r.status, r.status NOT IN (400, 404) OR r.hold_id IS NOT NULL, sign::bigint,
    sign::bigint * (r.status >= 500 OR r.code IS NOT DISTINCT FROM 'stream_error')::int,
    sign * least(coalesce(r.prompt_tokens, 0), 1e12::bigint),
    sign * least(coalesce(r.completion_tokens, 0), 1e12::bigint),
    sign * least(coalesce(r.cached_tokens, 0), 1e12::bigint),
    sign * least(coalesce(r.cache_write_tokens, 0), 1e12::bigint),
    sign * least(coalesce(r.cache_write_hour_tokens, 0), 1e12::bigint),
    sign * least(coalesce(r.reasoning_tokens, 0), 1e12::bigint),
    sign * least(coalesce(r.web_searches, 0), 1e12::bigint), sign * r.charge,
    sign * least(coalesce(r.cost, 0), 1e15::bigint),
    CASE WHEN r.cost IS NULL THEN 0 ELSE sign * (r.charge - least(r.cost, 1e15::bigint)) END,
    sign::bigint * (r.cost IS NOT NULL)::int, sign::bigint * (r.cost IS NULL AND r.charge > 0)::int, NULL::integer,
    coalesce(r.tag, ''), sign * least(coalesce(r.images, 0), 1e12::bigint),
    sign * least(coalesce(r.seconds, 0), 1e12::bigint), sign * least(coalesce(r.stated_cost, 0), 1e15::bigint),
    CASE WHEN r.stated_cost IS NULL THEN 0 ELSE sign * least(coalesce(r.cost, 0), 1e15::bigint) END,
    CASE WHEN r.stated_cost IS NULL OR r.cost IS NULL THEN 0
      ELSE sign * (least(r.stated_cost, 1e15::bigint) - least(r.cost, 1e15::bigint)) END
  UNION ALL
  SELECT date_trunc('hour', r.at, 'UTC'), r.org_id, r.key_id, coalesce(r.model, ''), coalesce(a.route, ''),
    coalesce(a.provider, ''), r.surface, r.status, r.status NOT IN (400, 404) OR r.hold_id IS NOT NULL, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, sign * least(coalesce(a.cost_nano, 0), 1e15::bigint),
    -sign * least(coalesce(a.cost_nano, 0), 1e15::bigint), sign * (a.cost_nano IS NOT NULL)::int, 0, NULL::integer,
    coalesce(r.tag, ''), 0, 0, sign * least(coalesce(a.stated_nano, 0), 1e15::bigint),
    CASE WHEN a.stated_nano IS NULL THEN 0 ELSE sign * least(coalesce(a.cost_nano, 0), 1e15::bigint) END,
    CASE WHEN a.stated_nano IS NULL OR a.cost_nano IS NULL THEN 0
      ELSE sign * (least(a.stated_nano, 1e15::bigint) - least(a.cost_nano, 1e15::bigint)) END
  FROM jsonb_to_recordset(r.attempts) AS a (provider text, route text, cost_nano bigint, stated_nano bigint)
  WHERE a.cost_nano IS NOT NULL OR a.stated_nano IS NOT NULL
$$;

-- To prevent deadlocks between writers, inserts series in one order, with sold models first, and then adds totals in
-- the order of their keys. These locks are the last ones that a transaction takes.
CREATE OR REPLACE FUNCTION add_usage(parts usage_part[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  -- Adds up the parts first, so fewer series are looked up.
  sums usage_part[] := ARRAY(
    SELECT ROW(p.hour, p.org_id, p.key_id, p.model, p.route, p.provider, p.surface, p.status, p.is_sold, sum(p.requests),
      sum(p.errors), sum(p.prompt_tokens), sum(p.completion_tokens), sum(p.cached_tokens), sum(p.cache_write_tokens),
      sum(p.cache_write_hour_tokens), sum(p.reasoning_tokens), sum(p.web_searches), sum(p.charge), sum(p.cost),
      sum(p.margin), sum(p.costed), sum(p.uncosted), NULL, p.tag, sum(p.images), sum(p.seconds), sum(p.stated_cost),
      sum(p.compared_cost), sum(p.cost_drift))::usage_part
    FROM unnest(parts) AS p
    GROUP BY p.hour, p.org_id, p.key_id, p.model, p.route, p.provider, p.surface, p.status, p.is_sold, p.tag
  );
  sold boolean;
BEGIN
  PERFORM admit_tags(ARRAY(SELECT p FROM unnest(sums) AS p WHERE p.tag <> ''));
  FOREACH sold IN ARRAY ARRAY[true, false] LOOP
    INSERT INTO usage_series (org_id, key_id, model, route, provider, surface, status, is_sold)
    SELECT DISTINCT p.org_id, p.key_id, usage_model(p.model, p.is_sold), p.route, p.provider, p.surface, p.status, p.is_sold
    FROM unnest(sums) AS p WHERE p.is_sold = sold AND usage_series_of(p) IS NULL
    ORDER BY 1, 2, 3, 4, 5, 6, 7, 8
    ON CONFLICT DO NOTHING;
  END LOOP;
  INSERT INTO usage_totals AS t (series_id, span, starts_at,
    requests, errors, prompt_tokens, completion_tokens, cached_tokens, cache_write_tokens, cache_write_hour_tokens,
    reasoning_tokens, web_searches, images, seconds, charge, cost, margin, costed, uncosted, stated_cost,
    compared_cost, cost_drift)
  SELECT p.series, s.span, s.starts_at,
    sum(p.requests), sum(p.errors), sum(p.prompt_tokens), sum(p.completion_tokens), sum(p.cached_tokens),
    sum(p.cache_write_tokens), sum(p.cache_write_hour_tokens), sum(p.reasoning_tokens), sum(p.web_searches),
    sum(p.images), sum(p.seconds), sum(p.charge), sum(p.cost), sum(p.margin), sum(p.costed), sum(p.uncosted),
    sum(p.stated_cost), sum(p.compared_cost), sum(p.cost_drift)
  FROM (SELECT part.*, usage_series_of(part) AS series FROM unnest(sums) AS part OFFSET 0) AS p,
    LATERAL (VALUES ('day', date_trunc('day', p.hour, 'UTC')), ('hour', p.hour)) AS s (span, starts_at)
  GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
  ON CONFLICT (series_id, starts_at, span) DO UPDATE SET
    requests = t.requests + excluded.requests, errors = t.errors + excluded.errors,
    prompt_tokens = t.prompt_tokens + excluded.prompt_tokens,
    completion_tokens = t.completion_tokens + excluded.completion_tokens,
    cached_tokens = t.cached_tokens + excluded.cached_tokens,
    cache_write_tokens = t.cache_write_tokens + excluded.cache_write_tokens,
    cache_write_hour_tokens = t.cache_write_hour_tokens + excluded.cache_write_hour_tokens,
    reasoning_tokens = t.reasoning_tokens + excluded.reasoning_tokens,
    web_searches = t.web_searches + excluded.web_searches, images = t.images + excluded.images,
    seconds = t.seconds + excluded.seconds, charge = t.charge + excluded.charge, cost = t.cost + excluded.cost,
    margin = t.margin + excluded.margin, costed = t.costed + excluded.costed,
    uncosted = t.uncosted + excluded.uncosted, stated_cost = t.stated_cost + excluded.stated_cost,
    compared_cost = t.compared_cost + excluded.compared_cost, cost_drift = t.cost_drift + excluded.cost_drift;
  PERFORM add_tag_usage(ARRAY(SELECT p FROM unnest(sums) AS p WHERE p.tag <> ''));
END $$;

CREATE OR REPLACE FUNCTION add_tag_usage(tagged usage_part[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF cardinality(tagged) = 0 THEN
    RETURN;
  END IF;
  INSERT INTO usage_tag_series (series_id, tag)
  SELECT DISTINCT p.series, p.named FROM (SELECT part.*, usage_series_of(part) AS series, usage_tag_of(part) AS named
    FROM unnest(tagged) AS part OFFSET 0) AS p
  WHERE NOT EXISTS (SELECT FROM usage_tag_series AS t WHERE t.series_id = p.series AND t.tag = p.named)
  ORDER BY 1, 2
  ON CONFLICT DO NOTHING;
  INSERT INTO usage_tag_totals AS t (series_id, span, starts_at,
    requests, errors, prompt_tokens, completion_tokens, cached_tokens, cache_write_tokens, cache_write_hour_tokens,
    reasoning_tokens, web_searches, images, seconds, charge, cost, margin, costed, uncosted, stated_cost,
    compared_cost, cost_drift)
  SELECT of_tag.id, s.span, s.starts_at,
    sum(p.requests), sum(p.errors), sum(p.prompt_tokens), sum(p.completion_tokens), sum(p.cached_tokens),
    sum(p.cache_write_tokens), sum(p.cache_write_hour_tokens), sum(p.reasoning_tokens), sum(p.web_searches),
    sum(p.images), sum(p.seconds), sum(p.charge), sum(p.cost), sum(p.margin), sum(p.costed), sum(p.uncosted),
    sum(p.stated_cost), sum(p.compared_cost), sum(p.cost_drift)
  FROM (SELECT part.*, usage_series_of(part) AS series, usage_tag_of(part) AS named
    FROM unnest(tagged) AS part OFFSET 0) AS p
    JOIN usage_tag_series AS of_tag ON of_tag.series_id = p.series AND of_tag.tag = p.named,
    LATERAL (VALUES ('day', date_trunc('day', p.hour, 'UTC')), ('hour', p.hour)) AS s (span, starts_at)
  GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
  ON CONFLICT (series_id, starts_at, span) DO UPDATE SET
    requests = t.requests + excluded.requests, errors = t.errors + excluded.errors,
    prompt_tokens = t.prompt_tokens + excluded.prompt_tokens,
    completion_tokens = t.completion_tokens + excluded.completion_tokens,
    cached_tokens = t.cached_tokens + excluded.cached_tokens,
    cache_write_tokens = t.cache_write_tokens + excluded.cache_write_tokens,
    cache_write_hour_tokens = t.cache_write_hour_tokens + excluded.cache_write_hour_tokens,
    reasoning_tokens = t.reasoning_tokens + excluded.reasoning_tokens,
    web_searches = t.web_searches + excluded.web_searches, images = t.images + excluded.images,
    seconds = t.seconds + excluded.seconds, charge = t.charge + excluded.charge, cost = t.cost + excluded.cost,
    margin = t.margin + excluded.margin, costed = t.costed + excluded.costed,
    uncosted = t.uncosted + excluded.uncosted, stated_cost = t.stated_cost + excluded.stated_cost,
    compared_cost = t.compared_cost + excluded.compared_cost, cost_drift = t.cost_drift + excluded.cost_drift;
END $$;
