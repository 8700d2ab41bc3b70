-- One row per authenticated request to a generating endpoint. No prompt and no output is ever in it.
CREATE TABLE request_log (
  id              uuid PRIMARY KEY,
  -- What the client sent as x-request-id, or what it was given; not unique.
  request_id      text NOT NULL,
  at              timestamptz NOT NULL,
  surface         text NOT NULL,
  -- The HTTP status the client got; 499 when it left first.
  status          integer NOT NULL,
  code            text,
  org_id          text NOT NULL,
  key_id          text NOT NULL,
  model           text,
  route           text,
  provider        text,
  stream          boolean NOT NULL DEFAULT false,
  -- [{route, provider, outcome, status, ms, cost_nano?}], in the order tried.
  attempts        jsonb NOT NULL DEFAULT '[]',
  -- usage_estimated, hold_exceeded, hold_lost
  notes           text[] NOT NULL DEFAULT '{}',
  prompt_tokens     bigint,
  completion_tokens bigint,
  cached_tokens     bigint,
  reasoning_tokens  bigint,
  hold_id         uuid,
  charge          bigint NOT NULL DEFAULT 0,
  cost            bigint,
  first_byte_ms   integer,
  total_ms        integer NOT NULL
);
CREATE INDEX request_log_at ON request_log (at DESC, id DESC);
CREATE INDEX request_log_org ON request_log (org_id, at DESC);
CREATE INDEX request_log_key ON request_log (key_id, at DESC);
CREATE INDEX request_log_request_id ON request_log (request_id);
