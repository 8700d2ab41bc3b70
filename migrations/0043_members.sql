-- Operators of one organization: its members. Without a foreign key, whose creation would wait for every open change of a
-- balance; rows of organizations are never deleted. The table is small, and the statements of the version before name
-- their columns.
ALTER TABLE operators
  ADD COLUMN org_id text,
  ADD CONSTRAINT operators_member_role CHECK (org_id IS NULL OR role IN ('read', 'write'));
CREATE INDEX operators_org ON operators (org_id) WHERE org_id IS NOT NULL;
