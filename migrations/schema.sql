-- The tables of the gateway as they are now. A new database is made from this file, an older one by the migrations.
-- `npm run schema` writes this file from the numbered migrations, so change the schema by a migration, then run it.
-- Comments outside of functions are the exception: edit them here. Amounts are nano-USD (1e-9 USD) everywhere.

-- Functions may use what is created after them.
SET LOCAL check_function_bodies = off;

-- A customer. Rows are never deleted, since ledger entries refer to them without a foreign key.
CREATE TABLE organizations (
  id           text PRIMARY KEY,
  name         text NOT NULL UNIQUE,
  created_at   timestamptz NOT NULL DEFAULT now(),
  suspended_at timestamptz,
  -- The sum of the organization's ledger entries.
  balance      bigint NOT NULL DEFAULT 0,
  -- The sum of its open holds.
  held         bigint NOT NULL DEFAULT 0 CHECK (held >= 0),
  -- Low-balance alert: a webhook event is sent when the balance falls below this amount.
  notify_below bigint,
  -- A deleted organization stays for its entries; its name is free again.
  deleted_at   timestamptz,
  -- Whether a chat may run with a lower token limit if the balance is too low for the full one.
  fit_holds    boolean NOT NULL DEFAULT false,
  -- Spending cap of the organization, beside those of its keys.
  cap          bigint,
  cap_period   text,
  -- What was charged since cap_since, the first UTC day of the last period with a charge. Summing up all keys would
  -- take too long for each request, so triggers count.
  cap_spent    bigint,
  cap_since    date,
  -- Set while a payment of the organization is disputed; its requests are refused.
  disputed_at  timestamptz,
  CONSTRAINT organizations_cap
    CHECK ((cap IS NULL) = (cap_period IS NULL) AND cap >= 0 AND (cap_period IN ('day', 'week', 'month', 'total')))
) WITH (fillfactor = 50);

CREATE FUNCTION bump_access_revision() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE access_revision SET revision = revision + 1;
  RETURN NULL;
END $$;

-- Hot tables have no foreign keys: each would cost a lookup and a row lock per request. The rows they would refer to
-- are never deleted instead.
CREATE FUNCTION keep_referenced() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'rows of % are never deleted', TG_TABLE_NAME;
END $$;

-- The row is locked here, and every charge locks it before it adds to key_spend, so no charge is missed. The period
-- begins by the clock, since an existing charge may be younger than this transaction.
CREATE FUNCTION add_up_cap_spent() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.cap_since := cap_period_start(NEW.cap_period, clock_timestamp());
  NEW.cap_spent := CASE WHEN NEW.cap IS NOT NULL THEN (
    SELECT coalesce(sum(spent), 0) FROM key_spend
    WHERE key_id IN (SELECT id FROM api_keys WHERE org_id = NEW.id) AND day >= NEW.cap_since
  ) END;
  RETURN NEW;
END $$;

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

-- Only a charge lowers both the balance and the held amount.
CREATE TRIGGER organizations_cap_counted BEFORE UPDATE OF balance ON organizations
  FOR EACH ROW WHEN (new.cap IS NOT NULL AND new.balance < old.balance AND new.held < old.held) EXECUTE FUNCTION count_cap_spent();
CREATE TRIGGER organizations_cap_set BEFORE INSERT OR UPDATE OF cap, cap_period ON organizations
  FOR EACH ROW EXECUTE FUNCTION add_up_cap_spent();
CREATE TRIGGER organizations_disputed AFTER UPDATE OF disputed_at ON organizations
  FOR EACH ROW WHEN (old.disputed_at IS DISTINCT FROM new.disputed_at) EXECUTE FUNCTION bump_access_revision();
CREATE TRIGGER organizations_kept BEFORE DELETE OR TRUNCATE ON organizations
  FOR EACH STATEMENT EXECUTE FUNCTION keep_referenced();
CREATE TRIGGER organizations_revision AFTER UPDATE OF suspended_at, fit_holds, cap ON organizations
  FOR EACH STATEMENT EXECUTE FUNCTION bump_access_revision();

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

CREATE TRIGGER api_keys_kept BEFORE DELETE OR TRUNCATE ON api_keys
  FOR EACH STATEMENT EXECUTE FUNCTION keep_referenced();
CREATE TRIGGER api_keys_revision AFTER INSERT OR DELETE OR UPDATE ON api_keys
  FOR EACH STATEMENT EXECUTE FUNCTION bump_access_revision();

-- Addresses whose requests are refused.
CREATE TABLE blocklist (
  range      cidr PRIMARY KEY,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TRIGGER blocklist_revision AFTER INSERT OR DELETE OR UPDATE ON blocklist
  FOR EACH STATEMENT EXECUTE FUNCTION bump_access_revision();

-- A number that grows with every change of a key, a suspension or the block list. By one cheap read an instance
-- learns whether what it remembers is still true.
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
  -- Set once, by the instance that found this one dead. It may not place holds any more.
  swept_at   timestamptz,
  stopped_at timestamptz
);

CREATE TRIGGER instances_kept BEFORE DELETE OR TRUNCATE ON instances
  FOR EACH STATEMENT EXECUTE FUNCTION keep_referenced();

-- Holds of jobs, and closed holds of requests that were not charged. Open holds of requests are in open_holds, and a
-- charged hold becomes an entry of the ledger: see the view all_holds.
CREATE TABLE holds (
  id          uuid PRIMARY KEY,
  org_id      text NOT NULL,
  key_id      text NOT NULL,
  amount      bigint NOT NULL CHECK (amount >= 0),
  state       text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'settled', 'released')),
  charged     bigint,
  -- The process whose life the hold is tied to; null for jobs.
  instance_id uuid,
  created_at  timestamptz NOT NULL DEFAULT now(),
  closed_at   timestamptz,
  CONSTRAINT holds_check CHECK ((state = 'settled') = (charged IS NOT NULL)),
  CONSTRAINT holds_check1 CHECK (charged >= 0 AND charged <= amount),
  CONSTRAINT holds_check2 CHECK ((state = 'open') = (closed_at IS NULL))
);
-- Without deduplication, since an index entry for many rows is read by every search for open holds until the last of
-- them is closed.
CREATE INDEX holds_open ON holds (instance_id) WITH (deduplicate_items=off) WHERE state = 'open';
CREATE INDEX holds_open_org ON holds (org_id) WITH (deduplicate_items=off) WHERE state = 'open';
-- What a key's jobs will cost counts towards its spending cap.
CREATE INDEX holds_open_jobs ON holds (key_id) INCLUDE (amount) WITH (deduplicate_items=off)
  WHERE state = 'open' AND instance_id IS NULL;

CREATE FUNCTION keep_closed_holds() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'a closed hold cannot change';
END $$;

