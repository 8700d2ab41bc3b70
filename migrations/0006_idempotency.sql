-- The results that a repeated request gets again. A claim is the right of one request to work under a key.
CREATE TABLE idempotency_keys (
  claim       uuid PRIMARY KEY,
  org_id      text NOT NULL REFERENCES organizations (id),
  endpoint    text NOT NULL CHECK (endpoint IN ('images', 'videos')),
  -- Null once nobody can ask for it any more; the row then only waits to be pruned.
  key         text CHECK (length(key) BETWEEN 1 AND 255),
  -- Of the decoded request.
  fingerprint text NOT NULL,
  -- working: the request runs, and its key is free again if the instance dies. bound: it runs, and its result holds if
  -- the instance dies. done: the result is final.
  state       text NOT NULL DEFAULT 'working' CHECK (state IN ('working', 'bound', 'done')),
  -- The process that works under the key; not a reference, since one that is not there is as good as dead.
  instance_id uuid NOT NULL,
  result      jsonb,
  -- What paid for the result.
  hold_id     uuid REFERENCES holds (id),
  created_at  timestamptz NOT NULL DEFAULT now(),
  UNIQUE (org_id, endpoint, key),
  CHECK ((state = 'working') = (result IS NULL)),
  CHECK ((state = 'working') = (hold_id IS NULL))
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);
CREATE INDEX idempotency_keys_hold ON idempotency_keys (hold_id) WHERE hold_id IS NOT NULL;
