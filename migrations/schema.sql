-- The tables of the gateway as they are now. A new database is made from this file, an older one by the migrations.
-- `npm run schema` writes this file from the numbered migrations, so change the schema by a migration, then run it.
-- Comments are the exception: edit them here. Amounts are nano-USD (1e-9 USD) everywhere. The functions and triggers of
-- the tables are in functions/, except functions that a table cannot do without.

-- A customer. Rows are never deleted, since ledger entries refer to them without a foreign key.
CREATE TABLE organizations (
  id               text PRIMARY KEY,
  name             text NOT NULL UNIQUE,
  created_at       timestamptz NOT NULL DEFAULT now(),
  suspended_at     timestamptz,
  -- The sum of the organization's ledger entries.
  balance          bigint NOT NULL DEFAULT 0,
  -- The sum of its open holds.
  held             bigint NOT NULL DEFAULT 0 CHECK (held >= 0),
  -- Low-balance alert: a webhook event is sent when the balance falls below this amount.
  notify_below     bigint,
  -- A deleted organization stays for its entries; its name is free again.
  deleted_at       timestamptz,
  -- Whether a chat may run with a lower token limit if the balance is too low for the full one.
  fit_holds        boolean NOT NULL DEFAULT false,
  -- Spending cap of the organization, beside those of its keys.
  cap              bigint,
  cap_period       text,
  -- The total charged since cap_since, the first UTC day of the last period with a charge. Triggers update it, because
  -- a sum over all keys would take too long for each request.
  cap_spent        bigint,
  cap_since        date,
  -- Set while a payment of the organization is disputed; its requests are refused.
  disputed_at      timestamptz,
  discount_percent double precision NOT NULL DEFAULT 0 CHECK (discount_percent >= '-100'::integer::double precision AND discount_percent <= 100::double precision),
  CONSTRAINT organizations_cap
    CHECK ((cap IS NULL) = (cap_period IS NULL) AND cap >= 0 AND (cap_period IN ('day', 'week', 'month', 'total')))
) WITH (fillfactor = 50);

CREATE TABLE api_keys (
  id                  text PRIMARY KEY,
  org_id              text NOT NULL REFERENCES organizations (id),
  name                text NOT NULL DEFAULT '',
  -- SHA-256 of the whole secret. The secret itself is stored nowhere.
  hash                bytea NOT NULL UNIQUE,
  -- Null: every scope.
  scopes              text[] CHECK (scopes <@ ARRAY['chat', 'images', 'videos']),
  -- Requests a minute; null: DEFAULT_RPM.
  rpm                 integer CHECK (rpm > 0),
  cap                 bigint CHECK (cap >= 0),
  cap_period          text CHECK (cap_period IN ('day', 'week', 'month', 'total')),
  created_at          timestamptz NOT NULL DEFAULT now(),
  expires_at          timestamptz,
  revoked_at          timestamptz,
  -- The first characters of the secret, to tell keys apart. Null for keys made before migration 0009.
  hint                text,
  -- Tokens a minute.
  tpm                 integer,
  -- Requests at the same time.
  concurrency         integer,
  -- Ids or patterns of the models that the key may use; null: all.
  models              text[],
  -- The secret before a reissue, which stays valid until previous_expires_at.
  previous_hash       bytea,
  previous_hint       text,
  previous_expires_at timestamptz,
  CONSTRAINT api_keys_check CHECK ((cap IS NULL) = (cap_period IS NULL)),
  CONSTRAINT api_keys_concurrency CHECK (concurrency >= 1 AND concurrency <= 1000000000),
  CONSTRAINT api_keys_tpm CHECK (tpm >= 1 AND tpm <= 1000000000)
);
CREATE INDEX api_keys_org ON api_keys (org_id, created_at);
CREATE INDEX api_keys_org_listed ON api_keys (org_id, id DESC);
CREATE UNIQUE INDEX api_keys_previous_hash ON api_keys (previous_hash) WHERE previous_hash IS NOT NULL;

-- Addresses whose requests are refused.
CREATE TABLE blocklist (
  range      cidr PRIMARY KEY,
  created_at timestamptz NOT NULL DEFAULT now()
);

-- A number that increases with every change of a key, a suspension or the block list. With one cheap read, an instance
-- checks whether its cache is current.
CREATE TABLE access_revision (
  only_row boolean DEFAULT true PRIMARY KEY CHECK (only_row),
  revision bigint NOT NULL DEFAULT 1
);
INSERT INTO access_revision DEFAULT VALUES;

-- A running gateway. Its open holds are released once it has not renewed beat_at for 45 s.
CREATE TABLE instances (
  id         uuid PRIMARY KEY,
  started_at timestamptz NOT NULL DEFAULT now(),
  beat_at    timestamptz NOT NULL DEFAULT now(),
  -- Set by the instance that found this one dead. After that, this instance may not place holds.
  swept_at   timestamptz,
  stopped_at timestamptz
);

-- Holds of jobs, and closed holds of requests that were not charged. Open holds of requests are in open_holds, and a
-- charged hold becomes an entry of the ledger: see the view all_holds.
CREATE TABLE holds (
  id          uuid PRIMARY KEY,
  org_id      text NOT NULL,
  key_id      text NOT NULL,
  amount      bigint NOT NULL CHECK (amount >= 0),
  state       text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'settled', 'released')),
  charged     bigint,
  -- The instance that runs the request. If it dies, the hold is released. Null for jobs.
  instance_id uuid,
  created_at  timestamptz NOT NULL DEFAULT now(),
  closed_at   timestamptz,
  CONSTRAINT holds_check CHECK ((state = 'settled') = (charged IS NOT NULL)),
  CONSTRAINT holds_check1 CHECK (charged >= 0 AND charged <= amount),
  CONSTRAINT holds_check2 CHECK ((state = 'open') = (closed_at IS NULL))
);
-- Deduplication is off, because every search for open holds would read an index entry for many rows until the last of
-- these holds is closed.
CREATE INDEX holds_open ON holds (instance_id) WITH (deduplicate_items=off) WHERE state = 'open';
CREATE INDEX holds_open_org ON holds (org_id) WITH (deduplicate_items=off) WHERE state = 'open';
-- The open holds of a key's jobs count towards its spending cap.
CREATE INDEX holds_open_jobs ON holds (key_id) INCLUDE (amount) WITH (deduplicate_items=off)
  WHERE state = 'open' AND instance_id IS NULL;