-- Writes the charge of a job to its row of the request log, with the length of the clip that was charged.
CREATE FUNCTION log_charged_job() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  job record;
BEGIN
  SELECT request_id, created_at, model, seconds, cost, attempts, end_user, tag, route AS kept, NULL::text AS route,
    NULL::text AS provider INTO job
  FROM videos WHERE hold_id = NEW.id;
  BEGIN
    job.route := job.kept::json ->> 'id';
    job.provider := job.kept::json #>> '{provider,name}';
  EXCEPTION WHEN data_exception OR syntax_error_or_access_rule_violation THEN
    -- Options of a route may hold what is no text here, such as NUL; that must not prevent the charge.
    NULL;
  END;
  UPDATE request_log AS r SET charge = NEW.charged, seconds = job.seconds, cost = coalesce(job.cost, r.cost),
    route = coalesce(job.route, r.route), provider = coalesce(job.provider, r.provider)
  WHERE r.request_id = job.request_id AND r.hold_id = NEW.id;
  IF NOT FOUND THEN
    INSERT INTO request_log AS r (id, request_id, at, surface, status, org_id, key_id, model, route, provider, attempts,
      hold_id, charge, cost, total_ms, end_user, tag, seconds)
    VALUES (NEW.id, coalesce(job.request_id, NEW.id::text), coalesce(job.created_at, NEW.created_at), 'video', 202,
      NEW.org_id, NEW.key_id, job.model, job.route, job.provider, coalesce(job.attempts, '[]'), NEW.id, NEW.charged,
      job.cost, 0, job.end_user, job.tag, job.seconds)
    ON CONFLICT (id) DO UPDATE SET charge = excluded.charge, seconds = excluded.seconds,
      cost = coalesce(excluded.cost, r.cost), route = coalesce(excluded.route, r.route),
      provider = coalesce(excluded.provider, r.provider);
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER holds_closed_once BEFORE UPDATE ON holds
  FOR EACH ROW WHEN (old.state <> 'open') EXECUTE FUNCTION keep_closed_holds();
CREATE TRIGGER holds_kept BEFORE DELETE ON holds FOR EACH ROW EXECUTE FUNCTION keep_closed_holds();
CREATE TRIGGER holds_logged AFTER UPDATE ON holds
  FOR EACH ROW WHEN (new.instance_id IS NULL AND new.state = 'settled') EXECUTE FUNCTION log_charged_job();
CREATE TRIGGER holds_untruncated BEFORE TRUNCATE ON holds FOR EACH STATEMENT EXECUTE FUNCTION keep_referenced();

-- Entries and deliveries are numbered over all organizations, and two numbers tell how much all others did between them. An
-- organization knows a row by an id of its own instead; a charge by that of its hold, of which it is the only one. Rows of
-- before keep the sealed number by which they are known. Columns without a value: no row is rewritten.
CREATE FUNCTION uuid_v7(at timestamptz) RETURNS uuid LANGUAGE sql PARALLEL SAFE
  RETURN (((lpad(to_hex((floor((EXTRACT(epoch FROM at) * (1000)::numeric)))::bigint), 12, '0'::text) || '7'::text) || "right"(replace((gen_random_uuid())::text, '-'::text, ''::text), 19)))::uuid;

-- The money. Entries are append-only, and a balance is the sum of its entries.
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
  -- Identifies what must be booked once, such as a payment or a refund.
  ref       text,
  note      text,
  -- The amount and the time of a request's hold, which has no row of its own any more.
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
CREATE INDEX ledger_entries_at ON ledger_entries (at DESC, id DESC);
CREATE INDEX ledger_entries_org_at ON ledger_entries (org_id, at DESC, id DESC);
-- Nearly all entries are charges, and a charge changes neither of these two.
CREATE INDEX ledger_entries_paid ON ledger_entries (kind, at DESC, id DESC) WHERE kind <> 'charge';
CREATE INDEX ledger_entries_org_paid ON ledger_entries (org_id, kind, at DESC, id DESC) WHERE kind <> 'charge';
-- Charges have no reference, so they cost this index no entry.
CREATE UNIQUE INDEX ledger_entries_ref ON ledger_entries (ref) WHERE ref IS NOT NULL;

CREATE FUNCTION keep_entries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'ledger entries are append-only';
END $$;

-- Events are written in the same transaction as the change they report.
CREATE FUNCTION notify_of_credits() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  event text := 'evt_' || replace(gen_random_uuid()::text, '-', '');
  payment text;
  reason text;
BEGIN
  IF NEW.kind = 'payment_reversal' THEN
    SELECT payment_id, kind INTO payment, reason FROM payment_reversals WHERE id = split_part(NEW.ref, ':', 2);
  ELSIF NEW.ref LIKE 'stripe:%' THEN
    SELECT id INTO payment FROM payments WHERE payment_intent = substr(NEW.ref, 8) AND org_id = NEW.org_id;
  END IF;
  INSERT INTO webhook_deliveries (event_id, org_id, endpoint_id, url, type, data)
  SELECT event, NEW.org_id, endpoint.id, endpoint.url,
    CASE WHEN NEW.amount < 0 THEN 'payment.reversed' ELSE 'credits.added' END,
    CASE WHEN NEW.amount < 0 THEN json_build_object(
      'entry_id', NEW.public_id, 'payment_id', payment, 'reason', reason,
      'amount_usd', trim_scale(-NEW.amount * 0.000000001), 'balance_usd', trim_scale(organization.balance * 0.000000001)
    ) ELSE json_build_object(
      'entry_id', NEW.public_id, 'kind', NEW.kind, 'payment_id', payment,
      'amount_usd', trim_scale(NEW.amount * 0.000000001), 'balance_usd', trim_scale(organization.balance * 0.000000001)
    ) END
  FROM webhook_endpoints AS endpoint JOIN organizations AS organization ON organization.id = endpoint.org_id
  WHERE endpoint.org_id = NEW.org_id AND endpoint.disabled_at IS NULL;
  RETURN NULL;
END $$;

CREATE TRIGGER ledger_entries_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON ledger_entries
  FOR EACH STATEMENT EXECUTE FUNCTION keep_entries();
CREATE TRIGGER ledger_entries_credits AFTER INSERT ON ledger_entries
  FOR EACH ROW WHEN (new.kind IN ('top_up', 'payment_reversal')) EXECUTE FUNCTION notify_of_credits();

-- Settled spend of a key on one UTC day. Spending caps sum these.
CREATE TABLE key_spend (
  key_id text NOT NULL,
  day    date NOT NULL,
  spent  bigint NOT NULL CHECK (spent >= 0),
  PRIMARY KEY (key_id, day)
) WITH (fillfactor = 50);

CREATE FUNCTION lower_cap_spent() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE organizations SET cap_spent = cap_spent + NEW.spent - OLD.spent
  WHERE id = (SELECT org_id FROM api_keys WHERE id = NEW.key_id) AND cap_since <= NEW.day;
  RETURN NULL;
END $$;

-- Only a refund lowers what a key has spent.
CREATE TRIGGER key_spend_lowered AFTER UPDATE OF spent ON key_spend
  FOR EACH ROW WHEN (new.spent < old.spent) EXECUTE FUNCTION lower_cap_spent();

-- A fixed window of 60 s for each key. A crash may lose them, which only starts new windows, so they are unlogged.
CREATE UNLOGGED TABLE rate_windows (
  key_id     text PRIMARY KEY,
  started_at timestamptz NOT NULL,
  used       bigint NOT NULL
) WITH (fillfactor = 50);

