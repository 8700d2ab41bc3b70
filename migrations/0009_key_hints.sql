-- What tells keys apart: the beginning of the secret, and when it was last used. Null for keys of before.
ALTER TABLE api_keys ADD COLUMN hint text;

-- Apart from the keys, whose every change makes all instances forget what they remember.
CREATE TABLE key_uses (
  key_id       text PRIMARY KEY REFERENCES api_keys (id),
  last_used_at timestamptz NOT NULL
);