-- Entries and deliveries have numbers over all organizations. Two numbers would reveal the activity of all other
-- organizations between them. An organization therefore gets a public id: of a charge, the id of its hold. Older rows
-- keep the sealed number by which the organization knows them. The columns have no value for older rows, so no row is
-- rewritten.
CREATE FUNCTION uuid_v7(at timestamptz) RETURNS uuid LANGUAGE sql PARALLEL SAFE
  RETURN (((lpad(to_hex((floor((EXTRACT(epoch FROM at) * (1000)::numeric)))::bigint), 12, '0'::text) || '7'::text) || "right"(replace((gen_random_uuid())::text, '-'::text, ''::text), 19)))::uuid;

-- All movements of money. Entries are append-only, and a balance is the sum of its entries.
CREATE TABLE ledger_entries (
  id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  org_id    text NOT NULL,
  at        timestamptz NOT NULL DEFAULT now(),
  kind      text NOT NULL CHECK (kind IN ('top_up', 'charge', 'adjustment', 'payment_reversal')),
  -- Added to the balance: a charge is zero or negative.
  amount    bigint NOT NULL,
  -- The hold that a charge settled.
  hold_id   uuid UNIQUE,
  key_id    text,
  -- Identifies an entry that must exist only once, such as a payment or a refund.
  ref       text,
  note      text,
  -- The amount and the time of the hold of a request, which has no row of its own after the charge.
  held      bigint,
  held_at   timestamptz,
  public_id uuid DEFAULT uuid_v7(now()),
  CONSTRAINT ledger_entries_check CHECK ((kind = 'charge') = (hold_id IS NOT NULL)),
  CONSTRAINT ledger_entries_check1 CHECK ((kind = 'charge') = (key_id IS NOT NULL)),
  CONSTRAINT ledger_entries_check2
    CHECK (CASE kind WHEN 'charge' THEN amount <= 0 WHEN 'top_up' THEN amount > 0 ELSE true END),
  CONSTRAINT ledger_entries_held
    CHECK ((held IS NULL) = (held_at IS NULL) AND (held IS NULL OR kind = 'charge' AND amount >= (- held) AND amount <= 0)),
  CONSTRAINT ledger_entries_reversal_check CHECK (kind <> 'payment_reversal' OR ref IS NOT NULL)
);
-- Finds the refunds of a charge: those of the hold H are named refund:H, refund:H:2, refund:H:3 and so on.
CREATE INDEX ledger_entries_refunds ON ledger_entries (substr(ref, 8, 36))
  WHERE kind = 'adjustment' AND ref LIKE 'refund:%';
-- Charges have no reference, so they need no entry in this index.
CREATE UNIQUE INDEX ledger_entries_ref ON ledger_entries (ref) WHERE ref IS NOT NULL;
-- New entries have the highest keys of these indexes, so the pages of the indexes are full.
CREATE INDEX ledger_entries_time ON ledger_entries (at, id);
CREATE INDEX ledger_entries_org_time ON ledger_entries (org_id, at, id);
-- Nearly all entries are charges. They are not in these two indexes, so a charge does not update them.
CREATE INDEX ledger_entries_kind_time ON ledger_entries (kind, at, id) WHERE kind <> 'charge';
CREATE INDEX ledger_entries_org_kind_time ON ledger_entries (org_id, kind, at, id) WHERE kind <> 'charge';

-- The settled spend of a key on a UTC day. Spending caps add up these rows.
CREATE TABLE key_spend (
  key_id text NOT NULL,
  day    date NOT NULL,
  spent  bigint NOT NULL CHECK (spent >= 0),
  PRIMARY KEY (key_id, day)
) WITH (fillfactor = 50);

-- A fixed window of 60 s for each key. Unlogged, because a loss after a crash only starts new windows.
CREATE UNLOGGED TABLE rate_windows (
  key_id     text PRIMARY KEY,
  started_at timestamptz NOT NULL,
  used       bigint NOT NULL
) WITH (fillfactor = 50);

-- One row for each authenticated request to a generating endpoint. It never has a prompt or an output.
CREATE TABLE request_log (
  id                      uuid PRIMARY KEY,
  -- The client's x-request-id, or the id that the gateway gave the request. Not unique.
  request_id              text NOT NULL,
  at                      timestamptz NOT NULL,
  surface                 text NOT NULL,
  -- The HTTP status that the client got; 499 if it disconnected first.
  status                  integer NOT NULL,
  -- The code of the error.
  code                    text,
  org_id                  text NOT NULL,
  key_id                  text NOT NULL,
  model                   text,
  route                   text,
  provider                text,
  stream                  boolean NOT NULL DEFAULT false,
  -- [{route, provider, outcome, status, ms, cost_nano?}], in the order of the attempts.
  attempts                jsonb NOT NULL DEFAULT '[]'::jsonb,
  -- Such as usage_estimated, hold_exceeded, hold_lost.
  notes                   text[] NOT NULL DEFAULT '{}'::text[],
  prompt_tokens           bigint,
  completion_tokens       bigint,
  cached_tokens           bigint,
  reasoning_tokens        bigint,
  hold_id                 uuid,
  charge                  bigint NOT NULL DEFAULT 0,
  -- Computed from the provider's prices.
  cost                    bigint,
  first_byte_ms           integer,
  total_ms                integer NOT NULL,
  address                 text,
  user_agent              text,
  -- The id under which the provider can find the request.
  provider_request_id     text,
  -- Prompt tokens written to the provider's cache; cache_write_hour_tokens are those it keeps for an hour.
  cache_write_tokens      bigint,
  cache_write_hour_tokens bigint,
  web_searches            bigint,
  -- The route that has the conversation's prompt cache.
  preferred_route         text,
  -- The end user and the tag that the customer sent with the request.
  end_user                text,
  tag                     text,
  images                  bigint,
  seconds                 bigint,
  -- The cost of the request as the provider reported it.
  stated_cost             bigint,
  -- References the rates of the charge in price_lists.
  price_id                bigint,
  -- The error that the client got: param, message and hint.
  error                   jsonb
);
-- Ids are in the order of time: see first_log_id and log_id_limit.
CREATE INDEX request_log_org_id ON request_log (org_id, id);
CREATE INDEX request_log_key_id ON request_log (key_id, id);
-- Request ids that clients chose. A request id that the gateway made contains the id of its row.
CREATE INDEX request_log_chosen_id ON request_log (request_id)
  WHERE request_id <> ('req_' || replace(id::text, '-', ''));
