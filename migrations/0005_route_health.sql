-- What each running instance knows of each route, published for the operator. Circuits themselves live in memory.
CREATE UNLOGGED TABLE route_health (
  instance_id  uuid NOT NULL,
  route        text NOT NULL,
  provider     text NOT NULL,
  model        text NOT NULL,
  circuit      text NOT NULL CHECK (circuit IN ('closed', 'open', 'half_open')),
  open_until   timestamptz,
  last_error   text,
  last_error_at timestamptz,
  latency_ms   double precision,
  requests     bigint NOT NULL,
  failures     bigint NOT NULL,
  published_at timestamptz NOT NULL,
  PRIMARY KEY (instance_id, route)
);
