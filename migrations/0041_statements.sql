-- In the order in which a video that ends takes them.
LOCK TABLE videos IN SHARE ROW EXCLUSIVE MODE;

-- A refund or a dispute of a payment is an entry of its own kind. Refunds of requests stay adjustments with a reference
-- 'refund:...', by which the version before, which runs meanwhile, counts what is left to give back. No row is read: those
-- of before have passed narrower checks.
ALTER TABLE ledger_entries
  DROP CONSTRAINT ledger_entries_kind_check,
  ADD CONSTRAINT ledger_entries_kind_check CHECK (
    kind IN ('top_up', 'charge', 'adjustment', 'payment_reversal')
  ) NOT VALID,
  ADD CONSTRAINT ledger_entries_reversal_check CHECK (kind <> 'payment_reversal' OR ref IS NOT NULL) NOT VALID;

-- What statements say of charges. The ledger knows no model, and rows of the log and videos are removed: charges are added up
-- by month, model and surface once no other one of their time can come, by a gateway and beside all requests. Until then they
-- are read one by one, and what is removed before leaves its details here.
CREATE TABLE monthly_charges (
  org_id  text NOT NULL,
  month   date NOT NULL,
  -- '' where nothing told of it any more.
  model   text NOT NULL,
  surface text NOT NULL,
  requests          bigint NOT NULL,
  prompt_tokens     bigint NOT NULL,
  completion_tokens bigint NOT NULL,
  images            bigint NOT NULL,
  seconds           bigint NOT NULL,
  charge            bigint NOT NULL,
  PRIMARY KEY (org_id, month, model, surface)
);

CREATE TABLE monthly_charges_progress (
  only_row    boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  -- Every charge of before is in monthly_charges, and none of later.
  added_until timestamptz NOT NULL
);
INSERT INTO monthly_charges_progress (added_until) VALUES ('-infinity');

CREATE TABLE removed_charge_details (
  hold_id uuid PRIMARY KEY,
  model   text,
  surface text NOT NULL,
  prompt_tokens     bigint,
  completion_tokens bigint,
  seconds           bigint
);

CREATE VIEW charge_details AS
  SELECT e.id, e.org_id, e.at, e.hold_id, -e.amount AS charge,
    coalesce(v.model, r.model, k.model, '') AS model,
    CASE WHEN v.id IS NOT NULL THEN 'video' ELSE coalesce(r.surface, k.surface, '') END AS surface,
    least(coalesce(r.prompt_tokens, k.prompt_tokens, 0), 1e12::bigint) AS prompt_tokens,
    least(coalesce(r.completion_tokens, k.completion_tokens, 0), 1e12::bigint) AS completion_tokens,
    CASE WHEN coalesce(r.surface, k.surface) = 'image' THEN 1 ELSE 0 END AS images,
    coalesce(v.seconds, k.seconds, 0) AS seconds
  FROM ledger_entries AS e
  LEFT JOIN request_log AS r ON r.id = e.hold_id
  LEFT JOIN videos AS v ON v.hold_id = e.hold_id AND e.held IS NULL
  LEFT JOIN removed_charge_details AS k ON k.hold_id = e.hold_id
  WHERE e.kind = 'charge';

-- Whoever removes details shares the lock that adding up takes alone, and then reads how far it has come.
CREATE FUNCTION keep_request_details() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(7025102618);
  INSERT INTO removed_charge_details (hold_id, model, surface, prompt_tokens, completion_tokens)
  SELECT r.id, r.model, r.surface, r.prompt_tokens, r.completion_tokens
  FROM old_rows AS r JOIN ledger_entries AS e ON e.hold_id = r.id
  WHERE e.at >= (SELECT added_until FROM monthly_charges_progress)
  ORDER BY 1 ON CONFLICT (hold_id) DO UPDATE SET prompt_tokens = excluded.prompt_tokens, completion_tokens = excluded.completion_tokens;
  RETURN NULL;
END $$;

CREATE FUNCTION keep_video_details() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(7025102618);
  INSERT INTO removed_charge_details (hold_id, model, surface, seconds)
  SELECT v.hold_id, v.model, 'video', v.seconds
  FROM old_rows AS v JOIN ledger_entries AS e ON e.hold_id = v.hold_id
  WHERE e.at >= (SELECT added_until FROM monthly_charges_progress)
  ORDER BY 1 ON CONFLICT (hold_id) DO UPDATE SET model = excluded.model, surface = excluded.surface, seconds = excluded.seconds;
  RETURN NULL;
END $$;

CREATE TRIGGER request_log_details_kept AFTER DELETE ON request_log REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION keep_request_details();
CREATE TRIGGER videos_details_kept AFTER DELETE ON videos REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION keep_video_details();

-- Adds the next ten minutes that have an entry, and returns whether there may be more. An entry has the time at which its
-- transaction began, so the last hour is left, and all since the oldest transaction that still runs.
CREATE FUNCTION add_charges(latest timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  since timestamptz;
  till timestamptz;
  complete timestamptz := least(latest, now() - interval '1 hour', (
    SELECT min(xact_start) FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND xact_start IS NOT NULL
  ));
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