-- These indexes contain few requests. With org_id, a member's list skips the rows of other organizations without
-- reading them.
CREATE INDEX request_log_failed ON request_log (status, id, org_id) WHERE status <> 200;
CREATE INDEX request_log_coded ON request_log (code, id, org_id) WHERE code IS NOT NULL;
CREATE INDEX request_log_tagged ON request_log (tag, id, org_id) WHERE tag IS NOT NULL;
CREATE INDEX request_log_of_user ON request_log (end_user, id, org_id) WHERE end_user IS NOT NULL;

-- The route health that each running instance publishes for operators. Circuit breakers themselves are in the
-- instances' memory.
CREATE UNLOGGED TABLE route_health (
  instance_id            uuid NOT NULL,
  route                  text NOT NULL,
  provider               text NOT NULL,
  model                  text NOT NULL,
  circuit                text NOT NULL CHECK (circuit IN ('closed', 'open', 'half_open')),
  open_until             timestamptz,
  last_error             text,
  last_error_at          timestamptz,
  latency_ms             double precision,
  requests               bigint NOT NULL,
  failures               bigint NOT NULL,
  published_at           timestamptz NOT NULL,
  -- The number of organizations for which the circuit is open, even if it is closed for all others.
  open_for_organizations integer NOT NULL DEFAULT 0,
  PRIMARY KEY (instance_id, route)
);

-- Results for repeated requests. A claim is the exclusive right of one request to use a key.
CREATE TABLE idempotency_keys (
  claim       uuid PRIMARY KEY,
  org_id      text NOT NULL REFERENCES organizations (id),
  endpoint    text NOT NULL CHECK (endpoint IN ('images', 'videos')),
  -- Null when no request can use the key any more. The row is then pruned later.
  key         text CHECK (length(key) >= 1 AND length(key) <= 255),
  -- A hash of the decoded request.
  fingerprint text NOT NULL,
  -- working: the request runs, and its key is free again if the instance dies. bound: it runs, and its result stays
  -- valid if the instance dies. done: the result is final.
  state       text NOT NULL DEFAULT 'working' CHECK (state IN ('working', 'bound', 'done')),
  -- The instance that runs the request. Not a foreign key, because an unknown instance counts as dead.
  instance_id uuid NOT NULL,
  result      jsonb,
  -- The hold that paid for the result. Not a foreign key, because a hold that a database crash lost is placed again
  -- after its result was stored.
  hold_id     uuid,
  created_at  timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT idempotency_keys_org_id_endpoint_key_key UNIQUE (org_id, endpoint, key),
  CONSTRAINT idempotency_keys_check CHECK ((state = 'working') = (result IS NULL)),
  CONSTRAINT idempotency_keys_check1 CHECK ((state = 'working') = (hold_id IS NULL))
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);
CREATE INDEX idempotency_keys_hold ON idempotency_keys (hold_id) WHERE hold_id IS NOT NULL;

