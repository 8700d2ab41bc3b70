-- The models that a key may use, ids or patterns; null: all. And the secret that a reissue leaves valid for a while, by its
-- hash, with its first characters. The index has no rows yet, and api_keys is small: its lock lasts for one pass over it.
ALTER TABLE api_keys
  ADD COLUMN models text[],
  ADD COLUMN previous_hash bytea,
  ADD COLUMN previous_hint text,
  ADD COLUMN previous_expires_at timestamptz;
CREATE UNIQUE INDEX api_keys_previous_hash ON api_keys (previous_hash) WHERE previous_hash IS NOT NULL;
