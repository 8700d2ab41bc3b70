-- Instances cache keys, suspensions, caps and the block list. They read all of these again when this revision changes.
CREATE OR REPLACE FUNCTION bump_access_revision() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE access_revision SET revision = revision + 1;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER organizations_revision AFTER UPDATE OF suspended_at, fit_holds, cap, discount_percent ON organizations
  FOR EACH STATEMENT EXECUTE FUNCTION bump_access_revision();
CREATE OR REPLACE TRIGGER organizations_disputed AFTER UPDATE OF disputed_at ON organizations
  FOR EACH ROW WHEN (old.disputed_at IS DISTINCT FROM new.disputed_at) EXECUTE FUNCTION bump_access_revision();
CREATE OR REPLACE TRIGGER api_keys_revision AFTER INSERT OR DELETE OR UPDATE ON api_keys
  FOR EACH STATEMENT EXECUTE FUNCTION bump_access_revision();
CREATE OR REPLACE TRIGGER blocklist_revision AFTER INSERT OR DELETE OR UPDATE ON blocklist
  FOR EACH STATEMENT EXECUTE FUNCTION bump_access_revision();
