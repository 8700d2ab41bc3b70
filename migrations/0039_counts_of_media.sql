-- How many pictures a request made and how long its clip is, and what the provider says a request cost. Columns without a
-- default, or with a constant one: no row is rewritten. Rows of before have none of it, and count 0.
ALTER TABLE request_log ADD COLUMN images bigint, ADD COLUMN seconds bigint, ADD COLUMN stated_cost bigint;
-- The computed cost of what has a stated one, and by how much that differs from it.
ALTER TABLE usage_totals
  ADD COLUMN images bigint NOT NULL DEFAULT 0,
  ADD COLUMN seconds bigint NOT NULL DEFAULT 0,
  ADD COLUMN stated_cost bigint NOT NULL DEFAULT 0,
  ADD COLUMN compared_cost bigint NOT NULL DEFAULT 0,
  ADD COLUMN cost_drift bigint NOT NULL DEFAULT 0;
ALTER TABLE usage_tag_totals
  ADD COLUMN images bigint NOT NULL DEFAULT 0,
  ADD COLUMN seconds bigint NOT NULL DEFAULT 0,
  ADD COLUMN stated_cost bigint NOT NULL DEFAULT 0,
  ADD COLUMN compared_cost bigint NOT NULL DEFAULT 0,
  ADD COLUMN cost_drift bigint NOT NULL DEFAULT 0;
ALTER TYPE usage_part
  ADD ATTRIBUTE images bigint,
  ADD ATTRIBUTE seconds bigint,
  ADD ATTRIBUTE stated_cost bigint,
  ADD ATTRIBUTE compared_cost bigint,
  ADD ATTRIBUTE cost_drift bigint;

CREATE OR REPLACE FUNCTION usage_parts(sign integer, r request_log) RETURNS SETOF usage_part LANGUAGE sql STABLE AS $$
  SELECT date_trunc('hour', r.at, 'UTC'), r.org_id, r.key_id, coalesce(r.model, ''), coalesce(r.route, ''),
    coalesce(r.provider, ''), r.surface, r.status, r.status NOT IN (400, 404) OR r.hold_id IS NOT NULL,
    sign::bigint, sign::bigint * (r.status >= 500 OR r.code IS NOT DISTINCT FROM 'stream_error')::int,
    sign * least(coalesce(r.prompt_tokens, 0), 1e12::bigint), sign * least(coalesce(r.completion_tokens, 0), 1e12::bigint),
    sign * least(coalesce(r.cached_tokens, 0), 1e12::bigint), sign * least(coalesce(r.cache_write_tokens, 0), 1e12::bigint),
    sign * least(coalesce(r.cache_write_hour_tokens, 0), 1e12::bigint),
    sign * least(coalesce(r.reasoning_tokens, 0), 1e12::bigint), sign * least(coalesce(r.web_searches, 0), 1e12::bigint),
    sign * r.charge, sign * least(coalesce(r.cost, 0), 1e15::bigint),
    CASE WHEN r.cost IS NULL THEN 0 ELSE sign * (r.charge - least(r.cost, 1e15::bigint)) END,
    sign::bigint * (r.cost IS NOT NULL)::int, sign::bigint * (r.cost IS NULL AND r.charge > 0)::int, NULL::integer,
    coalesce(r.tag, ''), sign * least(coalesce(r.images, 0), 1e12::bigint), sign * least(coalesce(r.seconds, 0), 1e12::bigint),
    sign * least(coalesce(r.stated_cost, 0), 1e15::bigint),
    CASE WHEN r.stated_cost IS NULL THEN 0 ELSE sign * least(coalesce(r.cost, 0), 1e15::bigint) END,
    CASE WHEN r.stated_cost IS NULL OR r.cost IS NULL THEN 0
      ELSE sign * (least(r.stated_cost, 1e15::bigint) - least(r.cost, 1e15::bigint)) END
  UNION ALL
  SELECT date_trunc('hour', r.at, 'UTC'), r.org_id, r.key_id, coalesce(r.model, ''), coalesce(a.route, ''),
    coalesce(a.provider, ''), r.surface, r.status, r.status NOT IN (400, 404) OR r.hold_id IS NOT NULL,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, sign * least(coalesce(a.cost_nano, 0), 1e15::bigint),
    -sign * least(coalesce(a.cost_nano, 0), 1e15::bigint), sign * (a.cost_nano IS NOT NULL)::int, 0, NULL::integer,
    coalesce(r.tag, ''), 0, 0, sign * least(coalesce(a.stated_nano, 0), 1e15::bigint),
    CASE WHEN a.stated_nano IS NULL THEN 0 ELSE sign * least(coalesce(a.cost_nano, 0), 1e15::bigint) END,
    CASE WHEN a.stated_nano IS NULL OR a.cost_nano IS NULL THEN 0
      ELSE sign * (least(a.stated_nano, 1e15::bigint) - least(a.cost_nano, 1e15::bigint)) END
  FROM jsonb_to_recordset(r.attempts) AS a (provider text, route text, cost_nano bigint, stated_nano bigint)
  WHERE a.cost_nano IS NOT NULL OR a.stated_nano IS NOT NULL
