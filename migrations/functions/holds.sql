CREATE OR REPLACE FUNCTION keep_closed_holds() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'a closed hold cannot change';
END $$;
CREATE OR REPLACE TRIGGER holds_closed_once BEFORE UPDATE ON holds
  FOR EACH ROW WHEN (old.state <> 'open') EXECUTE FUNCTION keep_closed_holds();
CREATE OR REPLACE TRIGGER holds_kept BEFORE DELETE ON holds FOR EACH ROW EXECUTE FUNCTION keep_closed_holds();
CREATE OR REPLACE TRIGGER open_holds_released_once BEFORE UPDATE ON open_holds
  FOR EACH ROW WHEN (old.released_at IS NOT NULL) EXECUTE FUNCTION keep_closed_holds();

-- A late statement must not place a hold that is already closed. It may have waited for the organization's lock, so
-- only a new snapshot shows that the hold is closed.
CREATE OR REPLACE FUNCTION refuse_closed_holds() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM placed WHERE id IN (SELECT hold_id FROM ledger_entries WHERE hold_id = placed.id)
      OR id IN (SELECT holds.id FROM holds WHERE holds.id = placed.id)) THEN
    RAISE unique_violation USING MESSAGE = 'a closed hold cannot be placed again';
  END IF;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER open_holds_placed_once AFTER INSERT ON open_holds REFERENCING NEW TABLE AS placed
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_closed_holds();

-- Statements call this function and token_windows_of after they have waited for the locks of the keys' organizations.
-- Both functions are volatile, so they read a new snapshot and not that of the statement. They avoid sequential scans,
-- because their plans are kept, also a plan made for a small table.
CREATE OR REPLACE FUNCTION places_of(keys text[]) RETURNS TABLE(key_id text, places bigint) LANGUAGE plpgsql SET enable_seqscan TO 'off' AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY SELECT k.key_id,
    (SELECT count(*) FROM open_holds AS h WHERE h.key_id = k.key_id AND h.released_at IS NULL)
    + (SELECT count(*) FROM holds AS h WHERE h.key_id = k.key_id AND h.state = 'open' AND h.instance_id IS NULL)
  FROM unnest(keys) AS k (key_id);
END $$;

CREATE OR REPLACE FUNCTION token_windows_of(keys text[]) RETURNS SETOF token_windows LANGUAGE plpgsql SET enable_seqscan TO 'off' AS $$
BEGIN
  RETURN QUERY SELECT * FROM token_windows WHERE key_id = ANY (keys) AND started_at > now() - interval '60 seconds';
END $$;

-- The sum of an organization's open holds of jobs. Like places_of, call it while the organization is locked.
CREATE OR REPLACE FUNCTION job_holds_of(org text) RETURNS bigint LANGUAGE plpgsql SET enable_seqscan TO 'off' AS $$
BEGIN
  RETURN (SELECT coalesce(sum(amount), 0) FROM holds WHERE org_id = org AND state = 'open' AND instance_id IS NULL);
END $$;

-- The sum of a key's open holds of jobs. Like places_of, call it while the organization is locked.
CREATE OR REPLACE FUNCTION job_holds_of_key(key text) RETURNS bigint LANGUAGE plpgsql SET enable_seqscan TO 'off' AS $$
BEGIN
  RETURN (SELECT coalesce(sum(amount), 0) FROM holds WHERE key_id = key AND state = 'open' AND instance_id IS NULL);
END $$;