-- One row for each authenticated request to a generating endpoint. It never has a prompt or an output.
CREATE TABLE request_log (
  id                      uuid PRIMARY KEY,
  -- The client's x-request-id, or the one it was given. Not unique.
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
  -- [{route, provider, outcome, status, ms, cost_nano?}], in the order tried.
  attempts                jsonb NOT NULL DEFAULT '[]'::jsonb,
  -- usage_estimated, hold_exceeded, hold_lost
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
  -- The customer's own user and tag for the request.
  end_user                text,
  tag                     text,
  images                  bigint,
  seconds                 bigint,
  -- What the provider says the request cost.
  stated_cost             bigint,
  -- The rates of the charge, in price_lists.
  price_id                bigint,
  -- The error that the client got: param, message and hint.
  error                   jsonb
);
CREATE INDEX request_log_at ON request_log (at DESC, id DESC);
CREATE INDEX request_log_request_id ON request_log (request_id);
CREATE INDEX request_log_org_at ON request_log (org_id, at DESC, id DESC, status, model);
CREATE INDEX request_log_key_at ON request_log (key_id, at DESC, id DESC, status, model);
CREATE INDEX request_log_model ON request_log (model, at DESC, id DESC, status);
-- Most requests succeed, and those are found soon in the order of time.
CREATE INDEX request_log_status ON request_log (status, at DESC, id DESC) WHERE status <> 200;
-- In all these indexes the columns after the time let a filter skip rows without reading them.
CREATE INDEX request_log_code ON request_log (code, at DESC, id DESC, status, model, route, surface, key_id, org_id)
  WHERE code IS NOT NULL;
CREATE INDEX request_log_tag ON request_log (tag, at DESC, id DESC, status, code, model, route, surface, key_id, org_id)
  WHERE tag IS NOT NULL;
CREATE INDEX request_log_end_user ON request_log
  (end_user, at DESC, id DESC, tag, status, code, model, route, surface, key_id, org_id)
  WHERE end_user IS NOT NULL;

-- Counts for gateways of the version before 0030, which have no counter. It never waits, and never fails a charge.
CREATE FUNCTION queue_requests() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO uncounted_requests SELECT id FROM new_rows;
  IF (SELECT counted_at < clock_timestamp() - interval '10 seconds' FROM usage_counter) THEN
    BEGIN
      IF pg_try_advisory_xact_lock(7025102615) THEN
        PERFORM take_uncounted(2000);
      END IF;
    EXCEPTION WHEN OTHERS THEN
      RAISE WARNING 'requests could not be counted: %', SQLERRM;
    END;
  END IF;
  RETURN NULL;
END $$;

-- A queued row is counted later, with its values at that time. Counting takes the lock alone and reads afterwards:
-- until this transaction ends, none of its rows leaves the queue, also between the two reads here.
CREATE FUNCTION recount_requests() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  queued uuid[];
BEGIN
  IF NOT EXISTS (SELECT FROM new_rows) THEN
    RETURN NULL;
  END IF;
  PERFORM pg_advisory_xact_lock_shared(7025102615);
  queued := ARRAY(SELECT id FROM uncounted_requests WHERE id IN (SELECT id FROM new_rows));
  PERFORM add_usage(array_agg(p)) FROM (
    SELECT 1 AS sign, ROW(r.*)::request_log AS r FROM new_rows AS r
    UNION ALL
    SELECT -1, ROW(r.*)::request_log FROM old_rows AS r
  ) AS changes, usage_parts(sign, r) AS p
  WHERE (r).at >= (SELECT filled_from FROM usage_bounds) AND (r).id <> ALL (queued);
  RETURN NULL;
END $$;

-- A row that is removed before it was counted is counted with its old values.
CREATE FUNCTION count_removed_requests() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  parts usage_part[];
BEGIN
  IF NOT EXISTS (SELECT FROM uncounted_requests WHERE id IN (SELECT id FROM old_rows)) THEN
    RETURN NULL;
  END IF;
  PERFORM pg_advisory_xact_lock(7025102615);
  WITH taken AS (
    DELETE FROM uncounted_requests WHERE id IN (SELECT id FROM old_rows) RETURNING id
  )
  SELECT array_agg(p) INTO parts
  FROM old_rows AS r, usage_parts(1, ROW(r.*)::request_log) AS p
  WHERE r.id IN (SELECT id FROM taken) AND r.at >= (SELECT filled_from FROM usage_bounds);
  PERFORM add_usage(parts);
  RETURN NULL;
END $$;

-- Removal shares the lock that add_charges takes alone, and then reads how far the monthly charges have come.
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

CREATE TRIGGER request_log_counted AFTER INSERT ON request_log REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION queue_requests();
CREATE TRIGGER request_log_details_kept AFTER DELETE ON request_log REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION keep_request_details();
CREATE TRIGGER request_log_recounted AFTER UPDATE ON request_log REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION recount_requests();
CREATE TRIGGER request_log_removed AFTER DELETE ON request_log REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_removed_requests();

-- What each running instance knows of each route, published for the operator. Circuit breakers themselves live in
-- memory.
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
  -- The number of organizations for which the circuit is open while it may be closed for all others.
  open_for_organizations integer NOT NULL DEFAULT 0,
  PRIMARY KEY (instance_id, route)
);

-- Results for repeated requests. A claim is the right of one request to work under a key.
CREATE TABLE idempotency_keys (
  claim       uuid PRIMARY KEY,
  org_id      text NOT NULL REFERENCES organizations (id),
  endpoint    text NOT NULL CHECK (endpoint IN ('images', 'videos')),
  -- Null once no request can use it any more; the row then waits to be pruned.
  key         text CHECK (length(key) >= 1 AND length(key) <= 255),
  -- A hash of the decoded request.
  fingerprint text NOT NULL,
  -- working: the request runs, and its key is free again if the instance dies. bound: it runs, and its result stays
  -- valid if the instance dies. done: the result is final.
  state       text NOT NULL DEFAULT 'working' CHECK (state IN ('working', 'bound', 'done')),
  -- The process that works under the key. Not a foreign key, since an unknown instance counts as dead.
  instance_id uuid NOT NULL,
  result      jsonb,
  -- The hold that paid for the result. Not a foreign key: a hold that a crash lost is placed again after its result
  -- was stored.
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
  id              text PRIMARY KEY,
  org_id          text NOT NULL REFERENCES organizations (id),
  key_id          text NOT NULL REFERENCES api_keys (id),
  hold_id         uuid NOT NULL UNIQUE REFERENCES holds (id),
  request_id      text NOT NULL,
  model           text NOT NULL,
  seconds         integer NOT NULL,
  price           bigint NOT NULL CHECK (price >= 0),
  -- Emptied when the job ends.
  prompt          text NOT NULL,
  -- The reference image: the customer's URL, and the name of the private copy in the media store.
  reference_url   text,
  reference       text,
  created_at      timestamptz NOT NULL DEFAULT now(),
  deadline        timestamptz NOT NULL,
  -- When the customer got the job's id. A job that fails before that is shown to no customer.
  accepted_at     timestamptz,
  status          text NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'in_progress', 'completed', 'failed')),
  completed_at    timestamptz,
  -- The clip's name in the media store.
  media           text,
  sandbox         boolean NOT NULL DEFAULT false,
  error_code      text,
  error_message   text,
  -- What the provider charges, if the catalog has its price.
  cost            bigint,
  -- submit: to be submitted; submitting: sent to `route`, which may or may not have received it; rendering: `route`
  -- has it under `handle`.
  step            text NOT NULL DEFAULT 'submit' CHECK (step IN ('submit', 'submitting', 'rendering', 'over')),
  -- The route as it was when it was used, as JSON without its credential.
  route           text,
  handle          text,
  -- Ids of the attempted routes.
  tried           text[] NOT NULL DEFAULT '{}'::text[],
  attempts        jsonb NOT NULL DEFAULT '[]'::jsonb,
  -- Whether one more route may be tried after an uncertain submit or a failed render.
  spare           boolean NOT NULL DEFAULT true,
  -- Submits that may have reached a provider without confirmation. Each may have been paid for nothing.
  doubts          integer NOT NULL DEFAULT 0,
  polls           integer NOT NULL DEFAULT 0,
  downloads       integer NOT NULL DEFAULT 0,
  -- Whether the render must still be cancelled at the provider.
  cancelling      boolean NOT NULL DEFAULT false,
  -- When the job is due next; null: never again.
  next_at         timestamptz DEFAULT now(),
  lease           uuid,
  lease_until     timestamptz,
  -- The trace of the request that created the job, which the instance that ends it continues. Null: not traced.
  trace           text,
  -- A deleted video is hidden from its customer; its row stays for the operator.
  deleted_at      timestamptz,
  -- In percent, as reported by the provider. It never falls.
  progress        smallint NOT NULL DEFAULT 0,
  webhook_url     text,
  end_user        text,
  tag             text,
  -- When the current attempt began to render.
  rendering_since timestamptz,
  -- What failed last, which is reported if the deadline passes.
  last_error      text,
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
-- Only what a customer can list, so that a page reads as many index entries as it has videos.
CREATE INDEX videos_listed ON videos (org_id, created_at DESC, id DESC)
  WHERE accepted_at IS NOT NULL AND deleted_at IS NULL;

