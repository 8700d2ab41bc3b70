-- Lists of the log walk the ids, which are in the order of time, so no index has the time as well. A request is in the
-- indexes of its organization and its key, and in others only if it has what few have. Entries of the ledger have numbers
-- without a time: their indexes keep it, and ascend as the entries come, which fills pages twice as well. Writes go on:
-- each index is built beside them, and built again if a stop has left it half done. Until they are upgraded, gateways of
-- the version before list by sorting all rows.
DROP INDEX CONCURRENTLY IF EXISTS request_log_org_id;
CREATE INDEX CONCURRENTLY request_log_org_id ON request_log (org_id, id);

DROP INDEX CONCURRENTLY IF EXISTS request_log_key_id;
CREATE INDEX CONCURRENTLY request_log_key_id ON request_log (key_id, id);

-- Request ids that clients chose: those that the gateway makes name the row itself.
DROP INDEX CONCURRENTLY IF EXISTS request_log_chosen_id;
CREATE INDEX CONCURRENTLY request_log_chosen_id ON request_log (request_id)
  WHERE request_id <> 'req_' || replace(id::text, '-', '');

-- The organization lets a member's list skip the rows of others without reading them.
DROP INDEX CONCURRENTLY IF EXISTS request_log_failed;
CREATE INDEX CONCURRENTLY request_log_failed ON request_log (status, id, org_id) WHERE status <> 200;

DROP INDEX CONCURRENTLY IF EXISTS request_log_coded;
CREATE INDEX CONCURRENTLY request_log_coded ON request_log (code, id, org_id) WHERE code IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS request_log_tagged;
CREATE INDEX CONCURRENTLY request_log_tagged ON request_log (tag, id, org_id) WHERE tag IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS request_log_of_user;
CREATE INDEX CONCURRENTLY request_log_of_user ON request_log (end_user, id, org_id) WHERE end_user IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS ledger_entries_time;
CREATE INDEX CONCURRENTLY ledger_entries_time ON ledger_entries (at, id);

DROP INDEX CONCURRENTLY IF EXISTS ledger_entries_org_time;
CREATE INDEX CONCURRENTLY ledger_entries_org_time ON ledger_entries (org_id, at, id);

DROP INDEX CONCURRENTLY IF EXISTS ledger_entries_kind_time;
CREATE INDEX CONCURRENTLY ledger_entries_kind_time ON ledger_entries (kind, at, id) WHERE kind <> 'charge';

DROP INDEX CONCURRENTLY IF EXISTS ledger_entries_org_kind_time;
CREATE INDEX CONCURRENTLY ledger_entries_org_kind_time ON ledger_entries (org_id, kind, at, id) WHERE kind <> 'charge';

DROP INDEX CONCURRENTLY IF EXISTS request_log_at;
DROP INDEX CONCURRENTLY IF EXISTS request_log_org_at;
DROP INDEX CONCURRENTLY IF EXISTS request_log_key_at;
DROP INDEX CONCURRENTLY IF EXISTS request_log_request_id;
DROP INDEX CONCURRENTLY IF EXISTS request_log_model;
DROP INDEX CONCURRENTLY IF EXISTS request_log_status;
DROP INDEX CONCURRENTLY IF EXISTS request_log_code;
DROP INDEX CONCURRENTLY IF EXISTS request_log_tag;
DROP INDEX CONCURRENTLY IF EXISTS request_log_end_user;
DROP INDEX CONCURRENTLY IF EXISTS ledger_entries_at;
DROP INDEX CONCURRENTLY IF EXISTS ledger_entries_org_at;
DROP INDEX CONCURRENTLY IF EXISTS ledger_entries_paid;
DROP INDEX CONCURRENTLY IF EXISTS ledger_entries_org_paid;