-- Video jobs.
CREATE TABLE videos (
  id                text PRIMARY KEY,
  org_id            text NOT NULL REFERENCES organizations (id),
  key_id            text NOT NULL REFERENCES api_keys (id),
  hold_id           uuid NOT NULL UNIQUE REFERENCES holds (id),
  request_id        text NOT NULL,
  model             text NOT NULL,
  seconds           integer NOT NULL,
  price             bigint NOT NULL CHECK (price >= 0),
  -- Deleted when the job ends.
  prompt            text NOT NULL,
  -- The reference image: the customer's URL, and the name of the private copy in the media store.
  reference_url     text,
  reference         text,
  created_at        timestamptz NOT NULL DEFAULT now(),
  deadline          timestamptz NOT NULL,
  -- When the customer got the job's id. Customers never see a job that fails before that.
  accepted_at       timestamptz,
  status            text NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'in_progress', 'completed', 'failed')),
  completed_at      timestamptz,
  -- The clip's name in the media store.
  media             text,
  sandbox           boolean NOT NULL DEFAULT false,
  error_code        text,
  error_message     text,
  -- The cost of the render, if the catalog has the provider's price.
  cost              bigint,
  -- submit: to be submitted; submitting: sent to `route`, which may or may not have received it; rendering: `route`
  -- has it under `handle`.
  step              text NOT NULL DEFAULT 'submit' CHECK (step IN ('submit', 'submitting', 'rendering', 'over')),
  -- The route as it was when it was used, as JSON without its credential.
  route             text,
  handle            text,
  -- The previous version's `attempted_routes`. The next release drops it.
  tried             text[] NOT NULL DEFAULT '{}'::text[],
  attempts          jsonb NOT NULL DEFAULT '[]'::jsonb,
  -- The previous version's `may_retry_route`.
  spare             boolean NOT NULL DEFAULT true,
  -- The previous version's `uncertain_submits`.
  doubts            integer NOT NULL DEFAULT 0,
  polls             integer NOT NULL DEFAULT 0,
  downloads         integer NOT NULL DEFAULT 0,
  -- Whether the render must still be cancelled at the provider.
  cancelling        boolean NOT NULL DEFAULT false,
  -- When the job is due next. Null: the job needs no more work.
  next_at           timestamptz DEFAULT now(),
  lease             uuid,
  lease_until       timestamptz,
  -- The trace of the request that created the job, which the instance that ends it continues. Null: not traced.
  trace             text,
  -- A deleted video is hidden from its customer; its row stays for the operator.
  deleted_at        timestamptz,
  -- In percent, as reported by the provider. It never falls.
  progress          smallint NOT NULL DEFAULT 0,
  webhook_url       text,
  end_user          text,
  tag               text,
  -- When the current attempt started to render.
  rendering_since   timestamptz,
  -- The last failure, which is reported if the deadline passes.
  last_error        text,
  -- Ids of the attempted routes.
  attempted_routes  text[] NOT NULL DEFAULT '{}'::text[],
  -- Whether one more route may be tried after an uncertain submit or a failed render.
  may_retry_route   boolean NOT NULL DEFAULT true,
  -- Submits that may have reached a provider without confirmation. The operator may have paid for each without a
  -- result.
  uncertain_submits integer NOT NULL DEFAULT 0,
  CONSTRAINT videos_check CHECK ((status IN ('completed', 'failed')) = (completed_at IS NOT NULL)),
  CONSTRAINT videos_check1 CHECK ((status IN ('completed', 'failed')) = (step = 'over')),
  CONSTRAINT videos_check2 CHECK ((status = 'completed') = (media IS NOT NULL)),
  CONSTRAINT videos_check3 CHECK ((status = 'failed') = (error_code IS NOT NULL)),
  CONSTRAINT videos_check4 CHECK ((lease IS NULL) = (lease_until IS NULL)),
  CONSTRAINT videos_check5 CHECK ((step NOT IN ('submitting', 'rendering')) OR route IS NOT NULL),
  CONSTRAINT videos_check6 CHECK (step <> 'rendering' OR handle IS NOT NULL)
);
CREATE INDEX videos_due ON videos (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX videos_references ON videos (id) WHERE step = 'over' AND reference IS NOT NULL;
CREATE INDEX videos_over ON videos (completed_at) WHERE completed_at IS NOT NULL;
-- Operators also list jobs that no customer can see.
CREATE INDEX videos_org_created ON videos (org_id, created_at DESC, id DESC, status, model, accepted_at);
CREATE INDEX videos_created ON videos (created_at DESC, id DESC);
CREATE INDEX videos_model ON videos (model, created_at DESC, id DESC, status);
CREATE INDEX videos_status ON videos (status, created_at DESC, id DESC) WHERE status <> 'completed';
-- Contains only videos that customers can list, so a page reads only as many index entries as it has videos.
CREATE INDEX videos_listed ON videos (org_id, created_at DESC, id DESC)
  WHERE accepted_at IS NOT NULL AND deleted_at IS NULL;

-- Separate from the keys, because a change of a key makes all instances read their cache again.
CREATE TABLE key_uses (
  key_id       text PRIMARY KEY REFERENCES api_keys (id),
  last_used_at timestamptz NOT NULL
);

-- Names in the media store to remove. They are listed in the transaction that ends their use, so no crash loses one.
CREATE TABLE media_removals (
  name      text PRIMARY KEY,
  listed_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE webhook_endpoints (
  id          text PRIMARY KEY,
  org_id      text NOT NULL REFERENCES organizations (id),
  url         text NOT NULL,
  -- Not hashed, because events are signed with it.
  secret      text NOT NULL,
  created_at  timestamptz NOT NULL DEFAULT now(),
  -- Set when the endpoint returned 410. No further event is written for it.
  disabled_at timestamptz,
  -- The failure of the last try.
  failure     text,
  failed_at   timestamptz
);
CREATE INDEX webhook_endpoints_org_listed ON webhook_endpoints (org_id, id DESC);

-- Secrets that sign events for URLs that requests named.
CREATE TABLE webhook_secrets (
  org_id text PRIMARY KEY REFERENCES organizations (id),
  secret text NOT NULL
);

CREATE TABLE webhook_deliveries (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- The same for all destinations of an event.
  event_id    text NOT NULL,
  org_id      text NOT NULL,
  -- Null if a request named the URL.
  endpoint_id text,
  url         text NOT NULL,
  type        text NOT NULL,
  data        json NOT NULL,
  created_at  timestamptz NOT NULL DEFAULT now(),
  state       text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'failed')),
  tries       integer NOT NULL DEFAULT 0,
  tried_at    timestamptz,
  status      integer,
  failure     text,
  -- When it may be leased; while it is leased, when the lease ends.
  next_at     timestamptz DEFAULT now(),
  lease       uuid,
  -- The destination: an endpoint, or a host of an organization's URLs. Deliveries to the same destination share a limit
  -- of concurrent deliveries.
  lane        text GENERATED ALWAYS AS (COALESCE(endpoint_id, (org_id || ' ') || "substring"(url, '^[^:]*://[^/?#]*'))) STORED NOT NULL,
  public_id   uuid DEFAULT uuid_v7(now()),
  CONSTRAINT webhook_deliveries_check CHECK ((state = 'pending') = (next_at IS NOT NULL))
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX webhook_deliveries_event ON webhook_deliveries (event_id);
CREATE INDEX webhook_deliveries_failed ON webhook_deliveries (id DESC) WHERE state = 'failed';
CREATE INDEX webhook_deliveries_created ON webhook_deliveries (created_at);
CREATE INDEX webhook_deliveries_endpoint_listed ON webhook_deliveries (endpoint_id, id DESC, state)
  WHERE endpoint_id IS NOT NULL;
CREATE INDEX webhook_deliveries_org_listed ON webhook_deliveries (org_id, id DESC, state);
CREATE INDEX webhook_deliveries_pending ON webhook_deliveries (endpoint_id) WHERE next_at IS NOT NULL;

-- Commands of operators to running instances, which read this table and route_controls each second.
CREATE TABLE catalog_generation (
  only_row   boolean DEFAULT true PRIMARY KEY CHECK (only_row),
  -- Grows with each `gateway catalog reload`.
  generation integer NOT NULL DEFAULT 0
);
INSERT INTO catalog_generation DEFAULT VALUES;

CREATE TABLE route_controls (
  route       text PRIMARY KEY,
  disabled_at timestamptz,
  note        text,
  -- Grows with each `gateway routes reset`.
  resets      integer NOT NULL DEFAULT 0
);

-- The catalog that each instance uses, and why it refused the latest one.
CREATE TABLE instance_catalogs (
  instance_id uuid PRIMARY KEY,
  host        text NOT NULL,
  pid         integer NOT NULL,
  generation  integer NOT NULL,
  fingerprint text NOT NULL,
  models      integer NOT NULL,
  problem     text,
  read_at     timestamptz NOT NULL DEFAULT now()
);

-- People and programs that run the gateway. Secrets are stored as SHA-256 hashes only.
CREATE TABLE operators (
  id         text PRIMARY KEY,
  name       text NOT NULL,
  role       text NOT NULL CHECK (role IN ('read', 'write', 'owner')),
  token_hash bytea NOT NULL UNIQUE,
  created_at timestamptz NOT NULL DEFAULT now(),
  used_at    timestamptz,
  revoked_at timestamptz,
  -- The organization of a member; null: an operator of the whole gateway.
  org_id     text,
  CONSTRAINT operators_member_role CHECK (org_id IS NULL OR (role IN ('read', 'write')))
);
CREATE UNIQUE INDEX operators_name ON operators (name) WHERE revoked_at IS NULL;
CREATE INDEX operators_org ON operators (org_id) WHERE org_id IS NOT NULL;

-- Links to the console. Each opens one session.
CREATE TABLE operator_links (
  hash        bytea PRIMARY KEY,
  operator_id text NOT NULL REFERENCES operators (id),
  expires_at  timestamptz NOT NULL
);

CREATE TABLE operator_sessions (
  hash        bytea PRIMARY KEY,
  operator_id text NOT NULL REFERENCES operators (id),
  created_at  timestamptz NOT NULL DEFAULT now(),
  expires_at  timestamptz NOT NULL
);
CREATE INDEX operator_sessions_expiry ON operator_sessions (expires_at);

-- The audit log. Each change by an operator is written in the same transaction as its row.
CREATE TABLE audit (
  id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at              timestamptz NOT NULL DEFAULT now(),
  actor           text NOT NULL,
  via             text NOT NULL,
  operator_id     text REFERENCES operators (id),
  action          text NOT NULL,
  target          text,
  org_id          text,
  -- Records without secrets. The type is json, because jsonb refuses some texts that the records may contain.
  before          json,
  after           json,
  idempotency_key text,
  fingerprint     text,
  CONSTRAINT audit_operator_id_idempotency_key_key UNIQUE (operator_id, idempotency_key)
);
CREATE INDEX audit_actor ON audit (actor, id DESC);
CREATE INDEX audit_action ON audit (action text_pattern_ops, id DESC);
CREATE INDEX audit_target ON audit (target, id DESC);
CREATE INDEX audit_org ON audit (org_id, id DESC);

-- The groups of the usage totals. '' stands for null.
CREATE TABLE usage_series (
  id       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  org_id   text NOT NULL,
  key_id   text NOT NULL,
  -- A model that is not on sale is 'unknown', because customers may send any name.
  model    text NOT NULL,
  route    text NOT NULL,
  provider text NOT NULL,
  surface  text NOT NULL,
  status   integer NOT NULL,
  -- Whether the model of the requests was on sale.
  is_sold  boolean NOT NULL,
  CONSTRAINT usage_series_org_id_key_id_model_route_provider_surface_sta_key
    UNIQUE (org_id, key_id, model, route, provider, surface, status, is_sold)
);
CREATE INDEX usage_series_sold ON usage_series (model) WHERE is_sold;

-- Totals of the request log by hour and by day. They are kept forever, although old rows of the log are deleted.
CREATE TABLE usage_totals (
  starts_at               timestamptz NOT NULL,
  requests                bigint NOT NULL,
  errors                  bigint NOT NULL,
  prompt_tokens           bigint NOT NULL,
  completion_tokens       bigint NOT NULL,
  cached_tokens           bigint NOT NULL,
  cache_write_tokens      bigint NOT NULL,
  cache_write_hour_tokens bigint NOT NULL,
  reasoning_tokens        bigint NOT NULL,
  web_searches            bigint NOT NULL,
  charge                  bigint NOT NULL,
  -- Includes the cost of failed attempts, which is counted for their own route.
  cost                    bigint NOT NULL,
  -- Charge minus cost, for requests with a known cost.
  margin                  bigint NOT NULL,
  -- The number of requests with a known cost, and of charged requests without one.
  costed                  bigint NOT NULL,
  uncosted                bigint NOT NULL,
  series_id               integer NOT NULL,
  span                    text NOT NULL,
  images                  bigint NOT NULL DEFAULT 0,
  seconds                 bigint NOT NULL DEFAULT 0,
  stated_cost             bigint NOT NULL DEFAULT 0,
  -- The computed cost of requests with a stated cost, and how much the stated one differs from it.
  compared_cost           bigint NOT NULL DEFAULT 0,
  cost_drift              bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (series_id, starts_at, span)
) PARTITION BY LIST (span);
CREATE INDEX usage_totals_time ON usage_totals (starts_at);

-- Its rows change during the whole hour, so no index contains a column that changes with them.
CREATE TABLE usage_hours PARTITION OF usage_totals FOR VALUES IN ('hour') WITH (fillfactor = 70);

CREATE TABLE usage_days PARTITION OF usage_totals FOR VALUES IN ('day') WITH (fillfactor = 70);

-- The totals contain every row of the log since filled_from. The log contains every row since rows_from.
CREATE TABLE usage_bounds (
  only_row    boolean DEFAULT true PRIMARY KEY CHECK (only_row),
  filled_from timestamptz NOT NULL,
  rows_from   timestamptz NOT NULL DEFAULT '-infinity'::timestamptz,
  -- Charges before this time may lack their row of the log.
  logged_from timestamptz NOT NULL DEFAULT now()
);
INSERT INTO usage_bounds (filled_from) SELECT
  CASE WHEN EXISTS (SELECT FROM request_log) THEN date_trunc('hour', now(), 'UTC') + interval '2 hours' ELSE '-infinity' END;

-- Rows of the log that a gateway will add to the totals, once a second. Without an index, because the whole table is
-- read. It contains ids and no bound, because rows commit in another order than that of their ids.
CREATE TABLE uncounted_requests (
  id uuid NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- When queued rows were last counted.
CREATE TABLE usage_counter (
  only_row   boolean DEFAULT true PRIMARY KEY CHECK (only_row),
  counted_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO usage_counter DEFAULT VALUES;

-- Holds of running requests.
CREATE TABLE open_holds (
  id          uuid PRIMARY KEY,
  org_id      text NOT NULL,
  key_id      text NOT NULL,
  amount      bigint NOT NULL CHECK (amount >= 0),
  instance_id uuid NOT NULL,
  created_at  timestamptz NOT NULL DEFAULT now(),
  -- A released hold stays here while a late statement may still place or settle it. Then it is moved to holds.
  released_at timestamptz
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, vacuum_truncate = off);
-- Counts the running requests of a key.
CREATE INDEX open_holds_key ON open_holds (key_id) WITH (deduplicate_items=off);

-- Like rate_windows, for tokens.
CREATE UNLOGGED TABLE token_windows (
  key_id     text PRIMARY KEY,
  started_at timestamptz NOT NULL,
  used       bigint NOT NULL CHECK (used >= 0)
) WITH (fillfactor = 50);

-- The tags of an organization with their own totals on a day, numbered in the order of their first request.
CREATE TABLE usage_tags (
  day    date NOT NULL,
  org_id text NOT NULL,
  tag    text NOT NULL,
  number smallint NOT NULL CHECK (number >= 1 AND number <= 1000),
  PRIMARY KEY (day, org_id, tag),
  CONSTRAINT usage_tags_day_org_id_number_key UNIQUE (day, org_id, number)
);

CREATE TABLE usage_tag_series (
  id        integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- The id of a row in usage_series.
  series_id integer NOT NULL,
  tag       text NOT NULL,
  CONSTRAINT usage_tag_series_tag_series_id_key UNIQUE (tag, series_id)
);
CREATE INDEX usage_tag_series_series ON usage_tag_series (series_id);

-- The part of usage_totals that has a tag; series_id is an id in usage_tag_series.
CREATE TABLE usage_tag_totals (
  starts_at               timestamptz NOT NULL,
  requests                bigint NOT NULL,
  errors                  bigint NOT NULL,
  prompt_tokens           bigint NOT NULL,
  completion_tokens       bigint NOT NULL,
  cached_tokens           bigint NOT NULL,
  cache_write_tokens      bigint NOT NULL,
  cache_write_hour_tokens bigint NOT NULL,
  reasoning_tokens        bigint NOT NULL,
  web_searches            bigint NOT NULL,
  charge                  bigint NOT NULL,
  cost                    bigint NOT NULL,
  margin                  bigint NOT NULL,
  costed                  bigint NOT NULL,
  uncosted                bigint NOT NULL,
  series_id               integer NOT NULL,
  span                    text NOT NULL,
  images                  bigint NOT NULL DEFAULT 0,
  seconds                 bigint NOT NULL DEFAULT 0,
  stated_cost             bigint NOT NULL DEFAULT 0,
  compared_cost           bigint NOT NULL DEFAULT 0,
  cost_drift              bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (series_id, starts_at, span)
) PARTITION BY LIST (span);
CREATE INDEX usage_tag_totals_time ON usage_tag_totals (starts_at);

CREATE TABLE usage_tag_hours PARTITION OF usage_tag_totals FOR VALUES IN ('hour') WITH (fillfactor = 70);

CREATE TABLE usage_tag_days PARTITION OF usage_tag_totals FOR VALUES IN ('day') WITH (fillfactor = 70);

-- The rates at which chats are charged, identified by their hash. So the log needs only eight bytes to explain each
-- charge. Without a foreign key, because a request must not wait for its price list. Rows are never changed.
CREATE TABLE price_lists (
  id       bigint PRIMARY KEY,
  rates    jsonb NOT NULL,
  added_at timestamptz NOT NULL DEFAULT now()
);

-- The charges of statements, added up by month, model and surface when no other charge of their time can follow. The
-- ledger has no models, and rows of the log and of videos are deleted later. Charges of rows that were deleted before
-- have their details in removed_charge_details.
CREATE TABLE monthly_charges (
  org_id            text NOT NULL,
  month             date NOT NULL,
  -- '' if the details are lost.
  model             text NOT NULL,
  surface           text NOT NULL,
  requests          bigint NOT NULL,
  prompt_tokens     bigint NOT NULL,
  completion_tokens bigint NOT NULL,
  images            bigint NOT NULL,
  seconds           bigint NOT NULL,
  charge            bigint NOT NULL,
  PRIMARY KEY (org_id, month, model, surface)
);

CREATE TABLE monthly_charges_progress (
  only_row    boolean DEFAULT true PRIMARY KEY CHECK (only_row),
  -- monthly_charges contains every charge before this time, and no later one.
  added_until timestamptz NOT NULL
);
INSERT INTO monthly_charges_progress (added_until) VALUES ('-infinity');

CREATE TABLE removed_charge_details (
  hold_id           uuid PRIMARY KEY,
  model             text,
  surface           text NOT NULL,
  prompt_tokens     bigint,
  completion_tokens bigint,
  seconds           bigint
);

CREATE TABLE payments (
  id             text PRIMARY KEY,
  -- The organization and the amount are null for a payment that this gateway did not start.
  org_id         text,
  amount         bigint CHECK (amount > 0),
  status         text NOT NULL CHECK (status IN ('open', 'paid', 'failed', 'expired', 'refused')),
  -- Null until the provider has created the page.
  session        text UNIQUE,
  payment_intent text UNIQUE,
  -- The ledger entry of a paid payment.
  entry_id       bigint UNIQUE,
  -- Why received money was not credited.
  problem        text,
  created_at     timestamptz NOT NULL DEFAULT now(),
  paid_at        timestamptz,
  -- The number of applied states. It prevents that an older state is applied after a newer one.
  version        integer NOT NULL DEFAULT 0,
  CONSTRAINT payments_check CHECK ((status = 'paid') = (entry_id IS NOT NULL)),
  CONSTRAINT payments_check1 CHECK ((status = 'refused') = (problem IS NOT NULL)),
  CONSTRAINT payments_check2 CHECK (status = 'refused' OR org_id IS NOT NULL AND amount IS NOT NULL)
);
CREATE INDEX payments_org ON payments (org_id, id DESC);
CREATE INDEX payments_refused ON payments (id DESC) WHERE status = 'refused';
-- Used by the hourly check of open payments.
CREATE INDEX payments_open ON payments (created_at) WHERE status = 'open';

-- Refunds and disputes of payments, and what each took from the balance.
CREATE TABLE payment_reversals (
  id             text PRIMARY KEY,
  payment_id     text NOT NULL REFERENCES payments (id),
  kind           text NOT NULL CHECK (kind IN ('refund', 'dispute')),
  status         text NOT NULL,
  is_open        boolean NOT NULL,
  amount         bigint NOT NULL CHECK (amount >= 0),
  taken          bigint NOT NULL DEFAULT 0 CHECK (taken >= 0),
  entries        integer NOT NULL DEFAULT 0,
  created_at     timestamptz NOT NULL,
  -- The amount in another currency, and whether an operator must enter it in USD.
  foreign_amount text,
  needs_amount   boolean NOT NULL DEFAULT false
);
CREATE INDEX payment_reversals_payment ON payment_reversals (payment_id);
CREATE INDEX payment_reversals_open ON payment_reversals (payment_id) WHERE is_open;

-- Events of the payment provider. Each is applied once.
CREATE TABLE payment_events (
  id          text PRIMARY KEY,
  type        text NOT NULL,
  object      text,
  payment_id  text REFERENCES payments (id),
  created_at  timestamptz NOT NULL,
  received_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX payment_events_payment ON payment_events (payment_id) WHERE payment_id IS NOT NULL;

-- When an instance must next fetch changes from the payment provider that no event reported.
CREATE TABLE payment_syncs (
  only_row boolean DEFAULT true PRIMARY KEY CHECK (only_row),
  next_at  timestamptz NOT NULL DEFAULT now()
);
INSERT INTO payment_syncs DEFAULT VALUES;

-- The first month for which no statement.ready was sent.
CREATE TABLE statement_notices (
  only_row boolean DEFAULT true PRIMARY KEY CHECK (only_row),
  month    date NOT NULL
);
INSERT INTO statement_notices (month) VALUES (date_trunc('month', now() AT TIME ZONE 'UTC')::date);

-- Entries and deliveries have numbers over all organizations, so two numbers would reveal the activity of all others.
-- Customers get a sealed (encrypted) form of each number, which is meaningless to other organizations.
CREATE TABLE number_seal (
  only_row boolean DEFAULT true PRIMARY KEY CHECK (only_row),
  secret   text NOT NULL
);
INSERT INTO number_seal (secret) VALUES (gen_random_uuid()::text || gen_random_uuid()::text);

-- Destinations whose last delivery was slow. They share a separate and lower limit of concurrent deliveries. A row is
-- deleted a day after its last slow delivery.
CREATE TABLE webhook_slow_lanes (
  lane     text PRIMARY KEY,
  org_id   text NOT NULL,
  tried_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX webhook_slow_lanes_org ON webhook_slow_lanes (org_id);

-- The amounts that a request adds to one row of the totals.
CREATE TYPE usage_part AS (
  hour                    timestamptz,
  org_id                  text,
  key_id                  text,
  model                   text,
  route                   text,
  provider                text,
  surface                 text,
  status                  integer,
  is_sold                 boolean,
  requests                bigint,
  errors                  bigint,
  prompt_tokens           bigint,
  completion_tokens       bigint,
  cached_tokens           bigint,
  cache_write_tokens      bigint,
  cache_write_hour_tokens bigint,
  reasoning_tokens        bigint,
  web_searches            bigint,
  charge                  bigint,
  cost                    bigint,
  margin                  bigint,
  costed                  bigint,
  uncosted                bigint,
  series_id               integer,
  tag                     text,
  images                  bigint,
  seconds                 bigint,
  stated_cost             bigint,
  compared_cost           bigint,
  cost_drift              bigint
);

-- Every hold once, from the table that contains it.
CREATE VIEW all_holds AS
SELECT holds.id,
  holds.org_id,
  holds.key_id,
  holds.amount,
  holds.state,
  holds.charged,
  holds.instance_id,
  holds.created_at,
  holds.closed_at,
  holds.instance_id IS NULL AS is_job
FROM holds
UNION ALL
SELECT open_holds.id,
  open_holds.org_id,
  open_holds.key_id,
  open_holds.amount,
  CASE
    WHEN open_holds.released_at IS NULL THEN 'open'
    ELSE 'released'
  END AS state,
  NULL::bigint AS charged,
  open_holds.instance_id,
  open_holds.created_at,
  open_holds.released_at AS closed_at,
  false AS is_job
FROM open_holds
UNION ALL
SELECT ledger_entries.hold_id AS id,
  ledger_entries.org_id,
  ledger_entries.key_id,
  ledger_entries.held AS amount,
  'settled' AS state,
  - ledger_entries.amount AS charged,
  NULL::uuid AS instance_id,
  ledger_entries.held_at AS created_at,
  ledger_entries.at AS closed_at,
  false AS is_job
FROM ledger_entries
WHERE ledger_entries.held IS NOT NULL;

-- Every charge with the model and the counts of its request. Statements use it.
CREATE VIEW charge_details AS
SELECT e.id,
  e.org_id,
  e.at,
  e.hold_id,
  - e.amount AS charge,
  COALESCE(v.model, r.model, k.model, '') AS model,
  CASE
    WHEN v.id IS NOT NULL THEN 'video'
    ELSE COALESCE(r.surface, k.surface, '')
  END AS surface,
  LEAST(COALESCE(r.prompt_tokens, k.prompt_tokens, 0::bigint), '1000000000000'::numeric::bigint) AS prompt_tokens,
  LEAST(COALESCE(r.completion_tokens, k.completion_tokens, 0::bigint), '1000000000000'::numeric::bigint) AS completion_tokens,
  CASE
    WHEN COALESCE(r.surface, k.surface) = 'image' THEN 1
    ELSE 0
  END AS images,
  COALESCE(v.seconds::bigint, k.seconds, 0::bigint) AS seconds
FROM ledger_entries e
  LEFT JOIN request_log r ON r.id = e.hold_id
  LEFT JOIN videos v ON v.hold_id = e.hold_id AND e.held IS NULL
  LEFT JOIN removed_charge_details k ON k.hold_id = e.hold_id
WHERE e.kind = 'charge';

INSERT INTO schema_migrations (id, name, checksum) VALUES
  (1, '0001_organizations', '49edc77a6368df5cb4f0e60e5e999e6def95716436df2570cfc24439b1d9a967'),
  (2, '0002_ledger', 'dd5d9a77bfd7ddd8af458831745d90a57422dd979561ea7352482b599d3ec6d6'),
  (3, '0003_rate_windows', 'ae52f86c2ab7d28fd21a34e768fe17359d010cb2f1a182d02d27d3b740e9f391'),
  (4, '0004_request_log', '80d1e76a0870f1354fd2a2948121a2f70611f87488b6a7e983953eac33068d14'),
  (5, '0005_route_health', 'adcfa3f431c693b3541df17ff88b910f3f720ef8ebb9dce6f768ef889613d10d'),
  (6, '0006_idempotency', 'cdaf837921bac18f570f871e1f9a060bb28b24b9dcce61a505e37afb43be37c9'),
  (7, '0007_job_holds', '288405e9e52801301e25f6fa7ccddf48a2ccf0d05f761d69073307de86cc79e8'),
  (8, '0008_videos', '665f25425f7dab22980fb95b4ff1af9245fcefc056423733a52306e7d0c45898'),
  (9, '0009_key_hints', '334b0d76fe5cf9ae6107cb5e20a1b566de2de0aa50ebe1e48ee0611bbe0e14f9'),
  (10, '0010_unreferenced_ledger', 'f3cc8df81eaa6991edea171d437a6a3dbb09caa5a7b25402bc4bd2cc4a48dbd1'),
  (11, '0011_growth', '8595f9848f587f9df9761972f6eb88994863a56efe2803b4c9d34304c5f16341'),
  (12, '0012_video_traces', '66db2841c525bba2b5352d529f6e8352040cba3e704aa35a55ce3b0d51f35e79'),
  (14, '0014_customers', 'c70631c9432b5a6b2469bd2dce0fadef9aacfd2958a228226a59fe689386ecdc'),
  (15, '0015_webhooks', '2f8f56c7ec348369305fbaa4b305c899f1b770d193eb3795a449f0db2118b5ce'),
  (16, '0016_operator_controls', '7c8c8f39d6120cddca69b6b946ee3e7a7c250dbdc71d1cb2c52e5022fd0adb1c'),
  (17, '0017_operator', 'fe10b0ae6589337a7de11b445aabd9b92ee2380dc857698bdbe877a2a343ef0b'),
  (18, '0018_request_clients', 'abf55d16eae03ec957e56ee9398f4fe4de80f14a4722e9af252d097554deee37'),
  (19, '0019_unreferenced_deliveries', '2491ed01a6f480b4652ca9735589b41e2202db49796cc8ff40c3cc741e25e229'),
  (20, '0020_cache_writes', '81144b7c5423e14a8e61c5c8bbcadb8d8723e2ba92a9442ac27317dc1c76f9d8'),
  (21, '0021_preferred_route', '268c48c33678f861251879854de80e846be8c7b99987b89608ca4ea917b01a05'),
  (22, '0022_fitted_holds', 'f820a59661e6e5fce0a709ccde2e92c9ce4852763b5f8e4132aa34661f907fa1'),
  (23, '0023_operators', 'e2b8b5ee079a37874e07d3f6726b4433a6ce212d9073090eba4a40eea4067f60'),
  (24, '0024_usage_totals', '2c3fd59521cca36c363ffb376b0745c17cf659ffb237ff6e12119d7ea0793dde'),
  (25, '0025_ledger_pages', 'fc70d712ace67e35c8d6e7c0cd62d8f1f56fcd581806e1bee7eb38c07cfbf1fc'),
  (26, '0026_request_codes', '7b3abeae07066802194e4ab6bcc97d7ac359874fd06ffcdd90f6fe0b8ffc7002'),
  (27, '0027_listing_indexes', 'fa803cc328e0e73a26247eaa8e2a817c6cc2ac454f7d98964870972e3881385f'),
  (28, '0028_organization_circuits', '1ec9a29167660ec484688b3df21f5fa0712eb244e6d75307382135d5384bce3d'),
  (29, '0029_unused_index', '120e9d6c8b1dbd35d39bb7ee7e8028ccffc3d39f13f0d23ece5cf0759fc28a7b'),
  (30, '0030_uncounted_requests', '6226e8bb72afa049474da3e533637f5f79d231ffcf34796a0346f5feca04b8b9'),
  (31, '0031_open_holds', 'cf106c494fa4f2baf32ca1bd65b1ba2c62fc81504dc6de33fa9cc4af7f778e13'),
  (32, '0032_referenced_entries', '73b9ed4bf0e3db5b04ca0154af338611aa85006e441e2c5c99d015bf161a860c'),
  (33, '0033_one_ref_index', '10b415aba6ac9db019f84fe025866a661fc322aad2398baad626fba5cf9d62aa'),
  (34, '0034_key_limits', 'fd994c8b92fb52117c0d09b33b6b56d7bf004f20ed4ed21fe5ce3284101e549d'),
  (35, '0035_organization_caps', '164f39ba88cc0e7281ad0c0e93c3d1764e3d49e8d4b51bc803cdb60c45e39d7d'),
  (36, '0036_key_models', '1677e059b1f5710ca975cca231bfccc54ab12888ba68dc4e02e5ca21f8e3b49e'),
  (37, '0037_request_tags', '919a44a302ce9fc7070c4dd3bbd7b9755b0b782368b300da809310b94eb18bef'),
  (38, '0038_request_tag_indexes', '7e76517319145b8aae2d63d725ebc96f8e49e3091be8c9fcd922acf8eb184297'),
  (39, '0039_counts_of_media', '669168f3fe0d602f966598ea99b4264b7dc7098caa45d80b67416f59d2c224c2'),
  (40, '0040_price_lists', '3604fcb41da79a35a8fb10b07f82229fa0516811c0bedee3fb1a46ae6cf5b634'),
  (41, '0041_statements', '8ec3f0191df3737dbe85df8c761a03bac988365ebaab988c3a412aa02b573796'),
  (42, '0042_payments', 'c33f3210e04d081056e105df5984c64fcb1124010c51a3a5dc9b4701489cf906'),
  (43, '0043_members', '211573776a9f1d14be577c942c508cfc7d4d10778fedc56431f0f3359ec74397'),
  (44, '0044_credit_events', 'f3dd890c97e2718f87303cec34efeb437e4308f41555691ff3493979e126da93'),
  (45, '0045_statement_events', 'ed22d78731ad4ba574011f8fe7d9a7483c6cd33648f709a2d25557206a6f957f'),
  (46, '0046_sealed_numbers', 'f4d150d42e47c5d5a1e7e88453ebe468af22ce576991b1de38e46049ffb5e61d'),
  (47, '0047_open_payments', 'e51a01c6f64a8b8f6e6d49234f34cfddc948692bd9d4a7e57f1c5e9c44b8d546'),
  (48, '0048_reversal_currencies', 'beb4991fa2f70e35fbecf434812f8781a7402d4e3e22ab7b781224d7a9445849'),
  (49, '0049_slow_webhooks', '48af29eb6c96fa0f8c93612c5f94e9a290e2894a0a97f4397f45f9121aadf8d4'),
  (50, '0050_request_errors', '65aa7e3831943db1462bc4128b9667ec6d4c90c874aa0928220887d5fa94f01c'),
  (51, '0051_video_failures', '3d7a8201a0e85ddbcf75ed8f787278077511362248e466b491eec077fc56b367'),
  (52, '0052_public_ids', '3b5de0177773984d8e948897704e72f6df89afb11a2b10cbd08b45566fea594f'),
  (55, '0055_log_ids', '4b17f956c37b4d278676591a0584fa8a9875b3ac811e85b4d0a8eb942b2df638'),
  (60, '0060_lists_by_id', 'e07441dc850503c0ffa6db5f42a16c811423fed16b979674c7721e87f75dfbc7'),
  (61, '0061_video_columns', 'a7458c6d51d9d60b36e2e5c323a5e92cd38d9c8309a9afc6f72ea17d238ea1fb'),
  (62, '0062_discounts', 'd001b34f622363235f3f42b14894894204b94f6a6b96578fd10a99c36d551011');
