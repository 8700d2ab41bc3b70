-- How many requests of a key may run at once, and how many tokens it may use a minute. Columns without a default: no row is
-- rewritten, and the constraints are true of every row there is.
ALTER TABLE api_keys
  ADD COLUMN tpm integer CONSTRAINT api_keys_tpm CHECK (tpm BETWEEN 1 AND 1000000000),
  ADD COLUMN concurrency integer CONSTRAINT api_keys_concurrency CHECK (concurrency BETWEEN 1 AND 1000000000);

-- As rate_windows, of tokens.
CREATE UNLOGGED TABLE token_windows (
  key_id     text PRIMARY KEY,
  started_at timestamptz NOT NULL,
  used       bigint NOT NULL CHECK (used >= 0)
) WITH (fillfactor = 50);

-- The places that keys have taken. The table holds what runs at this moment: it is read in no time.
CREATE INDEX open_holds_key ON open_holds (key_id) WITH (deduplicate_items = off);

-- Both are called by statements that have waited for the lock of the keys' organizations, and read with a new snapshot, as
-- only volatile functions do: that of the statement is from before it waited. A connection keeps their plans, also those made while a table was small.
CREATE FUNCTION places_of(keys text[]) RETURNS TABLE (key_id text, places bigint) LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY SELECT k.key_id,
    (SELECT count(*) FROM open_holds AS h WHERE h.key_id = k.key_id AND h.released_at IS NULL)
    + (SELECT count(*) FROM holds AS h WHERE h.key_id = k.key_id AND h.state = 'open' AND h.instance_id IS NULL)
  FROM unnest(keys) AS k (key_id);
END $$;

CREATE FUNCTION token_windows_of(keys text[]) RETURNS SETOF token_windows LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS $$
BEGIN
  RETURN QUERY SELECT * FROM token_windows WHERE key_id = ANY (keys) AND started_at > now() - interval '60 seconds';
END $$;
