-- New rows of the log are queued, and a gateway adds them to the totals once a second: adding them up cost a settlement more
-- than all its other rows, and settlements waited for each other's totals. Reports add what is queued. Nothing waits for
-- longer than it takes to change a trigger.

-- No index: it is read whole. Ids, since rows commit in another order than that of any number they are given.
CREATE TABLE uncounted_requests (id uuid NOT NULL)
  WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

CREATE TABLE usage_counter (
  only_row   boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  counted_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO usage_counter DEFAULT VALUES;

-- Names that nobody sells are 'unknown': customers may ask for any.
CREATE FUNCTION usage_model(model text, is_sold boolean) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT CASE
    WHEN is_sold OR model = '' OR EXISTS (SELECT FROM usage_series AS s WHERE s.model = usage_model.model AND s.is_sold) THEN model
    ELSE 'unknown'
  END
$$;

CREATE FUNCTION usage_series_of(p usage_part) RETURNS integer LANGUAGE sql STABLE AS $$
  SELECT id FROM usage_series AS s
  WHERE s.org_id = p.org_id AND s.key_id = p.key_id AND s.model = usage_model(p.model, p.is_sold) AND s.route = p.route
    AND s.provider = p.provider AND s.surface = p.surface AND s.status = p.status AND s.is_sold = p.is_sold
$$;

-- New series in one order, what is sold before what is named by it, and then all totals in the order of their keys, so that
-- no two writers deadlock: they are the last that a transaction locks.
CREATE FUNCTION add_usage(parts usage_part[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  sums usage_part[] := ARRAY(
    SELECT ROW(p.hour, p.org_id, p.key_id, p.model, p.route, p.provider, p.surface, p.status, p.is_sold,
      sum(p.requests), sum(p.errors), sum(p.prompt_tokens), sum(p.completion_tokens), sum(p.cached_tokens),
      sum(p.cache_write_tokens), sum(p.cache_write_hour_tokens), sum(p.reasoning_tokens), sum(p.web_searches),
      sum(p.charge), sum(p.cost), sum(p.margin), sum(p.costed), sum(p.uncosted), NULL)::usage_part
    FROM unnest(parts) AS p
    GROUP BY p.hour, p.org_id, p.key_id, p.model, p.route, p.provider, p.surface, p.status, p.is_sold
  );
  sold boolean;
BEGIN
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
END $$;

-- Takes ids out of the queue and adds their rows; the caller has the lock 7025102615. Rows of before the totals are left to
-- fill_usage. The rows are found by their key whatever the planner believes of the queue.
CREATE FUNCTION take_uncounted(most integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  found_ids integer;
  parts usage_part[];
BEGIN
  WITH taken AS (
    DELETE FROM uncounted_requests WHERE ctid = ANY (ARRAY(SELECT ctid FROM uncounted_requests LIMIT most)) RETURNING id
  )
  SELECT (SELECT count(*) FROM taken), array_agg(p) INTO found_ids, parts
  FROM taken, LATERAL (SELECT * FROM request_log WHERE request_log.id = taken.id OFFSET 0) AS r,
    usage_parts(1, ROW(r.*)::request_log) AS p
  WHERE r.at >= (SELECT filled_from FROM usage_bounds);
  PERFORM add_usage(parts);
  -- Settlements read this row, and its old versions while a backup keeps them: it does not change each second.
  UPDATE usage_counter SET counted_at = clock_timestamp()
  WHERE counted_at < clock_timestamp() - interval '3 seconds' AND found_ids < most;
  RETURN found_ids;
END $$;

-- Returns how many rows were queued, 0 where another gateway counts them.
CREATE FUNCTION count_uncounted(most integer) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
  IF NOT pg_try_advisory_xact_lock(7025102616) THEN
    RETURN 0;
  END IF;
  PERFORM set_config('lock_timeout', '500ms', true);
  PERFORM pg_advisory_xact_lock(7025102615);
  RETURN take_uncounted(most);
END $$;

-- Counts for gateways of the version before, which run no counter; without waiting, and never at the expense of a charge.
CREATE FUNCTION queue_requests() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO uncounted_requests SELECT id FROM new_rows;
  IF (SELECT counted_at < clock_timestamp() - interval '10 seconds' FROM usage_counter) THEN
    BEGIN
      IF pg_try_advisory_xact_lock(7025102615) THEN
        PERFORM take_uncounted(2000);
      END IF;
    EXCEPTION WHEN OTHERS THEN
      RAISE WARNING 'requests could not be counted: %', SQLERRM;
    END;
  END IF;
  RETURN NULL;
END $$;

-- A queued row is counted as it will be then. Whoever counts has the lock alone and reads afterwards, so until this
-- transaction ends no row that it changed leaves the queue, and none leaves it between the two reads here.
CREATE FUNCTION recount_requests() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  queued uuid[];
BEGIN
  IF NOT EXISTS (SELECT FROM new_rows) THEN
    RETURN NULL;
  END IF;
  PERFORM pg_advisory_xact_lock_shared(7025102615);
  queued := ARRAY(SELECT id FROM uncounted_requests WHERE id IN (SELECT id FROM new_rows));
  PERFORM add_usage(array_agg(p)) FROM (
    SELECT 1 AS sign, ROW(r.*)::request_log AS r FROM new_rows AS r
    UNION ALL
    SELECT -1, ROW(r.*)::request_log FROM old_rows AS r
  ) AS changes, usage_parts(sign, r) AS p
  WHERE (r).at >= (SELECT filled_from FROM usage_bounds) AND (r).id <> ALL (queued);
  RETURN NULL;
END $$;

-- A row that goes before it was counted is counted as it was. What is no longer queued here was counted for good.
CREATE FUNCTION count_removed_requests() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  parts usage_part[];
BEGIN
  IF NOT EXISTS (SELECT FROM uncounted_requests WHERE id IN (SELECT id FROM old_rows)) THEN
    RETURN NULL;
  END IF;
  PERFORM pg_advisory_xact_lock(7025102615);
  WITH taken AS (
    DELETE FROM uncounted_requests WHERE id IN (SELECT id FROM old_rows) RETURNING id
  )
  SELECT array_agg(p) INTO parts
  FROM old_rows AS r, usage_parts(1, ROW(r.*)::request_log) AS p
  WHERE r.id IN (SELECT id FROM taken) AND r.at >= (SELECT filled_from FROM usage_bounds);
  PERFORM add_usage(parts);
  RETURN NULL;
END $$;

-- Waits until all that was counted at once has been committed: what follows is queued.
CREATE OR REPLACE TRIGGER request_log_counted AFTER INSERT ON request_log REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION queue_requests();
CREATE OR REPLACE TRIGGER request_log_recounted AFTER UPDATE ON request_log
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION recount_requests();
CREATE TRIGGER request_log_removed AFTER DELETE ON request_log REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_removed_requests();

-- An hour that is being added by the function of before may have no queued row.
SELECT pg_advisory_xact_lock(7025102615);

-- Adds the newest hour of the log that the totals lack, by the minute, but for queued rows; returns from where on they have
-- every other row then.
CREATE OR REPLACE FUNCTION fill_usage() RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE
  hour timestamptz;
  minute timestamptz;
BEGIN
  PERFORM pg_advisory_xact_lock(7025102615);
  SELECT date_trunc('hour', max(at), 'UTC') INTO hour FROM request_log WHERE at < (SELECT filled_from FROM usage_bounds);
  UPDATE usage_bounds SET filled_from = coalesce(hour, '-infinity');
  FOR minute IN SELECT generate_series(hour, hour + interval '59 minutes', interval '1 minute') LOOP
    PERFORM add_usage(array_agg(p)) FROM request_log AS r, usage_parts(1, ROW(r.*)::request_log) AS p
    WHERE r.at >= minute AND r.at < minute + interval '1 minute' AND r.id NOT IN (SELECT id FROM uncounted_requests);
  END LOOP;
  RETURN coalesce(hour, '-infinity');
END $$;

DROP FUNCTION count_requests();
DROP FUNCTION usage_filled_from();