-- A finished job stays as it is. Only what the provider must still be told may change.
CREATE FUNCTION keep_finished_videos() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.status, NEW.media, NEW.error_code, NEW.completed_at, NEW.price, NEW.hold_id)
    IS DISTINCT FROM (OLD.status, OLD.media, OLD.error_code, OLD.completed_at, OLD.price, OLD.hold_id) THEN
    RAISE EXCEPTION 'a finished video cannot change';
  END IF;
  RETURN NEW;
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

CREATE TRIGGER videos_details_kept AFTER DELETE ON videos REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION keep_video_details();
CREATE TRIGGER videos_finished_once BEFORE UPDATE ON videos
  FOR EACH ROW WHEN (old.status IN ('completed', 'failed')) EXECUTE FUNCTION keep_finished_videos();

-- Apart from the keys, whose every change makes all instances forget what they remember.
CREATE TABLE key_uses (
  key_id       text PRIMARY KEY REFERENCES api_keys (id),
  last_used_at timestamptz NOT NULL
);

-- Names in the media store to be removed. They are listed in the transaction that gives them up, so that no crash
-- forgets one.
CREATE TABLE media_removals (
  name      text PRIMARY KEY,
  listed_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE webhook_endpoints (
  id          text PRIMARY KEY,
  org_id      text NOT NULL REFERENCES organizations (id),
  url         text NOT NULL,
  -- Not hashed: signatures are made with it.
  secret      text NOT NULL,
  created_at  timestamptz NOT NULL DEFAULT now(),
  -- Set when the endpoint answers 410. No event is written for it from then on.
  disabled_at timestamptz,
  -- The last failed try.
  failure     text,
  failed_at   timestamptz
);
CREATE INDEX webhook_endpoints_org_listed ON webhook_endpoints (org_id, id DESC);

-- Secrets that sign events for the URLs that come with requests.
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
  -- Deliveries with the same lane share a limit of deliveries at a time: an endpoint, or a host of an organization.
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

-- Orders of operators to running instances, which read this table and route_controls each second.
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

-- The catalog that each instance serves, and why it refused the last one.
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

-- Each change that an operator made, written with it.
CREATE TABLE audit (
  id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at              timestamptz NOT NULL DEFAULT now(),
  actor           text NOT NULL,
  via             text NOT NULL,
  operator_id     text REFERENCES operators (id),
  action          text NOT NULL,
  target          text,
  org_id          text,
  -- Records without secrets. They are json, since jsonb refuses some of the texts that they must hold.
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

-- What totals of usage are grouped by; '' stands for null.
CREATE TABLE usage_series (
  id       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  org_id   text NOT NULL,
  key_id   text NOT NULL,
  -- Models that nobody sells are 'unknown', since customers may ask for any name.
  model    text NOT NULL,
  route    text NOT NULL,
  provider text NOT NULL,
  surface  text NOT NULL,
  status   integer NOT NULL,
  -- Whether the requests prove that the model exists.
  is_sold  boolean NOT NULL,
  CONSTRAINT usage_series_org_id_key_id_model_route_provider_surface_sta_key
    UNIQUE (org_id, key_id, model, route, provider, surface, status, is_sold)
);
CREATE INDEX usage_series_sold ON usage_series (model) WHERE is_sold;

-- Totals of the request log by hour and by day. They are kept for ever, while rows of the log are removed.
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
  -- Includes failed attempts, under the route they were made at.
  cost                    bigint NOT NULL,
  -- Charge minus cost, of requests with a known cost.
  margin                  bigint NOT NULL,
  -- Requests with a known cost, and charged ones without.
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

-- Its rows change all hour long: no index has a column that changes with them.
CREATE TABLE usage_hours PARTITION OF usage_totals FOR VALUES IN ('hour') WITH (fillfactor = 70);

CREATE TABLE usage_days PARTITION OF usage_totals FOR VALUES IN ('day') WITH (fillfactor = 70);

-- The totals have every row of the log since filled_from, and the log has every row since rows_from.
CREATE TABLE usage_bounds (
  only_row    boolean DEFAULT true PRIMARY KEY CHECK (only_row),
  filled_from timestamptz NOT NULL,
  rows_from   timestamptz NOT NULL DEFAULT '-infinity'::timestamptz,
  -- Charges before this time may lack their row of the log.
  logged_from timestamptz NOT NULL DEFAULT now()
);
INSERT INTO usage_bounds (filled_from) SELECT
  CASE WHEN EXISTS (SELECT FROM request_log) THEN date_trunc('hour', now(), 'UTC') + interval '2 hours' ELSE '-infinity' END;

-- Rows of the log that a gateway will add to the totals, once a second. No index, since the table is read whole. It
-- has ids, since rows commit in another order than any sequence numbers them.
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
  -- A released hold stays while a late statement may still place or settle it; then it moves to holds.
  released_at timestamptz
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, vacuum_truncate = off);
-- Counts the running requests of a key.
CREATE INDEX open_holds_key ON open_holds (key_id) WITH (deduplicate_items=off);

-- A late statement must not place a hold again that is already closed. It waited for the lock of the organization, so
-- only a new snapshot shows what is closed.
CREATE FUNCTION refuse_closed_holds() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM placed WHERE id IN (SELECT hold_id FROM ledger_entries WHERE hold_id = placed.id)
      OR id IN (SELECT holds.id FROM holds WHERE holds.id = placed.id)) THEN
    RAISE unique_violation USING MESSAGE = 'a closed hold cannot be placed again';
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER open_holds_placed_once AFTER INSERT ON open_holds REFERENCING NEW TABLE AS placed
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_closed_holds();
CREATE TRIGGER open_holds_released_once BEFORE UPDATE ON open_holds
  FOR EACH ROW WHEN (old.released_at IS NOT NULL) EXECUTE FUNCTION keep_closed_holds();
