-- Entries and deliveries are numbered over all organizations: two numbers of one tell how much all others did between
-- them. What an organization is told of a number is its sealed form, of which another organization can make nothing.
CREATE TABLE number_seal (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  secret   text NOT NULL
);
INSERT INTO number_seal (secret) VALUES (gen_random_uuid()::text || gen_random_uuid()::text);

CREATE FUNCTION seal_half(half bigint, round integer, secret text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN ('x' || left(md5(secret || round::text || ' ' || half::text), 8))::bit(32)::bigint;

-- A Feistel network: one sealed form for each number below 2^44 of what is numbered, and back.
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

-- Null where nothing was sealed so for the organization.
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

CREATE OR REPLACE FUNCTION notify_of_credits() RETURNS trigger LANGUAGE plpgsql AS $$
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
      'entry_id', seal('ledger_entries', NEW.id, NEW.org_id), 'payment_id', payment, 'reason', reason,
      'amount_usd', trim_scale(-NEW.amount * 0.000000001), 'balance_usd', trim_scale(organization.balance * 0.000000001)
    ) ELSE json_build_object(
      'entry_id', seal('ledger_entries', NEW.id, NEW.org_id), 'kind', NEW.kind, 'payment_id', payment,
      'amount_usd', trim_scale(NEW.amount * 0.000000001), 'balance_usd', trim_scale(organization.balance * 0.000000001)
    ) END
  FROM webhook_endpoints AS endpoint JOIN organizations AS organization ON organization.id = endpoint.org_id
  WHERE endpoint.org_id = NEW.org_id AND endpoint.disabled_at IS NULL;
  RETURN NULL;
END $$;
