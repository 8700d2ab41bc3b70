-- Frequently written tables have no foreign keys, because each would cost a lookup and a row lock per request. Instead,
-- the rows that foreign keys would reference are never deleted.
CREATE OR REPLACE FUNCTION keep_referenced() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'rows of % are never deleted', TG_TABLE_NAME;
END $$;
CREATE OR REPLACE TRIGGER organizations_kept BEFORE DELETE OR TRUNCATE ON organizations
  FOR EACH STATEMENT EXECUTE FUNCTION keep_referenced();
CREATE OR REPLACE TRIGGER api_keys_kept BEFORE DELETE OR TRUNCATE ON api_keys
  FOR EACH STATEMENT EXECUTE FUNCTION keep_referenced();
CREATE OR REPLACE TRIGGER instances_kept BEFORE DELETE OR TRUNCATE ON instances
  FOR EACH STATEMENT EXECUTE FUNCTION keep_referenced();
CREATE OR REPLACE TRIGGER holds_untruncated BEFORE TRUNCATE ON holds FOR EACH STATEMENT EXECUTE FUNCTION keep_referenced();
CREATE OR REPLACE TRIGGER open_holds_untruncated BEFORE TRUNCATE ON open_holds
  FOR EACH STATEMENT EXECUTE FUNCTION keep_referenced();