CREATE TRIGGER open_holds_untruncated BEFORE TRUNCATE ON open_holds
  FOR EACH STATEMENT EXECUTE FUNCTION keep_referenced();

-- Like rate_windows, for tokens.
CREATE UNLOGGED TABLE token_windows (
  key_id     text PRIMARY KEY,
  started_at timestamptz NOT NULL,
  used       bigint NOT NULL CHECK (used >= 0)
) WITH (fillfactor = 50);

-- The tags of an organization that have totals of their own on a day, in the order of their first request.
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

-- The rates by which chats are charged, identified by their hash, so that the log can explain each charge in eight
-- bytes. No foreign key, since a request must not wait for its list. Rows are only added.
CREATE TABLE price_lists (
  id       bigint PRIMARY KEY,
  rates    jsonb NOT NULL,
  added_at timestamptz NOT NULL DEFAULT now()
);

-- Statements read this. The ledger has no model, and rows of the log and videos are removed, so charges are added up
-- by month, model and surface once no other charge of their time can come. Charges removed earlier leave their
-- details in removed_charge_details.
CREATE TABLE monthly_charges (
  org_id            text NOT NULL,
  month             date NOT NULL,
  -- '' if the details were lost.
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
  -- monthly_charges has every charge before this time, and none after it.
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
  -- Null, like the amount, for money that nobody here asked for.
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
  -- Counts the applied states, so that an older state is never applied after a newer one.
  version        integer NOT NULL DEFAULT 0,
  CONSTRAINT payments_check CHECK ((status = 'paid') = (entry_id IS NOT NULL)),
  CONSTRAINT payments_check1 CHECK ((status = 'refused') = (problem IS NOT NULL)),
  CONSTRAINT payments_check2 CHECK (status = 'refused' OR org_id IS NOT NULL AND amount IS NOT NULL)
);
CREATE INDEX payments_org ON payments (org_id, id DESC);
CREATE INDEX payments_refused ON payments (id DESC) WHERE status = 'refused';
-- For the hourly check of open payments.
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
  -- An amount in another currency than USD, and whether an operator must enter it in USD.
  foreign_amount text,
  needs_amount   boolean NOT NULL DEFAULT false
);
CREATE INDEX payment_reversals_payment ON payment_reversals (payment_id);
CREATE INDEX payment_reversals_open ON payment_reversals (payment_id) WHERE is_open;

