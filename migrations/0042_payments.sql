-- Payments by a provider's page, what it said of them, and what they came to. Nothing of before is read or rewritten.

-- From when on a payment of the organization is disputed. No keys are read with it until it changes.
ALTER TABLE organizations ADD COLUMN disputed_at timestamptz;
CREATE TRIGGER organizations_disputed AFTER UPDATE OF disputed_at ON organizations
  FOR EACH ROW WHEN (OLD.disputed_at IS DISTINCT FROM NEW.disputed_at) EXECUTE FUNCTION bump_access_revision();

CREATE TABLE payments (
  id             text PRIMARY KEY,
  -- Null, as the amount may be, where money came that nobody here asked for.
  org_id         text,
  amount         bigint CHECK (amount > 0),
  status         text NOT NULL CHECK (status IN ('open', 'paid', 'failed', 'expired', 'refused')),
  -- Null until the provider has made the page.
  session        text UNIQUE,
  payment_intent text UNIQUE,
  -- The entry of the ledger that it is.
  entry_id       bigint UNIQUE,
  -- Why money that came was not credited.
  problem        text,
  created_at     timestamptz NOT NULL DEFAULT now(),
  paid_at        timestamptz,
  -- Counts the states that were applied, so that an older one is never applied after a newer one.
  version        integer NOT NULL DEFAULT 0,
  CHECK ((status = 'paid') = (entry_id IS NOT NULL)),
  CHECK ((status = 'refused') = (problem IS NOT NULL)),
  CHECK (status = 'refused' OR (org_id IS NOT NULL AND amount IS NOT NULL))
);
CREATE INDEX payments_org ON payments (org_id, id DESC);
CREATE INDEX payments_refused ON payments (id DESC) WHERE status = 'refused';

-- Refunds and disputes of payments, as the provider has them, and what each took from the balance.
CREATE TABLE payment_reversals (
  id         text PRIMARY KEY,
  payment_id text NOT NULL REFERENCES payments,
  kind       text NOT NULL CHECK (kind IN ('refund', 'dispute')),
  status     text NOT NULL,
  is_open    boolean NOT NULL,
  amount     bigint NOT NULL CHECK (amount >= 0),
  taken      bigint NOT NULL DEFAULT 0 CHECK (taken >= 0),
  entries    integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL
);
CREATE INDEX payment_reversals_payment ON payment_reversals (payment_id);
CREATE INDEX payment_reversals_open ON payment_reversals (payment_id) WHERE is_open;

-- Events of the provider, each of which is applied once.
CREATE TABLE payment_events (
  id          text PRIMARY KEY,
  type        text NOT NULL,
  object      text,
  payment_id  text REFERENCES payments,
  created_at  timestamptz NOT NULL,
  received_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX payment_events_payment ON payment_events (payment_id) WHERE payment_id IS NOT NULL;

-- When an instance last looked for what no event told.
CREATE TABLE payment_syncs (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  next_at  timestamptz NOT NULL DEFAULT now()
);
INSERT INTO payment_syncs DEFAULT VALUES;
