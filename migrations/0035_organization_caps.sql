-- A spending cap of an organization. What it has spent in the period is counted in its own row, since adding up all its keys
-- takes too long for each request. Triggers count, so that charges and refunds of the version before are counted, too; but
-- for an organization with a cap they do nothing. Nothing is rewritten, nor read.

ALTER TABLE organizations
  ADD COLUMN cap bigint,
  ADD COLUMN cap_period text,
  -- What was charged from the UTC day cap_since on, on which the last period with a charge began.
  ADD COLUMN cap_spent bigint,
  ADD COLUMN cap_since date,
  ADD CONSTRAINT organizations_cap CHECK (
    (cap IS NULL) = (cap_period IS NULL) AND cap >= 0 AND cap_period IN ('day', 'week', 'month', 'total')
  ) NOT VALID;

DROP TRIGGER organizations_revision ON organizations;
CREATE TRIGGER organizations_revision AFTER UPDATE OF suspended_at, fit_holds, cap ON organizations
  FOR EACH STATEMENT EXECUTE FUNCTION bump_access_revision();

CREATE FUNCTION cap_period_start(period text, at timestamptz) RETURNS date LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE period WHEN 'total' THEN '-infinity'::date ELSE date_trunc(period, at AT TIME ZONE 'UTC')::date END
$$;

-- Null where the period never ends.
CREATE FUNCTION cap_period_end(period text) RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN period <> 'total'
    THEN (date_trunc(period, now() AT TIME ZONE 'UTC') + ('1 ' || period)::interval) AT TIME ZONE 'UTC'
  END
$$;

-- The row is locked by now, as every charge locks it before it adds to key_spend, and the sum has a snapshot of its own. It
-- begins by the clock, since a charge that is there already may be younger than this transaction.
CREATE FUNCTION add_up_cap_spent() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.cap_since := cap_period_start(NEW.cap_period, clock_timestamp());
  NEW.cap_spent := CASE WHEN NEW.cap IS NOT NULL THEN (
    SELECT coalesce(sum(spent), 0) FROM key_spend
    WHERE key_id IN (SELECT id FROM api_keys WHERE org_id = NEW.id) AND day >= NEW.cap_since
  ) END;
  RETURN NEW;
END $$;
CREATE TRIGGER organizations_cap_set BEFORE INSERT OR UPDATE OF cap, cap_period ON organizations
  FOR EACH ROW EXECUTE FUNCTION add_up_cap_spent();

CREATE FUNCTION count_cap_spent() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  -- By the time of the transaction, like the day in key_spend.
  since date := cap_period_start(NEW.cap_period);
BEGIN
  IF since > NEW.cap_since THEN
    NEW.cap_since := since;
    NEW.cap_spent := 0;
  END IF;
  -- A charge that has waited for the row may be of the period before.
  IF since = NEW.cap_since THEN
    NEW.cap_spent := NEW.cap_spent + OLD.balance - NEW.balance;
  END IF;
  RETURN NEW;
END $$;
-- Nothing but a charge lowers both the balance and what is held.
CREATE TRIGGER organizations_cap_counted BEFORE UPDATE OF balance ON organizations
  FOR EACH ROW WHEN (NEW.cap IS NOT NULL AND NEW.balance < OLD.balance AND NEW.held < OLD.held)
  EXECUTE FUNCTION count_cap_spent();

CREATE FUNCTION lower_cap_spent() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE organizations SET cap_spent = cap_spent + NEW.spent - OLD.spent
  WHERE id = (SELECT org_id FROM api_keys WHERE id = NEW.key_id) AND cap_since <= NEW.day;
  RETURN NULL;
END $$;
-- Nothing but a refund lowers what a key has spent.
CREATE TRIGGER key_spend_lowered AFTER UPDATE OF spent ON key_spend
  FOR EACH ROW WHEN (NEW.spent < OLD.spent) EXECUTE FUNCTION lower_cap_spent();

-- What an organization's open holds of jobs come to. Called by statements that have waited for the organization's lock, and
-- read with a new snapshot; a connection keeps its plan, also one made while the table was small.
CREATE FUNCTION job_holds_of(org text) RETURNS bigint LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
BEGIN
  RETURN (SELECT coalesce(sum(amount), 0) FROM holds WHERE org_id = org AND state = 'open' AND instance_id IS NULL);
END $$;