-- Events of the provider. Each is applied once.
CREATE TABLE payment_events (
  id          text PRIMARY KEY,
  type        text NOT NULL,
  object      text,
  payment_id  text REFERENCES payments (id),
  created_at  timestamptz NOT NULL,
  received_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX payment_events_payment ON payment_events (payment_id) WHERE payment_id IS NOT NULL;

-- When an instance must next ask the provider for changes that no event reported.
CREATE TABLE payment_syncs (
  only_row boolean DEFAULT true PRIMARY KEY CHECK (only_row),
  next_at  timestamptz NOT NULL DEFAULT now()
);
INSERT INTO payment_syncs DEFAULT VALUES;

-- The first month for which statement.ready was not sent yet.
CREATE TABLE statement_notices (
  only_row boolean DEFAULT true PRIMARY KEY CHECK (only_row),
  month    date NOT NULL
);
INSERT INTO statement_notices (month) VALUES (date_trunc('month', now() AT TIME ZONE 'UTC')::date);

-- Entries and deliveries are numbered over all organizations, so two numbers would show the activity of all others.
-- Customers get a sealed form of each number, which means nothing to other organizations.
CREATE TABLE number_seal (
  only_row boolean DEFAULT true PRIMARY KEY CHECK (only_row),
  secret   text NOT NULL
);
INSERT INTO number_seal (secret) VALUES (gen_random_uuid()::text || gen_random_uuid()::text);

-- Lanes whose last delivery was slow. They get fewer deliveries at a time, apart from all others. A row is removed a
-- day after its last slow delivery.
CREATE TABLE webhook_slow_lanes (
  lane     text PRIMARY KEY,
  org_id   text NOT NULL,
  tried_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX webhook_slow_lanes_org ON webhook_slow_lanes (org_id);

-- What a request adds to one row of the totals.
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

-- Each hold once, in whichever table it is.
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

-- Each charge with the model and the counts of its request, for statements.
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

-- The UTC day on which the running spending period began.
CREATE FUNCTION cap_period_start(period text) RETURNS date LANGUAGE sql STABLE AS $$
  SELECT CASE period
    WHEN 'total' THEN '-infinity'::date
    ELSE date_trunc(period, now() AT TIME ZONE 'UTC')::date
  END
$$;

-- A row's own part, and one for each failed attempt with a cost. Values are limited, so that no provider's report can
-- overflow a sum.
CREATE FUNCTION usage_parts(sign integer, r request_log) RETURNS SETOF usage_part LANGUAGE sql STABLE AS $$
  SELECT date_trunc('hour', r.at, 'UTC'), r.org_id, r.key_id, coalesce(r.model, ''), coalesce(r.route, ''),
    coalesce(r.provider, ''), r.surface, r.status, r.status NOT IN (400, 404) OR r.hold_id IS NOT NULL,
    sign::bigint, sign::bigint * (r.status >= 500 OR r.code IS NOT DISTINCT FROM 'stream_error')::int,
    sign * least(coalesce(r.prompt_tokens, 0), 1e12::bigint), sign * least(coalesce(r.completion_tokens, 0), 1e12::bigint),
    sign * least(coalesce(r.cached_tokens, 0), 1e12::bigint), sign * least(coalesce(r.cache_write_tokens, 0), 1e12::bigint),
    sign * least(coalesce(r.cache_write_hour_tokens, 0), 1e12::bigint),
    sign * least(coalesce(r.reasoning_tokens, 0), 1e12::bigint), sign * least(coalesce(r.web_searches, 0), 1e12::bigint),
    sign * r.charge, sign * least(coalesce(r.cost, 0), 1e15::bigint),
    CASE WHEN r.cost IS NULL THEN 0 ELSE sign * (r.charge - least(r.cost, 1e15::bigint)) END,
    sign::bigint * (r.cost IS NOT NULL)::int, sign::bigint * (r.cost IS NULL AND r.charge > 0)::int, NULL::integer,
    coalesce(r.tag, ''), sign * least(coalesce(r.images, 0), 1e12::bigint), sign * least(coalesce(r.seconds, 0), 1e12::bigint),
    sign * least(coalesce(r.stated_cost, 0), 1e15::bigint),
    CASE WHEN r.stated_cost IS NULL THEN 0 ELSE sign * least(coalesce(r.cost, 0), 1e15::bigint) END,
    CASE WHEN r.stated_cost IS NULL OR r.cost IS NULL THEN 0
      ELSE sign * (least(r.stated_cost, 1e15::bigint) - least(r.cost, 1e15::bigint)) END
  UNION ALL
  SELECT date_trunc('hour', r.at, 'UTC'), r.org_id, r.key_id, coalesce(r.model, ''), coalesce(a.route, ''),
    coalesce(a.provider, ''), r.surface, r.status, r.status NOT IN (400, 404) OR r.hold_id IS NOT NULL,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, sign * least(coalesce(a.cost_nano, 0), 1e15::bigint),
    -sign * least(coalesce(a.cost_nano, 0), 1e15::bigint), sign * (a.cost_nano IS NOT NULL)::int, 0, NULL::integer,
    coalesce(r.tag, ''), 0, 0, sign * least(coalesce(a.stated_nano, 0), 1e15::bigint),
    CASE WHEN a.stated_nano IS NULL THEN 0 ELSE sign * least(coalesce(a.cost_nano, 0), 1e15::bigint) END,
    CASE WHEN a.stated_nano IS NULL OR a.cost_nano IS NULL THEN 0
      ELSE sign * (least(a.stated_nano, 1e15::bigint) - least(a.cost_nano, 1e15::bigint)) END
  FROM jsonb_to_recordset(r.attempts) AS a (provider text, route text, cost_nano bigint, stated_nano bigint)
  WHERE a.cost_nano IS NOT NULL OR a.stated_nano IS NOT NULL
$$;

-- Adds the newest hour of the log that the totals lack, by the minute and without queued rows. Returns the time since
-- when they have every other row.
CREATE FUNCTION fill_usage() RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE
  hour timestamptz;
  minute timestamptz;
BEGIN
  PERFORM pg_advisory_xact_lock(7025102615);
  SELECT date_trunc('hour', max(at), 'UTC') INTO hour FROM request_log WHERE at < (SELECT filled_from FROM usage_bounds);
  UPDATE usage_bounds SET filled_from = coalesce(hour, '-infinity');
  FOR minute IN SELECT generate_series(hour, hour + interval '59 minutes', interval '1 minute') LOOP
    PERFORM add_usage(array_agg(p)) FROM request_log AS r, usage_parts(1, ROW(r.*)::request_log) AS p
    WHERE r.at >= minute AND r.at < minute + interval '1 minute' AND r.id NOT IN (SELECT id FROM uncounted_requests);
  END LOOP;
  RETURN coalesce(hour, '-infinity');
END $$;

-- Models that nobody sells are 'unknown'.
CREATE FUNCTION usage_model(model text, is_sold boolean) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT CASE
    WHEN is_sold OR model = '' OR EXISTS (SELECT FROM usage_series AS s WHERE s.model = usage_model.model AND s.is_sold) THEN model
    ELSE 'unknown'
  END
$$;

CREATE FUNCTION usage_series_of(p usage_part) RETURNS integer LANGUAGE sql STABLE AS $$
  SELECT id FROM usage_series AS s
  WHERE s.org_id = p.org_id AND s.key_id = p.key_id AND s.model = usage_model(p.model, p.is_sold) AND s.route = p.route
    AND s.provider = p.provider AND s.surface = p.surface AND s.status = p.status AND s.is_sold = p.is_sold
$$;

-- Inserts series in one order, sold models first, then adds totals in the order of their keys, so that no two writers
-- deadlock. These are the last locks that a transaction takes.
CREATE FUNCTION add_usage(parts usage_part[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  sums usage_part[] := ARRAY(
    SELECT ROW(p.hour, p.org_id, p.key_id, p.model, p.route, p.provider, p.surface, p.status, p.is_sold,
      sum(p.requests), sum(p.errors), sum(p.prompt_tokens), sum(p.completion_tokens), sum(p.cached_tokens),
      sum(p.cache_write_tokens), sum(p.cache_write_hour_tokens), sum(p.reasoning_tokens), sum(p.web_searches),
      sum(p.charge), sum(p.cost), sum(p.margin), sum(p.costed), sum(p.uncosted), NULL, NULL,
      sum(p.images), sum(p.seconds), sum(p.stated_cost), sum(p.compared_cost), sum(p.cost_drift))::usage_part
    FROM unnest(parts) AS p
    GROUP BY p.hour, p.org_id, p.key_id, p.model, p.route, p.provider, p.surface, p.status, p.is_sold
  );
  tagged usage_part[] := ARRAY(
    SELECT ROW(p.hour, p.org_id, p.key_id, p.model, p.route, p.provider, p.surface, p.status, p.is_sold,
      sum(p.requests), sum(p.errors), sum(p.prompt_tokens), sum(p.completion_tokens), sum(p.cached_tokens),
      sum(p.cache_write_tokens), sum(p.cache_write_hour_tokens), sum(p.reasoning_tokens), sum(p.web_searches),
      sum(p.charge), sum(p.cost), sum(p.margin), sum(p.costed), sum(p.uncosted), NULL, p.tag,
      sum(p.images), sum(p.seconds), sum(p.stated_cost), sum(p.compared_cost), sum(p.cost_drift))::usage_part
    FROM unnest(parts) AS p WHERE p.tag <> ''
    GROUP BY p.hour, p.org_id, p.key_id, p.model, p.route, p.provider, p.surface, p.status, p.is_sold, p.tag
  );
  sold boolean;
BEGIN
  IF cardinality(tagged) > 0 THEN
    PERFORM admit_tags(tagged);
  END IF;
  FOREACH sold IN ARRAY ARRAY[true, false] LOOP
    INSERT INTO usage_series (org_id, key_id, model, route, provider, surface, status, is_sold)
    SELECT DISTINCT p.org_id, p.key_id, usage_model(p.model, p.is_sold), p.route, p.provider, p.surface, p.status, p.is_sold
    FROM unnest(sums) AS p WHERE p.is_sold = sold AND usage_series_of(p) IS NULL
    ORDER BY 1, 2, 3, 4, 5, 6, 7, 8
    ON CONFLICT DO NOTHING;
  END LOOP;
  INSERT INTO usage_totals AS t (series_id, span, starts_at,
    requests, errors, prompt_tokens, completion_tokens, cached_tokens, cache_write_tokens, cache_write_hour_tokens,
    reasoning_tokens, web_searches, charge, cost, margin, costed, uncosted,
    images, seconds, stated_cost, compared_cost, cost_drift)
  SELECT p.series, s.span, s.starts_at,
    sum(p.requests), sum(p.errors), sum(p.prompt_tokens), sum(p.completion_tokens), sum(p.cached_tokens),
    sum(p.cache_write_tokens), sum(p.cache_write_hour_tokens), sum(p.reasoning_tokens), sum(p.web_searches),
    sum(p.charge), sum(p.cost), sum(p.margin), sum(p.costed), sum(p.uncosted),
    sum(p.images), sum(p.seconds), sum(p.stated_cost), sum(p.compared_cost), sum(p.cost_drift)
  FROM (SELECT sum.*, usage_series_of(sum) AS series FROM unnest(sums) AS sum OFFSET 0) AS p,
    LATERAL (VALUES ('day', date_trunc('day', p.hour, 'UTC')), ('hour', p.hour)) AS s (span, starts_at)
  GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
  ON CONFLICT (series_id, starts_at, span) DO UPDATE SET
    requests = t.requests + excluded.requests, errors = t.errors + excluded.errors,
    prompt_tokens = t.prompt_tokens + excluded.prompt_tokens,
    completion_tokens = t.completion_tokens + excluded.completion_tokens,
    cached_tokens = t.cached_tokens + excluded.cached_tokens,
    cache_write_tokens = t.cache_write_tokens + excluded.cache_write_tokens,
    cache_write_hour_tokens = t.cache_write_hour_tokens + excluded.cache_write_hour_tokens,
    reasoning_tokens = t.reasoning_tokens + excluded.reasoning_tokens,
    web_searches = t.web_searches + excluded.web_searches, charge = t.charge + excluded.charge,
    cost = t.cost + excluded.cost, margin = t.margin + excluded.margin, costed = t.costed + excluded.costed,
    uncosted = t.uncosted + excluded.uncosted, images = t.images + excluded.images,
    seconds = t.seconds + excluded.seconds, stated_cost = t.stated_cost + excluded.stated_cost,
    compared_cost = t.compared_cost + excluded.compared_cost, cost_drift = t.cost_drift + excluded.cost_drift;
  IF cardinality(tagged) > 0 THEN
    PERFORM add_tag_usage(tagged);
  END IF;
END $$;

-- Takes ids out of the queue and adds their rows to the totals; the caller has the lock 7025102615. fill_usage adds
-- older rows. Rows are found by their key, whatever the planner expects of the queue.
CREATE FUNCTION take_uncounted(most integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  found_ids integer;
  parts usage_part[];
BEGIN
  WITH taken AS (
    DELETE FROM uncounted_requests WHERE ctid = ANY (ARRAY(SELECT ctid FROM uncounted_requests LIMIT most)) RETURNING id
  )
  SELECT (SELECT count(*) FROM taken), array_agg(p) INTO found_ids, parts
  FROM taken, LATERAL (SELECT * FROM request_log WHERE request_log.id = taken.id OFFSET 0) AS r,
    usage_parts(1, ROW(r.*)::request_log) AS p
  WHERE r.at >= (SELECT filled_from FROM usage_bounds);
  PERFORM add_usage(parts);
  -- Settlements read this row, and its old versions while a backup keeps them: it does not change each second.
  UPDATE usage_counter SET counted_at = clock_timestamp()
  WHERE counted_at < clock_timestamp() - interval '3 seconds' AND found_ids < most;
  RETURN found_ids;
END $$;

-- Returns how many rows were queued, or 0 if another gateway counts them.
CREATE FUNCTION count_uncounted(most integer) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
  IF NOT pg_try_advisory_xact_lock(7025102616) THEN
    RETURN 0;
  END IF;
  PERFORM set_config('lock_timeout', '500ms', true);
  PERFORM pg_advisory_xact_lock(7025102615);
  RETURN take_uncounted(most);
END $$;

-- Statements call this and token_windows_of after they waited for the lock of the keys' organizations. The functions
-- are volatile, so they read a new snapshot, not that of the statement. Their plans are kept, also those made for a
-- small table.
CREATE FUNCTION places_of(keys text[]) RETURNS TABLE(key_id text, places bigint) LANGUAGE plpgsql SET enable_seqscan TO 'off' AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY SELECT k.key_id,
    (SELECT count(*) FROM open_holds AS h WHERE h.key_id = k.key_id AND h.released_at IS NULL)
    + (SELECT count(*) FROM holds AS h WHERE h.key_id = k.key_id AND h.state = 'open' AND h.instance_id IS NULL)
  FROM unnest(keys) AS k (key_id);
END $$;

CREATE FUNCTION token_windows_of(keys text[]) RETURNS SETOF token_windows LANGUAGE plpgsql SET enable_seqscan TO 'off' AS $$
BEGIN
  RETURN QUERY SELECT * FROM token_windows WHERE key_id = ANY (keys) AND started_at > now() - interval '60 seconds';
END $$;

CREATE FUNCTION cap_period_start(period text, at timestamptz) RETURNS date LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE period WHEN 'total' THEN '-infinity'::date ELSE date_trunc(period, at AT TIME ZONE 'UTC')::date END
$$;

-- Null if the period never ends.
CREATE FUNCTION cap_period_end(period text) RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN period <> 'total'
    THEN (date_trunc(period, now() AT TIME ZONE 'UTC') + ('1 ' || period)::interval) AT TIME ZONE 'UTC'
  END
$$;

-- The sum of an organization's open holds of jobs, read like places_of.
CREATE FUNCTION job_holds_of(org text) RETURNS bigint LANGUAGE plpgsql SET enable_seqscan TO 'off' AS $$
BEGIN
  RETURN (SELECT coalesce(sum(amount), 0) FROM holds WHERE org_id = org AND state = 'open' AND instance_id IS NULL);
END $$;

CREATE FUNCTION usage_day(at timestamptz) RETURNS date LANGUAGE sql IMMUTABLE AS $$ SELECT (at AT TIME ZONE 'UTC')::date $$;

-- Gives the new tags of a day their numbers, up to 1000 an organization. A second writer waits.
CREATE FUNCTION admit_tags(tagged usage_part[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (
    SELECT FROM unnest(tagged) AS p WHERE p.tag <> 'other' AND NOT EXISTS (
      SELECT FROM usage_tags AS t WHERE t.day = usage_day(p.hour) AND t.org_id = p.org_id AND t.tag = p.tag
    ) AND NOT EXISTS (
      SELECT FROM usage_tags AS t WHERE t.day = usage_day(p.hour) AND t.org_id = p.org_id AND t.number = 1000
    )
  ) THEN
    RETURN;
  END IF;
  PERFORM pg_advisory_xact_lock(7025102617);
  INSERT INTO usage_tags (day, org_id, tag, number)
  SELECT day, org_id, tag, number FROM (
    SELECT new.*, row_number() OVER (PARTITION BY day, org_id ORDER BY tag) + (
      SELECT coalesce(max(t.number), 0) FROM usage_tags AS t WHERE t.day = new.day AND t.org_id = new.org_id
    ) AS number
    FROM (
      SELECT DISTINCT usage_day(p.hour) AS day, p.org_id, p.tag FROM unnest(tagged) AS p
      WHERE p.tag <> 'other' AND NOT EXISTS (
        SELECT FROM usage_tags AS t WHERE t.day = usage_day(p.hour) AND t.org_id = p.org_id AND t.tag = p.tag
      )
    ) AS new
  ) AS numbered
  WHERE number <= 1000;
END $$;

CREATE FUNCTION add_tag_usage(tagged usage_part[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  named usage_part[] := ARRAY(
    SELECT ROW(p.hour, p.org_id, p.key_id, p.model, p.route, p.provider, p.surface, p.status, p.is_sold,
      p.requests, p.errors, p.prompt_tokens, p.completion_tokens, p.cached_tokens, p.cache_write_tokens,
      p.cache_write_hour_tokens, p.reasoning_tokens, p.web_searches, p.charge, p.cost, p.margin, p.costed, p.uncosted,
      usage_series_of(p), coalesce(t.tag, 'other'), p.images, p.seconds, p.stated_cost, p.compared_cost, p.cost_drift)::usage_part
    FROM unnest(tagged) AS p
    LEFT JOIN usage_tags AS t ON t.day = usage_day(p.hour) AND t.org_id = p.org_id AND t.tag = p.tag
  );
BEGIN
  INSERT INTO usage_tag_series (series_id, tag)
  SELECT DISTINCT p.series_id, p.tag FROM unnest(named) AS p
  WHERE NOT EXISTS (SELECT FROM usage_tag_series AS t WHERE t.series_id = p.series_id AND t.tag = p.tag)
  ORDER BY 1, 2
  ON CONFLICT DO NOTHING;
  INSERT INTO usage_tag_totals AS t (series_id, span, starts_at,
    requests, errors, prompt_tokens, completion_tokens, cached_tokens, cache_write_tokens, cache_write_hour_tokens,
    reasoning_tokens, web_searches, charge, cost, margin, costed, uncosted,
    images, seconds, stated_cost, compared_cost, cost_drift)
  SELECT of_tag.id, s.span, s.starts_at,
    sum(p.requests), sum(p.errors), sum(p.prompt_tokens), sum(p.completion_tokens), sum(p.cached_tokens),
    sum(p.cache_write_tokens), sum(p.cache_write_hour_tokens), sum(p.reasoning_tokens), sum(p.web_searches),
    sum(p.charge), sum(p.cost), sum(p.margin), sum(p.costed), sum(p.uncosted),
    sum(p.images), sum(p.seconds), sum(p.stated_cost), sum(p.compared_cost), sum(p.cost_drift)
  FROM unnest(named) AS p JOIN usage_tag_series AS of_tag ON of_tag.series_id = p.series_id AND of_tag.tag = p.tag,
    LATERAL (VALUES ('day', date_trunc('day', p.hour, 'UTC')), ('hour', p.hour)) AS s (span, starts_at)
  GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
  ON CONFLICT (series_id, starts_at, span) DO UPDATE SET
    requests = t.requests + excluded.requests, errors = t.errors + excluded.errors,
    prompt_tokens = t.prompt_tokens + excluded.prompt_tokens,
    completion_tokens = t.completion_tokens + excluded.completion_tokens,
    cached_tokens = t.cached_tokens + excluded.cached_tokens,
    cache_write_tokens = t.cache_write_tokens + excluded.cache_write_tokens,
    cache_write_hour_tokens = t.cache_write_hour_tokens + excluded.cache_write_hour_tokens,
    reasoning_tokens = t.reasoning_tokens + excluded.reasoning_tokens,
    web_searches = t.web_searches + excluded.web_searches, charge = t.charge + excluded.charge,
    cost = t.cost + excluded.cost, margin = t.margin + excluded.margin, costed = t.costed + excluded.costed,
    uncosted = t.uncosted + excluded.uncosted, images = t.images + excluded.images,
    seconds = t.seconds + excluded.seconds, stated_cost = t.stated_cost + excluded.stated_cost,
    compared_cost = t.compared_cost + excluded.compared_cost, cost_drift = t.cost_drift + excluded.cost_drift;
END $$;

-- Adds the next ten minutes that have an entry, and returns whether there may be more.
CREATE FUNCTION add_charges(latest timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  since timestamptz;
  till timestamptz;
  complete timestamptz := least(latest, entries_complete_until());
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

-- No entry before this time can come any more. An entry has the time at which its transaction began, so the last hour
-- is left out, and all since the oldest running transaction.
CREATE FUNCTION entries_complete_until() RETURNS timestamptz LANGUAGE sql AS $$
  SELECT least(now() - interval '1 hour', min(xact_start)) FROM pg_stat_activity
  WHERE datname = current_database() AND backend_type = 'client backend' AND xact_start IS NOT NULL
$$;

-- Charges that came after their time was added up, for example after a database's clock was set back, are missing in
-- statements. Adds them without a model, and returns how many months of organizations lacked some.
CREATE FUNCTION add_missed_charges() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  months bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(7025102618);
  INSERT INTO monthly_charges AS m
    (org_id, month, model, surface, requests, prompt_tokens, completion_tokens, images, seconds, charge)
  SELECT made.org_id, made.month, '', '', made.requests - coalesce(added.requests, 0), 0, 0, 0, 0,
    made.charge - coalesce(added.charge, 0)
  FROM (
    SELECT org_id, date_trunc('month', at AT TIME ZONE 'UTC')::date AS month, count(*) AS requests, -sum(amount) AS charge
    FROM ledger_entries WHERE kind = 'charge' AND at < (SELECT added_until FROM monthly_charges_progress) GROUP BY 1, 2
  ) AS made LEFT JOIN (
    SELECT org_id, month, sum(requests) AS requests, sum(charge) AS charge FROM monthly_charges GROUP BY 1, 2
  ) AS added USING (org_id, month)
  WHERE made.requests > coalesce(added.requests, 0)
  ON CONFLICT (org_id, month, model, surface) DO UPDATE SET
    requests = m.requests + excluded.requests, charge = m.charge + excluded.charge;
  GET DIAGNOSTICS months = ROW_COUNT;
  RETURN months;
END $$;

CREATE FUNCTION seal_half(half bigint, round integer, secret text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN ((('x'::text || "left"(md5((((secret || (round)::text) || ' '::text) || (half)::text)), 8)))::bit(32))::bigint;

-- A Feistel network: one sealed form for each number below 2^44, and back.
CREATE FUNCTION seal(numbered text, number bigint, org text) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
  secret text := concat_ws(' ', (SELECT s.secret FROM number_seal AS s), numbered, org);
  high bigint := number >> 32;
  low bigint := number & 4294967295;
  mixed bigint;
BEGIN
  FOR round IN 1..3 LOOP
    mixed := high # seal_half(low, round, secret);
    high := low;
    low := mixed;
  END LOOP;
  RETURN lpad(to_hex((high << 32) | low), 16, '0');
END $$;

-- Null if the text is no sealed number of the organization.
CREATE FUNCTION unseal(numbered text, sealed text, org text) RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
DECLARE
  secret text := concat_ws(' ', (SELECT s.secret FROM number_seal AS s), numbered, org);
  high bigint := ('x' || left(sealed, 8))::bit(32)::bigint;
  low bigint := ('x' || right(sealed, 8))::bit(32)::bigint;
  mixed bigint;
BEGIN
  FOR round IN REVERSE 3..1 LOOP
    mixed := low # seal_half(high, round, secret);
    low := high;
    high := mixed;
  END LOOP;
  RETURN CASE WHEN high < 4096 THEN (high << 32) | low END;
END $$;

-- The number of the row that an organization knows by this id, or by its sealed number; null where it has none. The time in
-- an id is that of its row, so it needs no index of its own.
CREATE FUNCTION number_of(numbered text, shown text, org text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
  since timestamptz;
  until timestamptz;
BEGIN
  IF length(shown) = 16 THEN RETURN unseal(numbered, shown, org); END IF;
  since := to_timestamp(('x' || left(replace(shown, '-', ''), 12))::bit(48)::bigint / 1000.0);
  until := since + interval '1 millisecond';
  IF numbered = 'webhook_deliveries' THEN
    RETURN (
      SELECT id FROM webhook_deliveries
      WHERE org_id = org AND created_at >= since AND created_at < until AND public_id = shown::uuid
    );
  END IF;
  RETURN coalesce(
    (SELECT id FROM ledger_entries WHERE org_id = org AND hold_id = shown::uuid),
    (
      SELECT id FROM ledger_entries
      WHERE org_id = org AND kind <> 'charge' AND at >= since AND at < until AND public_id = shown::uuid
    )
  );
END $$;

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
  (52, '0052_public_ids', '3b5de0177773984d8e948897704e72f6df89afb11a2b10cbd08b45566fea594f');
