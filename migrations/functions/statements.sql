-- Adds the charges of the next ten minutes that have an entry. Returns whether there may be more.
CREATE OR REPLACE FUNCTION add_charges(latest timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  since timestamptz;
  till timestamptz;
  complete timestamptz := least(latest, entries_complete_until());
BEGIN
  IF NOT pg_try_advisory_xact_lock(7025102618) THEN
    RETURN false;
  END IF;
  SELECT to_timestamp(floor(extract(epoch FROM min(at)) / 600) * 600) INTO since
  FROM ledger_entries WHERE at >= (SELECT added_until FROM monthly_charges_progress);
  till := since + interval '10 minutes';
  IF since IS NULL OR till > complete THEN
    RETURN false;
  END IF;
  INSERT INTO monthly_charges AS m
    (org_id, month, model, surface, requests, prompt_tokens, completion_tokens, images, seconds, charge)
  SELECT org_id, date_trunc('month', since AT TIME ZONE 'UTC')::date, model, surface, count(*), sum(prompt_tokens),
    sum(completion_tokens), sum(images), sum(seconds), sum(charge)
  FROM charge_details WHERE at >= since AND at < till GROUP BY 1, 2, 3, 4
  ON CONFLICT (org_id, month, model, surface) DO UPDATE SET
    requests = m.requests + excluded.requests, prompt_tokens = m.prompt_tokens + excluded.prompt_tokens,
    completion_tokens = m.completion_tokens + excluded.completion_tokens, images = m.images + excluded.images,
    seconds = m.seconds + excluded.seconds, charge = m.charge + excluded.charge;
  DELETE FROM removed_charge_details AS k USING ledger_entries AS e
  WHERE e.hold_id = k.hold_id AND e.at >= since AND e.at < till;
  UPDATE monthly_charges_progress SET added_until = till;
  RETURN true;
END $$;

-- No further entry can have a time before this one. An entry has the start time of its transaction. So this excludes
-- the last hour, and all times since the start of the oldest running transaction.
CREATE OR REPLACE FUNCTION entries_complete_until() RETURNS timestamptz LANGUAGE sql AS $$
  SELECT least(now() - interval '1 hour', min(xact_start)) FROM pg_stat_activity
  WHERE datname = current_database() AND backend_type = 'client backend' AND xact_start IS NOT NULL
$$;

-- Statements lack charges that were written after their time had been added up, for example because the database's
-- clock was set back. Adds such charges without a model. Returns the number of months of organizations that lacked
-- some.
CREATE OR REPLACE FUNCTION add_missed_charges() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  months bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(7025102618);
  INSERT INTO monthly_charges AS m
    (org_id, month, model, surface, requests, prompt_tokens, completion_tokens, images, seconds, charge)
  SELECT made.org_id, made.month, '', '', made.requests - coalesce(added.requests, 0), 0, 0, 0, 0,
    made.charge - coalesce(added.charge, 0)
  FROM (
    SELECT org_id, date_trunc('month', at AT TIME ZONE 'UTC')::date AS month, count(*) AS requests, -sum(amount) AS charge
    FROM ledger_entries WHERE kind = 'charge' AND at < (SELECT added_until FROM monthly_charges_progress) GROUP BY 1, 2
  ) AS made LEFT JOIN (
    SELECT org_id, month, sum(requests) AS requests, sum(charge) AS charge FROM monthly_charges GROUP BY 1, 2
  ) AS added USING (org_id, month)
  WHERE made.requests > coalesce(added.requests, 0)
  ON CONFLICT (org_id, month, model, surface) DO UPDATE SET
    requests = m.requests + excluded.requests, charge = m.charge + excluded.charge;
  GET DIAGNOSTICS months = ROW_COUNT;
  RETURN months;
END $$;

-- A removal takes the lock of add_charges in shared mode, and then reads up to which time the monthly charges are
-- complete.
CREATE OR REPLACE FUNCTION keep_request_details() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(7025102618);
  INSERT INTO removed_charge_details (hold_id, model, surface, prompt_tokens, completion_tokens)
  SELECT r.id, r.model, r.surface, r.prompt_tokens, r.completion_tokens
  FROM old_rows AS r JOIN ledger_entries AS e ON e.hold_id = r.id
  WHERE e.at >= (SELECT added_until FROM monthly_charges_progress)
  ORDER BY 1 ON CONFLICT (hold_id) DO UPDATE SET prompt_tokens = excluded.prompt_tokens, completion_tokens = excluded.completion_tokens;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER request_log_details_kept AFTER DELETE ON request_log REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION keep_request_details();

CREATE OR REPLACE FUNCTION keep_video_details() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(7025102618);
  INSERT INTO removed_charge_details (hold_id, model, surface, seconds)
  SELECT v.hold_id, v.model, 'video', v.seconds
  FROM old_rows AS v JOIN ledger_entries AS e ON e.hold_id = v.hold_id
  WHERE e.at >= (SELECT added_until FROM monthly_charges_progress)
  ORDER BY 1 ON CONFLICT (hold_id) DO UPDATE SET model = excluded.model, surface = excluded.surface, seconds = excluded.seconds;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER videos_details_kept AFTER DELETE ON videos REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION keep_video_details();
