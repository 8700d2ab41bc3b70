-- Entries by time, of all organizations and of one, whatever else is asked for. Nobody waits: each index is built beside
-- the writes, in seconds with 10 million entries, and built again where a stop has left it half done.
DROP INDEX CONCURRENTLY IF EXISTS ledger_entries_at;
CREATE INDEX CONCURRENTLY ledger_entries_at ON ledger_entries (at DESC, id DESC);

DROP INDEX CONCURRENTLY IF EXISTS ledger_entries_org_at;
CREATE INDEX CONCURRENTLY ledger_entries_org_at ON ledger_entries (org_id, at DESC, id DESC);

-- Nearly all entries are charges; a charge changes neither of these.
DROP INDEX CONCURRENTLY IF EXISTS ledger_entries_paid;
CREATE INDEX CONCURRENTLY ledger_entries_paid ON ledger_entries (kind, at DESC, id DESC) WHERE kind <> 'charge';

DROP INDEX CONCURRENTLY IF EXISTS ledger_entries_org_paid;
CREATE INDEX CONCURRENTLY ledger_entries_org_paid ON ledger_entries (org_id, kind, at DESC, id DESC)
  WHERE kind <> 'charge';

DROP INDEX CONCURRENTLY IF EXISTS ledger_entries_org;