$$;

CREATE OR REPLACE FUNCTION add_tag_usage(tagged usage_part[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  named usage_part[] := ARRAY(
    SELECT ROW(p.hour, p.org_id, p.key_id, p.model, p.route, p.provider, p.surface, p.status, p.is_sold,
      p.requests, p.errors, p.prompt_tokens, p.completion_tokens, p.cached_tokens, p.cache_write_tokens,
      p.cache_write_hour_tokens, p.reasoning_tokens, p.web_searches, p.charge, p.cost, p.margin, p.costed, p.uncosted,
      usage_series_of(p), coalesce(t.tag, 'other'), p.images, p.seconds, p.stated_cost, p.compared_cost, p.cost_drift)::usage_part
    FROM unnest(tagged) AS p
    LEFT JOIN usage_tags AS t ON t.day = usage_day(p.hour) AND t.org_id = p.org_id AND t.tag = p.tag
  );
BEGIN
  INSERT INTO usage_tag_series (series_id, tag)
  SELECT DISTINCT p.series_id, p.tag FROM unnest(named) AS p
  WHERE NOT EXISTS (SELECT FROM usage_tag_series AS t WHERE t.series_id = p.series_id AND t.tag = p.tag)
  ORDER BY 1, 2
  ON CONFLICT DO NOTHING;
  INSERT INTO usage_tag_totals AS t (series_id, span, starts_at,
    requests, errors, prompt_tokens, completion_tokens, cached_tokens, cache_write_tokens, cache_write_hour_tokens,
    reasoning_tokens, web_searches, charge, cost, margin, costed, uncosted,
    images, seconds, stated_cost, compared_cost, cost_drift)
  SELECT of_tag.id, s.span, s.starts_at,
    sum(p.requests), sum(p.errors), sum(p.prompt_tokens), sum(p.completion_tokens), sum(p.cached_tokens),
    sum(p.cache_write_tokens), sum(p.cache_write_hour_tokens), sum(p.reasoning_tokens), sum(p.web_searches),
    sum(p.charge), sum(p.cost), sum(p.margin), sum(p.costed), sum(p.uncosted),
    sum(p.images), sum(p.seconds), sum(p.stated_cost), sum(p.compared_cost), sum(p.cost_drift)
  FROM unnest(named) AS p JOIN usage_tag_series AS of_tag ON of_tag.series_id = p.series_id AND of_tag.tag = p.tag,
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
    web_searches = t.web_searches + excluded.web_searches, charge = t.charge + excluded.charge,
    cost = t.cost + excluded.cost, margin = t.margin + excluded.margin, costed = t.costed + excluded.costed,
    uncosted = t.uncosted + excluded.uncosted, images = t.images + excluded.images,
    seconds = t.seconds + excluded.seconds, stated_cost = t.stated_cost + excluded.stated_cost,
    compared_cost = t.compared_cost + excluded.compared_cost, cost_drift = t.cost_drift + excluded.cost_drift;
END $$;

CREATE OR REPLACE FUNCTION add_usage(parts usage_part[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  sums usage_part[] := ARRAY(
    SELECT ROW(p.hour, p.org_id, p.key_id, p.model, p.route, p.provider, p.surface, p.status, p.is_sold,
      sum(p.requests), sum(p.errors), sum(p.prompt_tokens), sum(p.completion_tokens), sum(p.cached_tokens),
      sum(p.cache_write_tokens), sum(p.cache_write_hour_tokens), sum(p.reasoning_tokens), sum(p.web_searches),
      sum(p.charge), sum(p.cost), sum(p.margin), sum(p.costed), sum(p.uncosted), NULL, NULL,
      sum(p.images), sum(p.seconds), sum(p.stated_cost), sum(p.compared_cost), sum(p.cost_drift))::usage_part
    FROM unnest(parts) AS p
    GROUP BY p.hour, p.org_id, p.key_id, p.model, p.route, p.provider, p.surface, p.status, p.is_sold
  );
  tagged usage_part[] := ARRAY(
    SELECT ROW(p.hour, p.org_id, p.key_id, p.model, p.route, p.provider, p.surface, p.status, p.is_sold,
      sum(p.requests), sum(p.errors), sum(p.prompt_tokens), sum(p.completion_tokens), sum(p.cached_tokens),
      sum(p.cache_write_tokens), sum(p.cache_write_hour_tokens), sum(p.reasoning_tokens), sum(p.web_searches),
      sum(p.charge), sum(p.cost), sum(p.margin), sum(p.costed), sum(p.uncosted), NULL, p.tag,
      sum(p.images), sum(p.seconds), sum(p.stated_cost), sum(p.compared_cost), sum(p.cost_drift))::usage_part
    FROM unnest(parts) AS p WHERE p.tag <> ''
    GROUP BY p.hour, p.org_id, p.key_id, p.model, p.route, p.provider, p.surface, p.status, p.is_sold, p.tag
  );
  sold boolean;
BEGIN
  IF cardinality(tagged) > 0 THEN
    PERFORM admit_tags(tagged);
  END IF;
  FOREACH sold IN ARRAY ARRAY[true, false] LOOP
    INSERT INTO usage_series (org_id, key_id, model, route, provider, surface, status, is_sold)
    SELECT DISTINCT p.org_id, p.key_id, usage_model(p.model, p.is_sold), p.route, p.provider, p.surface, p.status, p.is_sold
    FROM unnest(sums) AS p WHERE p.is_sold = sold AND usage_series_of(p) IS NULL
    ORDER BY 1, 2, 3, 4, 5, 6, 7, 8
    ON CONFLICT DO NOTHING;
  END LOOP;
  INSERT INTO usage_totals AS t (series_id, span, starts_at,
    requests, errors, prompt_tokens, completion_tokens, cached_tokens, cache_write_tokens, cache_write_hour_tokens,
    reasoning_tokens, web_searches, charge, cost, margin, costed, uncosted,
    images, seconds, stated_cost, compared_cost, cost_drift)
  SELECT p.series, s.span, s.starts_at,
    sum(p.requests), sum(p.errors), sum(p.prompt_tokens), sum(p.completion_tokens), sum(p.cached_tokens),
    sum(p.cache_write_tokens), sum(p.cache_write_hour_tokens), sum(p.reasoning_tokens), sum(p.web_searches),
    sum(p.charge), sum(p.cost), sum(p.margin), sum(p.costed), sum(p.uncosted),
    sum(p.images), sum(p.seconds), sum(p.stated_cost), sum(p.compared_cost), sum(p.cost_drift)
  FROM (SELECT sum.*, usage_series_of(sum) AS series FROM unnest(sums) AS sum OFFSET 0) AS p,
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
    web_searches = t.web_searches + excluded.web_searches, charge = t.charge + excluded.charge,
    cost = t.cost + excluded.cost, margin = t.margin + excluded.margin, costed = t.costed + excluded.costed,
    uncosted = t.uncosted + excluded.uncosted, images = t.images + excluded.images,
    seconds = t.seconds + excluded.seconds, stated_cost = t.stated_cost + excluded.stated_cost,
    compared_cost = t.compared_cost + excluded.compared_cost, cost_drift = t.cost_drift + excluded.cost_drift;
  IF cardinality(tagged) > 0 THEN
    PERFORM add_tag_usage(tagged);
  END IF;
END $$;

-- The length of the clip that was charged.
CREATE OR REPLACE FUNCTION log_charged_job() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  job record;
BEGIN
  SELECT request_id, created_at, model, seconds, cost, attempts, end_user, tag, route AS kept, NULL::text AS route,
    NULL::text AS provider INTO job
  FROM videos WHERE hold_id = NEW.id;
  BEGIN
    job.route := job.kept::json ->> 'id';
    job.provider := job.kept::json #>> '{provider,name}';
  EXCEPTION WHEN data_exception OR syntax_error_or_access_rule_violation THEN
    -- Options of a route may hold what is no text here, such as NUL; that must not prevent the charge.
    NULL;
  END;
  UPDATE request_log AS r SET charge = NEW.charged, seconds = job.seconds, cost = coalesce(job.cost, r.cost),
    route = coalesce(job.route, r.route), provider = coalesce(job.provider, r.provider)
  WHERE r.request_id = job.request_id AND r.hold_id = NEW.id;
  IF NOT FOUND THEN
    INSERT INTO request_log AS r (id, request_id, at, surface, status, org_id, key_id, model, route, provider, attempts,
      hold_id, charge, cost, total_ms, end_user, tag, seconds)
    VALUES (NEW.id, coalesce(job.request_id, NEW.id::text), coalesce(job.created_at, NEW.created_at), 'video', 202,
      NEW.org_id, NEW.key_id, job.model, job.route, job.provider, coalesce(job.attempts, '[]'), NEW.id, NEW.charged,
      job.cost, 0, job.end_user, job.tag, job.seconds)
    ON CONFLICT (id) DO UPDATE SET charge = excluded.charge, seconds = excluded.seconds,
      cost = coalesce(excluded.cost, r.cost), route = coalesce(excluded.route, r.route),
      provider = coalesce(excluded.provider, r.provider);
  END IF;
  RETURN NULL;
END $$;
