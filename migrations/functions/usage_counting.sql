-- Counts the requests of gateways of a version before 0030, which have no counter of their own. Never waits, and never
-- makes a charge fail.
CREATE OR REPLACE FUNCTION queue_requests() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE OR REPLACE TRIGGER request_log_counted AFTER INSERT ON request_log REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION queue_requests();

-- Removes ids from the queue and adds their rows to the totals. The caller must hold the advisory lock 7025102615.
-- fill_usage adds the rows from before the queue existed. Rows are found by their key, even if the planner expects many
-- of them in the queue.
CREATE OR REPLACE FUNCTION take_uncounted(most integer) RETURNS integer LANGUAGE plpgsql AS $$
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
  -- Settlements read this row, and during a backup also its old versions. So it must not change every second.
  UPDATE usage_counter SET counted_at = clock_timestamp()
  WHERE counted_at < clock_timestamp() - interval '3 seconds' AND found_ids < most;
  RETURN found_ids;
END $$;

-- Returns the number of rows that were queued, or 0 while another gateway counts them.
CREATE OR REPLACE FUNCTION count_uncounted(most integer) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
  IF NOT pg_try_advisory_xact_lock(7025102616) THEN
    RETURN 0;
  END IF;
  PERFORM set_config('lock_timeout', '500ms', true);
  PERFORM pg_advisory_xact_lock(7025102615);
  RETURN take_uncounted(most);
END $$;

-- A queued row is counted later, with its values at that time. Counting takes the lock exclusively and then reads. So
-- no row leaves the queue before this transaction ends, also not between the two reads here.
CREATE OR REPLACE FUNCTION recount_requests() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE OR REPLACE TRIGGER request_log_recounted AFTER UPDATE ON request_log REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION recount_requests();

-- A queued row that is deleted before it was counted is counted with its old values.
CREATE OR REPLACE FUNCTION count_removed_requests() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE OR REPLACE TRIGGER request_log_removed AFTER DELETE ON request_log REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_removed_requests();

-- The newest hour of the log that the totals lack.
CREATE OR REPLACE FUNCTION usage_hour_to_fill() RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT date_trunc('hour', max(at), 'UTC') FROM request_log, usage_bounds
  WHERE at < filled_from AND id < log_id_limit(filled_from) AND id >= first_log_id((
    SELECT at FROM request_log WHERE at < filled_from AND id < log_id_limit(filled_from) ORDER BY id DESC LIMIT 1
  ))
$$;

-- Adds the newest hour of the log that the totals lack, in steps of a minute and without queued rows. Returns the time
-- since when the totals contain all other rows.
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
