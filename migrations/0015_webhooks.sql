-- Webhooks. A delivery is written in the transaction of what it tells of, and sent by whichever instance leases it.

CREATE TABLE webhook_endpoints (
  id          text PRIMARY KEY,
  org_id      text NOT NULL REFERENCES organizations (id),
  url         text NOT NULL,
  -- Not hashed: signatures are made with it.
  secret      text NOT NULL,
  created_at  timestamptz NOT NULL DEFAULT now(),
  -- Since it answered 410; nothing is written for it from then on.
  disabled_at timestamptz,
  -- Of the last try that failed.
  failure     text,
  failed_at   timestamptz
);
CREATE INDEX webhook_endpoints_org ON webhook_endpoints (org_id);

-- Signs what goes to the URLs that come with requests.
CREATE TABLE webhook_secrets (
  org_id text PRIMARY KEY REFERENCES organizations (id),
  secret text NOT NULL
);

CREATE TABLE webhook_deliveries (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- The same for all destinations of an event.
  event_id    text NOT NULL,
  org_id      text NOT NULL,
  -- Null: the URL came with a request.
  endpoint_id text REFERENCES webhook_endpoints (id) ON DELETE CASCADE,
  url         text NOT NULL,
  type        text NOT NULL,
  data        json NOT NULL,
  created_at  timestamptz NOT NULL DEFAULT now(),
  state       text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'failed')),
  tries       integer NOT NULL DEFAULT 0,
  tried_at    timestamptz,
  status      integer,
  failure     text,
  -- When it may be leased; while it is leased, when the lease lapses.
  next_at     timestamptz DEFAULT now(),
  lease       uuid,
  -- What shares a limit of deliveries at a time: an endpoint, or a host of an organization.
  lane        text NOT NULL
    GENERATED ALWAYS AS (coalesce(endpoint_id, org_id || ' ' || substring(url FROM '^[^:]*://[^/?#]*'))) STORED,
  CHECK ((state = 'pending') = (next_at IS NOT NULL))
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX webhook_deliveries_event ON webhook_deliveries (event_id);
CREATE INDEX webhook_deliveries_endpoint ON webhook_deliveries (endpoint_id) WHERE endpoint_id IS NOT NULL;
CREATE INDEX webhook_deliveries_org ON webhook_deliveries (org_id, id DESC);
CREATE INDEX webhook_deliveries_failed ON webhook_deliveries (id DESC) WHERE state = 'failed';
CREATE INDEX webhook_deliveries_created ON webhook_deliveries (created_at);

ALTER TABLE videos ADD COLUMN webhook_url text;

-- A charge that takes the balance from there or above to below it is told to the organization's endpoints.
ALTER TABLE organizations ADD COLUMN notify_below bigint;
