-- Events are written in the same transaction as the change that they report. These functions are volatile, so they see
-- the changes that the calling statement has made. services/webhooks/WebhookEvents.ts describes the events.

-- Writes an event for each webhook endpoint of an organization.
CREATE OR REPLACE FUNCTION notify_endpoints(org text, event_type text, event_data json) RETURNS void LANGUAGE plpgsql
SET enable_seqscan TO 'off' AS $$
DECLARE
  event text := 'evt_' || replace(gen_random_uuid()::text, '-', '');
BEGIN
  INSERT INTO webhook_deliveries (event_id, org_id, endpoint_id, url, type, data)
  SELECT event, org, id, url, event_type, event_data FROM webhook_endpoints WHERE org_id = org AND disabled_at IS NULL;
END $$;

-- Writes `credits.low` if a charge of this amount has brought the balance below the organization's threshold.
CREATE OR REPLACE FUNCTION notify_of_low_credits(org text, amount bigint) RETURNS void LANGUAGE plpgsql
SET enable_seqscan TO 'off' AS $$
BEGIN
  PERFORM notify_endpoints(id, 'credits.low', json_build_object(
    'threshold_usd', trim_scale(notify_below / 1e9),
    'available_usd', trim_scale((balance - held) / 1e9),
    'balance_usd', trim_scale(balance / 1e9),
    'held_usd', trim_scale(held / 1e9)
  ))
  FROM organizations WHERE id = org AND balance < notify_below AND balance + amount >= notify_below;
END $$;

-- Writes `cap.reached` if a charge of this amount has brought the spending to 80 or 100 % of a cap. Without a key, it
-- is the cap of the organization.
CREATE OR REPLACE FUNCTION notify_of_reached_cap(
  org text, key_id text, key_name text, cap bigint, period text, spent bigint, amount bigint
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM notify_endpoints(org, 'cap.reached', json_build_object(
    'key_id', key_id, 'key_name', key_name, 'percent', percent, 'cap_usd', trim_scale(cap / 1e9),
    'cap_period', period, 'spent_usd', trim_scale(spent / 1e9)
  ))
  FROM (VALUES (80, cap - cap / 5), (100, cap)) AS share (percent, reached)
  WHERE spent >= reached AND spent - amount < reached;
END $$;

-- Writes the events of charges after they were made. Each charge has an organization, a key and an amount.
CREATE OR REPLACE FUNCTION notify_of_charges(org_ids text[], key_ids text[], amounts bigint[]) RETURNS void LANGUAGE plpgsql
SET enable_seqscan TO 'off' AS $$
BEGIN
  PERFORM notify_of_low_credits(org_id, charged),
    notify_of_reached_cap(o.id, NULL, NULL, o.cap, o.cap_period, o.cap_spent, charged)
  FROM (
    SELECT org_id, sum(amount)::bigint AS charged FROM unnest(org_ids, amounts) AS c (org_id, amount) GROUP BY org_id
  ) AS charges JOIN organizations AS o ON o.id = org_id;
  PERFORM notify_of_reached_cap(k.org_id, k.id, k.name, k.cap, k.cap_period, spent_of_key(k.id, k.cap_period), charged)
  FROM (
    SELECT key_id, sum(amount)::bigint AS charged FROM unnest(key_ids, amounts) AS c (key_id, amount) GROUP BY key_id
  ) AS charges JOIN api_keys AS k ON k.id = key_id AND k.cap IS NOT NULL;
END $$;
