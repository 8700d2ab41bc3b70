-- Who used the customer's product for a request, and what the customer tagged it with; and what requests come to by tag. All
-- of it is beside what there is: totals of requests without a tag stay what they are. Columns without a default: no row is
-- rewritten.
ALTER TABLE videos ADD COLUMN end_user text, ADD COLUMN tag text;
ALTER TABLE request_log ADD COLUMN end_user text, ADD COLUMN tag text;
ALTER TYPE usage_part ADD ATTRIBUTE tag text;

-- The tags of an organization that have totals of their own on a day, in the order in which they came.
CREATE TABLE usage_tags (
  day    date NOT NULL,
  org_id text NOT NULL,
  tag    text NOT NULL,
  number smallint NOT NULL CHECK (number BETWEEN 1 AND 1000),
  PRIMARY KEY (day, org_id, tag),
  UNIQUE (day, org_id, number)
);

CREATE TABLE usage_tag_series (
  id        integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- Of usage_series.
  series_id integer NOT NULL,
  tag       text NOT NULL,
  UNIQUE (tag, series_id)
);
CREATE INDEX usage_tag_series_series ON usage_tag_series (series_id);

-- The part of usage_totals that has a tag; series_id is of usage_tag_series.
CREATE TABLE usage_tag_totals (LIKE usage_totals, PRIMARY KEY (series_id, starts_at, span)) PARTITION BY LIST (span);
CREATE TABLE usage_tag_hours PARTITION OF usage_tag_totals FOR VALUES IN ('hour') WITH (fillfactor = 70);
CREATE TABLE usage_tag_days PARTITION OF usage_tag_totals FOR VALUES IN ('day') WITH (fillfactor = 70);
CREATE INDEX usage_tag_totals_time ON usage_tag_totals (starts_at);

CREATE FUNCTION usage_day(at timestamptz) RETURNS date LANGUAGE sql IMMUTABLE AS $$ SELECT (at AT TIME ZONE 'UTC')::date $$;

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
    coalesce(r.tag, '')
  UNION ALL
  SELECT date_trunc('hour', r.at, 'UTC'), r.org_id, r.key_id, coalesce(r.model, ''), coalesce(a.route, ''),
    coalesce(a.provider, ''), r.surface, r.status, r.status NOT IN (400, 404) OR r.hold_id IS NOT NULL,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, sign * least(a.cost_nano, 1e15::bigint), -sign * least(a.cost_nano, 1e15::bigint), sign, 0,
    NULL::integer, coalesce(r.tag, '')
  FROM jsonb_to_recordset(r.attempts) AS a (provider text, route text, cost_nano bigint) WHERE a.cost_nano IS NOT NULL
$$;

