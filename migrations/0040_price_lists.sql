-- The rates by which chats are charged, by a hash of them, so that a request is explained by those it had. Eight bytes in a
-- row of the log instead of all rates; no foreign key, since a request must not wait for its list. Rows are only ever added.
-- A column without a default: no row is rewritten. What the version before writes has none.
CREATE TABLE price_lists (
  id       bigint PRIMARY KEY,
  rates    jsonb NOT NULL,
  added_at timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE request_log ADD COLUMN price_id bigint;
