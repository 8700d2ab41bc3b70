-- The first month whose statement has not been told to endpoints yet.
CREATE TABLE statement_notices (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  month    date NOT NULL
);
INSERT INTO statement_notices (month) VALUES (date_trunc('month', now() AT TIME ZONE 'UTC')::date);

-- No other entry of before can come. An entry has the time at which its transaction began, so the last hour is left, and all
-- since the oldest transaction that still runs.
CREATE FUNCTION entries_complete_until() RETURNS timestamptz LANGUAGE sql AS $$
  SELECT least(now() - interval '1 hour', min(xact_start)) FROM pg_stat_activity
  WHERE datname = current_database() AND backend_type = 'client backend' AND xact_start IS NOT NULL
$$;

-- Adds the next ten minutes that have an entry, and returns whether there may be more.
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

-- Charges that came after their time was added up, as where a database's clock was set back, are missing in statements: adds
-- them, with no model, and returns how many months of organizations lacked some.
CREATE FUNCTION add_missed_charges() RETURNS bigint LANGUAGE plpgsql AS $$
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
