-- The money. Entries are append-only; a hold is open, settled or released, once.

-- A running gateway. Its open holds are released once it has not renewed beat_at for 45 s.
CREATE TABLE instances (
  id         uuid PRIMARY KEY,
  started_at timestamptz NOT NULL DEFAULT now(),
  beat_at    timestamptz NOT NULL DEFAULT now(),
  -- Set once by whoever found it dead; such an instance may not place holds again.
  swept_at   timestamptz,
  stopped_at timestamptz
);

CREATE TABLE holds (
  id          uuid PRIMARY KEY,
  org_id      text NOT NULL REFERENCES organizations (id),
  key_id      text NOT NULL REFERENCES api_keys (id),
  amount      bigint NOT NULL CHECK (amount >= 0),
  state       text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'settled', 'released')),
  charged     bigint,
  -- The process whose life the hold is tied to.
  instance_id uuid NOT NULL REFERENCES instances (id),
  created_at  timestamptz NOT NULL DEFAULT now(),
  closed_at   timestamptz,
  CHECK ((state = 'settled') = (charged IS NOT NULL)),
  CHECK (charged >= 0 AND charged <= amount),
  CHECK ((state = 'open') = (closed_at IS NULL))
);
CREATE INDEX holds_open ON holds (instance_id) WHERE state = 'open';
CREATE INDEX holds_open_org ON holds (org_id) WHERE state = 'open';

CREATE FUNCTION keep_closed_holds() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'a closed hold cannot change';
END $$;
CREATE TRIGGER holds_closed_once BEFORE UPDATE ON holds
  FOR EACH ROW WHEN (OLD.state <> 'open') EXECUTE FUNCTION keep_closed_holds();
CREATE TRIGGER holds_kept BEFORE DELETE ON holds
  FOR EACH ROW EXECUTE FUNCTION keep_closed_holds();

CREATE TABLE ledger_entries (
  id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  org_id  text NOT NULL REFERENCES organizations (id),
  at      timestamptz NOT NULL DEFAULT now(),
  kind    text NOT NULL CHECK (kind IN ('top_up', 'charge', 'adjustment')),
  -- Added to the balance: a charge is zero or negative.
  amount  bigint NOT NULL,
  hold_id uuid UNIQUE REFERENCES holds (id),
  key_id  text REFERENCES api_keys (id),
  ref     text UNIQUE,
  note    text,
  CHECK ((kind = 'charge') = (hold_id IS NOT NULL)),
  CHECK ((kind = 'charge') = (key_id IS NOT NULL)),
  CHECK (CASE kind WHEN 'charge' THEN amount <= 0 WHEN 'top_up' THEN amount > 0 ELSE true END)
);
CREATE INDEX ledger_entries_org ON ledger_entries (org_id, id DESC);

CREATE FUNCTION keep_entries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'ledger entries are append-only';
END $$;
CREATE TRIGGER ledger_entries_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_entries
  FOR EACH STATEMENT EXECUTE FUNCTION keep_entries();

-- Settled spend of a key on one UTC day; spending caps sum these.
CREATE TABLE key_spend (
  key_id text NOT NULL REFERENCES api_keys (id),
  day    date NOT NULL,
  spent  bigint NOT NULL CHECK (spent >= 0),
  PRIMARY KEY (key_id, day)
) WITH (fillfactor = 50);

-- The UTC day on which the running spending period began.
CREATE FUNCTION cap_period_start(period text) RETURNS date LANGUAGE sql STABLE AS $$
  SELECT CASE period
    WHEN 'total' THEN '-infinity'::date
    ELSE date_trunc(period, now() AT TIME ZONE 'UTC')::date
  END
$$;
