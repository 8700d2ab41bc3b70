CREATE OR REPLACE FUNCTION keep_entries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'ledger entries are append-only';
END $$;
CREATE OR REPLACE TRIGGER ledger_entries_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON ledger_entries
  FOR EACH STATEMENT EXECUTE FUNCTION keep_entries();

-- Events are written in the same transaction as the change that they report.
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
CREATE OR REPLACE TRIGGER ledger_entries_credits AFTER INSERT ON ledger_entries
  FOR EACH ROW WHEN (new.kind IN ('top_up', 'payment_reversal')) EXECUTE FUNCTION notify_of_credits();