-- Enforces the limits of keys for tokens a minute (tpm) and for concurrent holds. `lacks` is the limit that refuses a
-- hold ('tokens' or 'concurrency', else null), if all earlier candidates that lack nothing are placed. `may_fit` is
-- whether a refused hold has room after all, because an earlier candidate was not affordable. Takes the tokens of the
-- affordable holds that lack nothing. Like places_of, call it while the organizations are locked.
CREATE OR REPLACE FUNCTION take_limits(
  ords bigint[], key_ids text[], placed_ats timestamptz[], are_candidates boolean[], are_affordable boolean[],
  tokens bigint[], token_limits bigint[], place_limits bigint[]
) RETURNS TABLE(ord bigint, lacks text, may_fit boolean, tokens_used bigint, token_window bigint, tokens_left_for integer)
LANGUAGE plpgsql SET enable_seqscan TO 'off' AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  WITH holds AS (
    SELECT h.*, coalesce(p.places, 0) AS places, coalesce(w.used, 0) AS used, w.started_at
    FROM unnest(ords, key_ids, placed_ats, are_candidates, are_affordable, tokens, token_limits, place_limits)
      AS h (ord, key_id, placed_at, is_candidate, is_affordable, tokens, token_limit, place_limit)
    LEFT JOIN places_of(ARRAY(
      SELECT DISTINCT k.key_id FROM unnest(key_ids, place_limits) AS k (key_id, place_limit) WHERE place_limit IS NOT NULL
    )) AS p ON p.key_id = h.key_id
    LEFT JOIN token_windows_of(key_ids) AS w ON w.key_id = h.key_id
  ), metered AS (
    SELECT *, is_candidate AND token_limit IS NOT NULL AND used + up_to > token_limit AND used + up_to > tokens AS lacks_tokens
    FROM (SELECT *, sum(tokens) FILTER (WHERE is_candidate) OVER (PARTITION BY key_id ORDER BY ord) AS up_to FROM holds) AS h
  ), judged AS (
    SELECT *, CASE WHEN lacks_tokens THEN 'tokens' WHEN is_candidate AND places + places_up_to > place_limit THEN 'concurrency'
      END AS lacks
    FROM (
      SELECT *, count(*) FILTER (WHERE is_candidate AND NOT lacks_tokens) OVER (PARTITION BY key_id ORDER BY ord) AS places_up_to
      FROM metered
    ) AS h
  ), taken AS (
    INSERT INTO token_windows AS w (key_id, started_at, used)
    SELECT key_id, now(), sum(tokens) FROM judged
    WHERE is_affordable AND lacks IS NULL AND token_limit IS NOT NULL GROUP BY key_id ORDER BY key_id
    ON CONFLICT (key_id) DO UPDATE SET
      started_at = CASE WHEN w.started_at <= now() - interval '60 seconds' THEN now() ELSE w.started_at END,
      used = CASE WHEN w.started_at <= now() - interval '60 seconds' THEN excluded.used ELSE w.used + excluded.used END
    RETURNING key_id, started_at, used
  ), after AS (
    SELECT judged.*, coalesce(taken.used, judged.used) AS used_after, coalesce(taken.started_at, judged.started_at) AS since,
      places + count(*) FILTER (WHERE is_affordable AND lacks IS NULL) OVER (PARTITION BY judged.key_id) AS places_after
    FROM judged LEFT JOIN taken ON taken.key_id = judged.key_id
  )
  SELECT ord, lacks,
    CASE lacks WHEN 'tokens' THEN used_after + tokens <= token_limit OR used_after = 0
      WHEN 'concurrency' THEN places_after < place_limit END,
    CASE WHEN token_limit IS NOT NULL THEN used_after END,
    -- A hold that was placed before this window began took its tokens from an earlier window.
    CASE WHEN placed_at IS NULL OR since <= placed_at THEN window_id(since) END,
    window_left(since)
  FROM after;
END $$;

-- The start of a window in Unix microseconds.
CREATE OR REPLACE FUNCTION window_id(started_at timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT (extract(epoch FROM started_at) * 1000000)::bigint
$$;

-- Whole seconds until a window ends.
CREATE OR REPLACE FUNCTION window_left(started_at timestamptz) RETURNS integer LANGUAGE sql STABLE AS $$
  SELECT greatest(0, least(60, ceil(extract(epoch FROM started_at - now()) + 60)))::integer
$$;