-- Gives tags that are new on a day their numbers, as long as there are some; of two writers the second one waits.
CREATE FUNCTION admit_tags(tagged usage_part[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (
    SELECT FROM unnest(tagged) AS p WHERE p.tag <> 'other' AND NOT EXISTS (
      SELECT FROM usage_tags AS t WHERE t.day = usage_day(p.hour) AND t.org_id = p.org_id AND t.tag = p.tag
    ) AND NOT EXISTS (
      SELECT FROM usage_tags AS t WHERE t.day = usage_day(p.hour) AND t.org_id = p.org_id AND t.number = 1000
    )
  ) THEN
    RETURN;
  END IF;
  PERFORM pg_advisory_xact_lock(7025102617);
  INSERT INTO usage_tags (day, org_id, tag, number)
  SELECT day, org_id, tag, number FROM (
    SELECT new.*, row_number() OVER (PARTITION BY day, org_id ORDER BY tag) + (
      SELECT coalesce(max(t.number), 0) FROM usage_tags AS t WHERE t.day = new.day AND t.org_id = new.org_id
    ) AS number
    FROM (
      SELECT DISTINCT usage_day(p.hour) AS day, p.org_id, p.tag FROM unnest(tagged) AS p
      WHERE p.tag <> 'other' AND NOT EXISTS (
        SELECT FROM usage_tags AS t WHERE t.day = usage_day(p.hour) AND t.org_id = p.org_id AND t.tag = p.tag
      )
    ) AS new
  ) AS numbered
  WHERE number <= 1000;
END $$;

-- Adds what has a tag once more, by its tag. Once a day has its last tag, each other one is 'other' for good: a row is always
-- subtracted from what it was added to. What is locked here is so after all of usage_totals, and in one order.
CREATE FUNCTION add_tag_usage(tagged usage_part[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  named usage_part[] := ARRAY(
    SELECT ROW(p.hour, p.org_id, p.key_id, p.model, p.route, p.provider, p.surface, p.status, p.is_sold,
      p.requests, p.errors, p.prompt_tokens, p.completion_tokens, p.cached_tokens, p.cache_write_tokens,
      p.cache_write_hour_tokens, p.reasoning_tokens, p.web_searches, p.charge, p.cost, p.margin, p.costed, p.uncosted,
      usage_series_of(p), coalesce(t.tag, 'other'))::usage_part
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
    reasoning_tokens, web_searches, charge, cost, margin, costed, uncosted)
  SELECT of_tag.id, s.span, s.starts_at,
    sum(p.requests), sum(p.errors), sum(p.prompt_tokens), sum(p.completion_tokens), sum(p.cached_tokens),
    sum(p.cache_write_tokens), sum(p.cache_write_hour_tokens), sum(p.reasoning_tokens), sum(p.web_searches),
    sum(p.charge), sum(p.cost), sum(p.margin), sum(p.costed), sum(p.uncosted)
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
    uncosted = t.uncosted + excluded.uncosted;
END $$;

-- New series in one order, what is sold before what is named by it, and then all totals in the order of their keys, so that
-- no two writers deadlock: they are the last that a transaction locks.
CREATE OR REPLACE FUNCTION add_usage(parts usage_part[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  sums usage_part[] := ARRAY(
    SELECT ROW(p.hour, p.org_id, p.key_id, p.model, p.route, p.provider, p.surface, p.status, p.is_sold,
      sum(p.requests), sum(p.errors), sum(p.prompt_tokens), sum(p.completion_tokens), sum(p.cached_tokens),
      sum(p.cache_write_tokens), sum(p.cache_write_hour_tokens), sum(p.reasoning_tokens), sum(p.web_searches),
      sum(p.charge), sum(p.cost), sum(p.margin), sum(p.costed), sum(p.uncosted), NULL, NULL)::usage_part
    FROM unnest(parts) AS p
    GROUP BY p.hour, p.org_id, p.key_id, p.model, p.route, p.provider, p.surface, p.status, p.is_sold
  );
  tagged usage_part[] := ARRAY(
    SELECT ROW(p.hour, p.org_id, p.key_id, p.model, p.route, p.provider, p.surface, p.status, p.is_sold,
      sum(p.requests), sum(p.errors), sum(p.prompt_tokens), sum(p.completion_tokens), sum(p.cached_tokens),
      sum(p.cache_write_tokens), sum(p.cache_write_hour_tokens), sum(p.reasoning_tokens), sum(p.web_searches),
      sum(p.charge), sum(p.cost), sum(p.margin), sum(p.costed), sum(p.uncosted), NULL, p.tag)::usage_part
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
    reasoning_tokens, web_searches, charge, cost, margin, costed, uncosted)
  SELECT p.series, s.span, s.starts_at,
    sum(p.requests), sum(p.errors), sum(p.prompt_tokens), sum(p.completion_tokens), sum(p.cached_tokens),
    sum(p.cache_write_tokens), sum(p.cache_write_hour_tokens), sum(p.reasoning_tokens), sum(p.web_searches),
    sum(p.charge), sum(p.cost), sum(p.margin), sum(p.costed), sum(p.uncosted)
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
    uncosted = t.uncosted + excluded.uncosted;
  IF cardinality(tagged) > 0 THEN
    PERFORM add_tag_usage(tagged);
  END IF;
END $$;

-- A row that a crash has lost comes back with what its job knows of it.
CREATE OR REPLACE FUNCTION log_charged_job() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  job record;
BEGIN
  SELECT request_id, created_at, model, cost, attempts, end_user, tag, route AS kept, NULL::text AS route,
    NULL::text AS provider INTO job
  FROM videos WHERE hold_id = NEW.id;
  BEGIN
    job.route := job.kept::json ->> 'id';
    job.provider := job.kept::json #>> '{provider,name}';
  EXCEPTION WHEN data_exception OR syntax_error_or_access_rule_violation THEN
    -- Options of a route may hold what is no text here, such as NUL; that must not prevent the charge.
    NULL;
  END;
  UPDATE request_log AS r SET charge = NEW.charged, cost = coalesce(job.cost, r.cost),
    route = coalesce(job.route, r.route), provider = coalesce(job.provider, r.provider)
  WHERE r.request_id = job.request_id AND r.hold_id = NEW.id;
  IF NOT FOUND THEN
    INSERT INTO request_log AS r (id, request_id, at, surface, status, org_id, key_id, model, route, provider, attempts,
      hold_id, charge, cost, total_ms, end_user, tag)
    VALUES (NEW.id, coalesce(job.request_id, NEW.id::text), coalesce(job.created_at, NEW.created_at), 'video', 202,
      NEW.org_id, NEW.key_id, job.model, job.route, job.provider, coalesce(job.attempts, '[]'), NEW.id, NEW.charged,
      job.cost, 0, job.end_user, job.tag)
    ON CONFLICT (id) DO UPDATE SET charge = excluded.charge, cost = coalesce(excluded.cost, r.cost),
      route = coalesce(excluded.route, r.route), provider = coalesce(excluded.provider, r.provider);
  END IF;
  RETURN NULL;
END $$;
