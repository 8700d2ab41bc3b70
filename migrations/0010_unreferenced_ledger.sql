-- Every request writes a hold, an entry and a key's spend, and each reference of theirs cost one more look-up and lock
-- of its row. The statements that write them read those rows anyway; what references kept besides is kept by
-- organizations, keys, holds and instances that are never deleted.
CREATE FUNCTION keep_referenced() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'rows of % are never deleted', TG_TABLE_NAME;
END $$;
CREATE TRIGGER organizations_kept BEFORE DELETE OR TRUNCATE ON organizations
  FOR EACH STATEMENT EXECUTE FUNCTION keep_referenced();
CREATE TRIGGER api_keys_kept BEFORE DELETE OR TRUNCATE ON api_keys
  FOR EACH STATEMENT EXECUTE FUNCTION keep_referenced();
CREATE TRIGGER instances_kept BEFORE DELETE OR TRUNCATE ON instances
  FOR EACH STATEMENT EXECUTE FUNCTION keep_referenced();
CREATE TRIGGER holds_untruncated BEFORE TRUNCATE ON holds
  FOR EACH STATEMENT EXECUTE FUNCTION keep_referenced();

ALTER TABLE holds
  DROP CONSTRAINT holds_org_id_fkey,
  DROP CONSTRAINT holds_key_id_fkey,
  DROP CONSTRAINT holds_instance_id_fkey;
ALTER TABLE ledger_entries
  DROP CONSTRAINT ledger_entries_org_id_fkey,
  DROP CONSTRAINT ledger_entries_hold_id_fkey,
  DROP CONSTRAINT ledger_entries_key_id_fkey;
ALTER TABLE key_spend DROP CONSTRAINT key_spend_key_id_fkey;
-- A hold that a crash has lost is placed again after the result that it pays for has been kept.
ALTER TABLE idempotency_keys DROP CONSTRAINT idempotency_keys_hold_id_fkey;
