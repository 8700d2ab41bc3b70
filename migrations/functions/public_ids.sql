CREATE OR REPLACE FUNCTION seal_half(half bigint, round integer, secret text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN ((('x'::text || "left"(md5((((secret || (round)::text) || ' '::text) || (half)::text)), 8)))::bit(32))::bigint;

-- Encrypts a number below 2^44 with a Feistel network, so each number has exactly one sealed form. unseal decrypts it.
CREATE OR REPLACE FUNCTION seal(numbered text, number bigint, org text) RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
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

-- Returns the number that an organization's sealed (encrypted) id contains. Null if the text is no such id.
CREATE OR REPLACE FUNCTION unseal(numbered text, sealed text, org text) RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
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

-- Returns the number of the row to which an organization refers by a public id or a sealed number. Null if there is
-- none. A public id contains the time of its row, so no index of public ids is needed.
CREATE OR REPLACE FUNCTION number_of(numbered text, shown text, org text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
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
