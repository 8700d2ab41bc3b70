-- What the request log comes to by the hour and by the day, for ever: it outlives the rows. Nothing waits for longer than
-- it takes to add a trigger. Rows of before are added by the gateway afterwards, an hour of the log at a time.

-- Who used what, by which way, and how it ended; '' stands for null.
CREATE TABLE usage_series (
  id       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  org_id   text NOT NULL,
  key_id   text NOT NULL,
  -- Names that nobody sells are 'unknown': customers may ask for any.
  model    text NOT NULL,
  route    text NOT NULL,
  provider text NOT NULL,
  surface  text NOT NULL,
  status   integer NOT NULL,
  -- Whether the requests show that there is such a model.
  is_sold  boolean NOT NULL,
  UNIQUE (org_id, key_id, model, route, provider, surface, status, is_sold)
);
CREATE INDEX usage_series_sold ON usage_series (model) WHERE is_sold;

CREATE TABLE usage_totals (
  starts_at  timestamptz NOT NULL,
  requests   bigint NOT NULL,
  errors     bigint NOT NULL,
  prompt_tokens           bigint NOT NULL,
  completion_tokens       bigint NOT NULL,
  cached_tokens           bigint NOT NULL,
  cache_write_tokens      bigint NOT NULL,
  cache_write_hour_tokens bigint NOT NULL,
  reasoning_tokens        bigint NOT NULL,
  web_searches            bigint NOT NULL,
  charge     bigint NOT NULL,
  -- Failed attempts included, under the route that they were made at.
  cost       bigint NOT NULL,
  -- Charge less cost, of what has a known cost.
  margin     bigint NOT NULL,
  costed     bigint NOT NULL,
  uncosted   bigint NOT NULL,
  series_id  integer NOT NULL,
  span       text NOT NULL,
  PRIMARY KEY (series_id, starts_at, span)
) PARTITION BY LIST (span);
-- Updated all hour and all day long: no index is to change with them.
CREATE TABLE usage_hours PARTITION OF usage_totals FOR VALUES IN ('hour') WITH (fillfactor = 70);
CREATE TABLE usage_days PARTITION OF usage_totals FOR VALUES IN ('day') WITH (fillfactor = 70);
CREATE INDEX usage_totals_time ON usage_totals (starts_at);

-- From where on totals have every row, and from where on every row is still there.
CREATE TABLE usage_bounds (
  only_row    boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  filled_from timestamptz NOT NULL,
  rows_from   timestamptz NOT NULL DEFAULT '-infinity',
  -- Charges of before may lack their row.
  logged_from timestamptz NOT NULL DEFAULT now()
);
INSERT INTO usage_bounds (filled_from) SELECT
  CASE WHEN EXISTS (SELECT FROM request_log) THEN date_trunc('hour', now(), 'UTC') + interval '2 hours' ELSE '-infinity' END;

CREATE TYPE usage_part AS (
  hour timestamptz, org_id text, key_id text, model text, route text, provider text, surface text, status integer,
  is_sold boolean, requests bigint, errors bigint, prompt_tokens bigint, completion_tokens bigint, cached_tokens bigint,
  cache_write_tokens bigint, cache_write_hour_tokens bigint, reasoning_tokens bigint, web_searches bigint, charge bigint,
  cost bigint, margin bigint, costed bigint, uncosted bigint, series_id integer
);

