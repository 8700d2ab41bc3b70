-- What operators tell running instances, which read both tables each second.
CREATE TABLE catalog_generation (
  only_row   boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  -- Grows with each gateway catalog reload.
  generation integer NOT NULL DEFAULT 0
);
INSERT INTO catalog_generation DEFAULT VALUES;

CREATE TABLE route_controls (
  route       text PRIMARY KEY,
  disabled_at timestamptz,
  note        text,
  -- Grows with each gateway routes reset.
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
