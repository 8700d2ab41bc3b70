-- Rows of the log have UUIDs of version 7, which are in the order of time: a list walks the ids, and a span of time is a
-- span of ids. An id is made when its request arrives, in rare cases some minutes before the time in `at` or some seconds
-- after it, and clocks differ; statements compare `at` as well, so these bounds may be wide but never narrow.
CREATE FUNCTION log_id_at(at timestamptz, seconds integer) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN rpad(lpad(to_hex(floor(greatest(
    extract(epoch FROM least(greatest(at, 'epoch'), '9999-12-31Z')) + seconds, 0) * 1000
  )::bigint), 12, '0'), 32, '0')::uuid;

-- The smallest id that a request of that time or later can have.
CREATE FUNCTION first_log_id(since timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN log_id_at(since, -300);

-- Requests before that time have smaller ids.
CREATE FUNCTION log_id_limit(until timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN log_id_at(until, 60);

-- Finds a job's row by its id, which is that of the hold: request ids that the gateway makes will leave their index.
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
  WHERE r.id = NEW.id AND r.hold_id = NEW.id;
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

-- The newest hour of the log that the totals lack.
CREATE FUNCTION usage_hour_to_fill() RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT date_trunc('hour', max(at), 'UTC') FROM request_log, usage_bounds
  WHERE at < filled_from AND id < log_id_limit(filled_from) AND id >= first_log_id((
    SELECT at FROM request_log WHERE at < filled_from AND id < log_id_limit(filled_from) ORDER BY id DESC LIMIT 1
  ))
$$;

CREATE OR REPLACE FUNCTION fill_usage() RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE
  hour timestamptz;
  minute timestamptz;
BEGIN
  PERFORM pg_advisory_xact_lock(7025102615);
  hour := usage_hour_to_fill();
  UPDATE usage_bounds SET filled_from = coalesce(hour, '-infinity');
  FOR minute IN SELECT generate_series(hour, hour + interval '59 minutes', interval '1 minute') LOOP
    PERFORM add_usage(array_agg(p)) FROM request_log AS r, usage_parts(1, ROW(r.*)::request_log) AS p
    WHERE r.at >= minute AND r.at < minute + interval '1 minute'
      AND r.id >= first_log_id(minute) AND r.id < log_id_limit(minute + interval '1 minute')
      AND r.id NOT IN (SELECT id FROM uncounted_requests);
  END LOOP;
  RETURN coalesce(hour, '-infinity');
END $$;
