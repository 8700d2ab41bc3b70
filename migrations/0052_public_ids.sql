-- Entries and deliveries are numbered over all organizations, and two numbers tell how much all others did between them. An
-- organization knows a row by an id of its own instead; a charge by that of its hold, of which it is the only one. Rows of
-- before keep the sealed number by which they are known. Columns without a value: no row is rewritten.
CREATE FUNCTION uuid_v7(at timestamptz) RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE
  RETURN (lpad(to_hex(floor(extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7'
    || right(replace(gen_random_uuid()::text, '-', ''), 19))::uuid;

ALTER TABLE ledger_entries ADD COLUMN public_id uuid;
ALTER TABLE ledger_entries ALTER COLUMN public_id SET DEFAULT uuid_v7(now());
ALTER TABLE webhook_deliveries ADD COLUMN public_id uuid;
ALTER TABLE webhook_deliveries ALTER COLUMN public_id SET DEFAULT uuid_v7(now());

-- The number of the row that an organization knows by this id, or by its sealed number; null where it has none. The time in
-- an id is that of its row, so it needs no index of its own.
CREATE FUNCTION number_of(numbered text, shown text, org text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
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
      'entry_id', NEW.public_id, 'payment_id', payment, 'reason', reason,
      'amount_usd', trim_scale(-NEW.amount * 0.000000001), 'balance_usd', trim_scale(organization.balance * 0.000000001)
    ) ELSE json_build_object(
      'entry_id', NEW.public_id, 'kind', NEW.kind, 'payment_id', payment,
      'amount_usd', trim_scale(NEW.amount * 0.000000001), 'balance_usd', trim_scale(organization.balance * 0.000000001)
    ) END
  FROM webhook_endpoints AS endpoint JOIN organizations AS organization ON organization.id = endpoint.org_id
  WHERE endpoint.org_id = NEW.org_id AND endpoint.disabled_at IS NULL;
  RETURN NULL;
END $$;
