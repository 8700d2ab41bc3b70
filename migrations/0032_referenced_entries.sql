-- A charge has no reference: no entry of the index for it. Nobody waits: it is built beside the writes, and built again
-- where a stop has left it half done.
DROP INDEX CONCURRENTLY IF EXISTS ledger_entries_ref;
CREATE UNIQUE INDEX CONCURRENTLY ledger_entries_ref ON ledger_entries (ref) WHERE ref IS NOT NULL;
