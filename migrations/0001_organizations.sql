-- Who may call, and from where. Amounts are nano-USD (1e-9 USD) everywhere.

CREATE TABLE organizations (
  id           text PRIMARY KEY,
  name         text NOT NULL UNIQUE,
  created_at   timestamptz NOT NULL DEFAULT now(),
  suspended_at timestamptz,
  -- The sum of the organization's ledger entries, and the sum of its open holds.
  balance      bigint NOT NULL DEFAULT 0,
  held         bigint NOT NULL DEFAULT 0 CHECK (held >= 0)
) WITH (fillfactor = 50);

CREATE TABLE api_keys (
  id         text PRIMARY KEY,
  org_id     text NOT NULL REFERENCES organizations (id),
  name       text NOT NULL DEFAULT '',
  -- SHA-256 of the whole secret; the secret itself is stored nowhere.
  hash       bytea NOT NULL UNIQUE,
  scopes     text[] CHECK (scopes <@ ARRAY['chat', 'images', 'videos']),
  rpm        integer CHECK (rpm > 0),
  cap        bigint CHECK (cap >= 0),
  cap_period text CHECK (cap_period IN ('day', 'week', 'month', 'total')),
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  CHECK ((cap IS NULL) = (cap_period IS NULL))
);
CREATE INDEX api_keys_org ON api_keys (org_id, created_at);

CREATE TABLE blocklist (
  range      cidr PRIMARY KEY,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- One number that moves whenever a key, a suspension or the block list does, so that an instance can ask
-- "is all I remember still true?" in one cheap read.
CREATE TABLE access_revision (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  revision bigint NOT NULL DEFAULT 1
);
INSERT INTO access_revision DEFAULT VALUES;

CREATE FUNCTION bump_access_revision() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE access_revision SET revision = revision + 1;
  RETURN NULL;
END $$;

CREATE TRIGGER api_keys_revision AFTER INSERT OR UPDATE OR DELETE ON api_keys
  FOR EACH STATEMENT EXECUTE FUNCTION bump_access_revision();
CREATE TRIGGER blocklist_revision AFTER INSERT OR UPDATE OR DELETE ON blocklist
  FOR EACH STATEMENT EXECUTE FUNCTION bump_access_revision();
CREATE TRIGGER organizations_revision AFTER UPDATE OF suspended_at ON organizations
  FOR EACH STATEMENT EXECUTE FUNCTION bump_access_revision();
