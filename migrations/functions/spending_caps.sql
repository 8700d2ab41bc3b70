-- The UTC day on which the current spending period began.
CREATE OR REPLACE FUNCTION cap_period_start(period text) RETURNS date LANGUAGE sql STABLE AS $$
  SELECT CASE period
    WHEN 'total' THEN '-infinity'::date
    ELSE date_trunc(period, now() AT TIME ZONE 'UTC')::date
  END
$$;

CREATE OR REPLACE FUNCTION cap_period_start(period text, at timestamptz) RETURNS date LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE period WHEN 'total' THEN '-infinity'::date ELSE date_trunc(period, at AT TIME ZONE 'UTC')::date END
$$;

-- Null if the period never ends.
CREATE OR REPLACE FUNCTION cap_period_end(period text) RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN period <> 'total'
    THEN (date_trunc(period, now() AT TIME ZONE 'UTC') + ('1 ' || period)::interval) AT TIME ZONE 'UTC'
  END
$$;

-- This statement locks the row. Every charge locks it before it adds to key_spend, so no charge is missed. The period
-- begins by the clock, because a charge may be newer than the start of this transaction.
CREATE OR REPLACE FUNCTION add_up_cap_spent() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.cap_since := cap_period_start(NEW.cap_period, clock_timestamp());
  NEW.cap_spent := CASE WHEN NEW.cap IS NOT NULL THEN (
    SELECT coalesce(sum(spent), 0) FROM key_spend
    WHERE key_id IN (SELECT id FROM api_keys WHERE org_id = NEW.id) AND day >= NEW.cap_since
  ) END;
  RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER organizations_cap_set BEFORE INSERT OR UPDATE OF cap, cap_period ON organizations
  FOR EACH ROW EXECUTE FUNCTION add_up_cap_spent();

CREATE OR REPLACE FUNCTION count_cap_spent() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  -- Uses the time of the transaction, as the day in key_spend does.
  since date := cap_period_start(NEW.cap_period);
BEGIN
  IF since > NEW.cap_since THEN
    NEW.cap_since := since;
    NEW.cap_spent := 0;
  END IF;
  -- A charge that has waited for the row may belong to the previous period.
  IF since = NEW.cap_since THEN
    NEW.cap_spent := NEW.cap_spent + OLD.balance - NEW.balance;
  END IF;
  RETURN NEW;
END $$;
-- Only a charge lowers both the balance and the held amount.
CREATE OR REPLACE TRIGGER organizations_cap_counted BEFORE UPDATE OF balance ON organizations
  FOR EACH ROW WHEN (new.cap IS NOT NULL AND new.balance < old.balance AND new.held < old.held) EXECUTE FUNCTION count_cap_spent();

CREATE OR REPLACE FUNCTION lower_cap_spent() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE organizations SET cap_spent = cap_spent + NEW.spent - OLD.spent
  WHERE id = (SELECT org_id FROM api_keys WHERE id = NEW.key_id) AND cap_since <= NEW.day;
  RETURN NULL;
END $$;
-- Only a refund lowers what a key has spent.
CREATE OR REPLACE TRIGGER key_spend_lowered AFTER UPDATE OF spent ON key_spend
  FOR EACH ROW WHEN (new.spent < old.spent) EXECUTE FUNCTION lower_cap_spent();

-- The amount that a key has spent since its period began. Statements call this function while they hold the lock of the
-- key's organization. It reads a new snapshot.
CREATE OR REPLACE FUNCTION spent_of_key(key text, period text) RETURNS bigint LANGUAGE plpgsql SET enable_seqscan TO 'off' AS $$
BEGIN
  RETURN (SELECT coalesce(sum(spent), 0) FROM key_spend WHERE key_id = key AND day >= cap_period_start(period));
END $$;

-- The amount that an organization has spent since the period of its cap began. Null without a cap.
CREATE OR REPLACE FUNCTION spent_of_organization(cap bigint, cap_period text, cap_since date, cap_spent bigint) RETURNS bigint
LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN cap_since >= cap_period_start(cap_period) THEN cap_spent WHEN cap IS NOT NULL THEN 0 END
$$;

-- The period of the cap of a key or an organization, if its spending and the open holds of its jobs reach the cap.
-- Otherwise null.
CREATE OR REPLACE FUNCTION reached_cap_of_key(key text) RETURNS text LANGUAGE plpgsql SET enable_seqscan TO 'off' AS $$
BEGIN
  RETURN (SELECT cap_period FROM api_keys WHERE id = key AND cap <= spent_of_key(id, cap_period) + job_holds_of_key(id));
END $$;

CREATE OR REPLACE FUNCTION reached_cap_of_organization(org text) RETURNS text LANGUAGE plpgsql SET enable_seqscan TO 'off' AS $$
BEGIN
  RETURN (
    SELECT cap_period FROM organizations
    WHERE id = org AND cap <= spent_of_organization(cap, cap_period, cap_since, cap_spent) + job_holds_of(id)
  );
END $$;
