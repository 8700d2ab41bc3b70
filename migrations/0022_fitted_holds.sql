-- Whether chats of the organization may run with a lower cap where its balance does not cover theirs. A constant default
-- rewrites no row.
ALTER TABLE organizations ADD COLUMN fit_holds boolean NOT NULL DEFAULT false;

DROP TRIGGER organizations_revision ON organizations;
CREATE TRIGGER organizations_revision AFTER UPDATE OF suspended_at, fit_holds ON organizations
  FOR EACH STATEMENT EXECUTE FUNCTION bump_access_revision();