-- A row's own part, and one for each failed attempt that cost something; what a provider reports beyond all reason must
-- not overflow a sum.
CREATE FUNCTION usage_parts(sign integer, r request_log) RETURNS SETOF usage_part LANGUAGE sql STABLE AS $$
  SELECT date_trunc('hour', r.at, 'UTC'), r.org_id, r.key_id, coalesce(r.model, ''), coalesce(r.route, ''),
    coalesce(r.provider, ''), r.surface, r.status, r.status NOT IN (400, 404) OR r.hold_id IS NOT NULL,
    sign::bigint, sign::bigint * (r.status >= 500 OR r.code IS NOT DISTINCT FROM 'stream_error')::int,
    sign * least(coalesce(r.prompt_tokens, 0), 1e12::bigint), sign * least(coalesce(r.completion_tokens, 0), 1e12::bigint),
    sign * least(coalesce(r.cached_tokens, 0), 1e12::bigint), sign * least(coalesce(r.cache_write_tokens, 0), 1e12::bigint),
    sign * least(coalesce(r.cache_write_hour_tokens, 0), 1e12::bigint),
    sign * least(coalesce(r.reasoning_tokens, 0), 1e12::bigint), sign * least(coalesce(r.web_searches, 0), 1e12::bigint),
    sign * r.charge, sign * least(coalesce(r.cost, 0), 1e15::bigint),
    CASE WHEN r.cost IS NULL THEN 0 ELSE sign * (r.charge - least(r.cost, 1e15::bigint)) END,
    sign::bigint * (r.cost IS NOT NULL)::int, sign::bigint * (r.cost IS NULL AND r.charge > 0)::int, NULL::integer
  UNION ALL
  SELECT date_trunc('hour', r.at, 'UTC'), r.org_id, r.key_id, coalesce(r.model, ''), coalesce(a.route, ''),
    coalesce(a.provider, ''), r.surface, r.status, r.status NOT IN (400, 404) OR r.hold_id IS NOT NULL,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, sign * least(a.cost_nano, 1e15::bigint), -sign * least(a.cost_nano, 1e15::bigint), sign, 0,
    NULL::integer
  FROM jsonb_to_recordset(r.attempts) AS a (provider text, route text, cost_nano bigint) WHERE a.cost_nano IS NOT NULL
$$;

-- Until the rows of before have been added, whoever writes a row keeps them from being added meanwhile.
CREATE FUNCTION usage_filled_from() RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE
  filled timestamptz;
BEGIN
  SELECT filled_from INTO filled FROM usage_bounds;
  IF filled > '-infinity' THEN
    PERFORM pg_advisory_xact_lock_shared(7025102615);
    SELECT filled_from INTO filled FROM usage_bounds;
  END IF;
  RETURN filled;
END $$;

-- New series in one order, and then all totals in the order of their keys, so that no two writers deadlock: they are the
-- last that a transaction locks.
CREATE FUNCTION count_requests() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  filled timestamptz := usage_filled_from();
  parts usage_part[];
  part usage_part;
