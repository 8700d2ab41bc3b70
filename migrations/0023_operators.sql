-- Who runs the gateway, and what they did to it. Secrets are kept as SHA-256 hashes only.
CREATE TABLE operators (
  id         text PRIMARY KEY,
  name       text NOT NULL,
  role       text NOT NULL CHECK (role IN ('read', 'write', 'owner')),
  token_hash bytea NOT NULL UNIQUE,
  created_at timestamptz NOT NULL DEFAULT now(),
  used_at    timestamptz,
  revoked_at timestamptz
);
CREATE UNIQUE INDEX operators_name ON operators (name) WHERE revoked_at IS NULL;

-- Links to the console, each of which opens one session.
CREATE TABLE operator_links (
  hash        bytea PRIMARY KEY,
  operator_id text NOT NULL REFERENCES operators,
  expires_at  timestamptz NOT NULL
);

CREATE TABLE operator_sessions (
  hash        bytea PRIMARY KEY,
  operator_id text NOT NULL REFERENCES operators,
  created_at  timestamptz NOT NULL DEFAULT now(),
  expires_at  timestamptz NOT NULL
);
CREATE INDEX operator_sessions_expiry ON operator_sessions (expires_at);

-- Each change that an operator made, written with it.
CREATE TABLE audit (
  id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at              timestamptz NOT NULL DEFAULT now(),
  actor           text NOT NULL,
  via             text NOT NULL,
  operator_id     text REFERENCES operators,
  action          text NOT NULL,
  target          text,
  org_id          text,
  -- Records without secrets; json, since jsonb refuses some of the texts that it must hold.
  before          json,
  after           json,
  idempotency_key text,
  fingerprint     text,
  UNIQUE (operator_id, idempotency_key)
);
CREATE INDEX audit_actor ON audit (actor, id DESC);
CREATE INDEX audit_action ON audit (action text_pattern_ops, id DESC);
CREATE INDEX audit_target ON audit (target, id DESC);
CREATE INDEX audit_org ON audit (org_id, id DESC);