BEGIN
  IF TG_OP = 'INSERT' THEN
    SELECT array_agg(sums::usage_part ORDER BY org_id, key_id, model, route, provider, surface, status, is_sold) INTO parts FROM (
      SELECT p.hour, p.org_id, p.key_id, p.model, p.route, p.provider, p.surface, p.status, p.is_sold,
        sum(p.requests)::bigint, sum(p.errors)::bigint, sum(p.prompt_tokens)::bigint,
        sum(p.completion_tokens)::bigint, sum(p.cached_tokens)::bigint, sum(p.cache_write_tokens)::bigint,
        sum(p.cache_write_hour_tokens)::bigint, sum(p.reasoning_tokens)::bigint, sum(p.web_searches)::bigint,
        sum(p.charge)::bigint, sum(p.cost)::bigint, sum(p.margin)::bigint, sum(p.costed)::bigint,
        sum(p.uncosted)::bigint, NULL::integer
      FROM new_rows AS r, usage_parts(1, ROW(r.*)::request_log) AS p WHERE r.at >= filled
      GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9
    ) AS sums;
  ELSE
    SELECT array_agg(changes::usage_part ORDER BY org_id, key_id, model, route, provider, surface, status, is_sold) INTO parts
    FROM (
      SELECT p.* FROM new_rows AS r, usage_parts(1, ROW(r.*)::request_log) AS p WHERE r.at >= filled
      UNION ALL
      SELECT p.* FROM old_rows AS r, usage_parts(-1, ROW(r.*)::request_log) AS p WHERE r.at >= filled
    ) AS changes;
  END IF;
  FOR i IN 1 .. coalesce(cardinality(parts), 0) LOOP
    part := parts[i];
    IF NOT part.is_sold AND part.model <> '' AND NOT EXISTS (
      SELECT FROM usage_series AS s WHERE s.model = part.model AND s.is_sold
    ) THEN
      part.model := 'unknown';
    END IF;
    LOOP
      SELECT s.id INTO part.series_id FROM usage_series AS s
      WHERE s.org_id = part.org_id AND s.key_id = part.key_id AND s.model = part.model AND s.route = part.route
        AND s.provider = part.provider AND s.surface = part.surface AND s.status = part.status AND s.is_sold = part.is_sold;
      EXIT WHEN FOUND;
      INSERT INTO usage_series (org_id, key_id, model, route, provider, surface, status, is_sold)
      VALUES (part.org_id, part.key_id, part.model, part.route, part.provider, part.surface, part.status, part.is_sold)
      ON CONFLICT DO NOTHING;
    END LOOP;
    parts[i] := part;
  END LOOP;
  INSERT INTO usage_totals AS t (series_id, span, starts_at,
    requests, errors, prompt_tokens, completion_tokens, cached_tokens, cache_write_tokens, cache_write_hour_tokens,
    reasoning_tokens, web_searches, charge, cost, margin, costed, uncosted)
  SELECT p.series_id, s.span, s.starts_at,
    sum(p.requests), sum(p.errors), sum(p.prompt_tokens), sum(p.completion_tokens), sum(p.cached_tokens),
    sum(p.cache_write_tokens), sum(p.cache_write_hour_tokens), sum(p.reasoning_tokens), sum(p.web_searches),
    sum(p.charge), sum(p.cost), sum(p.margin), sum(p.costed), sum(p.uncosted)
  FROM unnest(parts) AS p,
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
  RETURN NULL;
END $$;

-- Adds the newest hour of the log that the totals lack, by the trigger that adds new rows; returns from where on they
-- have every row then.
CREATE FUNCTION fill_usage() RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE
  filled timestamptz;
  hour timestamptz;
BEGIN
  PERFORM pg_advisory_xact_lock(7025102615);
  SELECT filled_from INTO filled FROM usage_bounds;
  SELECT date_trunc('hour', max(at), 'UTC') INTO hour FROM request_log WHERE at < filled;
  UPDATE usage_bounds SET filled_from = coalesce(hour, '-infinity');
  CREATE TEMP TABLE usage_filling (LIKE request_log) ON COMMIT DROP;
  CREATE TRIGGER usage_filling_counted AFTER INSERT ON usage_filling REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_requests();
  INSERT INTO usage_filling SELECT * FROM request_log WHERE at >= hour AND at < filled;
  RETURN coalesce(hour, '-infinity');
END $$;

-- A job is charged after its response, and a crash may have lost its row of the log: the row says what was charged all
-- the same.
CREATE FUNCTION log_charged_job() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  job record;
BEGIN
  SELECT request_id, created_at, model, cost, attempts, route AS kept, NULL::text AS route, NULL::text AS provider INTO job
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
      hold_id, charge, cost, total_ms)
    VALUES (NEW.id, coalesce(job.request_id, NEW.id::text), coalesce(job.created_at, NEW.created_at), 'video', 202,
      NEW.org_id, NEW.key_id, job.model, job.route, job.provider, coalesce(job.attempts, '[]'), NEW.id, NEW.charged,
      job.cost, 0)
    ON CONFLICT (id) DO UPDATE SET charge = excluded.charge, cost = coalesce(excluded.cost, r.cost),
      route = coalesce(excluded.route, r.route), provider = coalesce(excluded.provider, r.provider);
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER request_log_counted AFTER INSERT ON request_log REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_requests();
CREATE TRIGGER request_log_recounted AFTER UPDATE ON request_log REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_requests();
CREATE TRIGGER holds_logged AFTER UPDATE ON holds
  FOR EACH ROW WHEN (NEW.instance_id IS NULL AND NEW.state = 'settled') EXECUTE FUNCTION log_charged_job();
