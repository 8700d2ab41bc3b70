-- Every listing finds its rows by an index, however many rows there are. Writes to the request log wait while its
-- indexes are made: about 20 seconds for each million rows; those to videos less than that.

-- The columns after the time let a filter pass over a row without reading it.
DROP INDEX request_log_org;
CREATE INDEX request_log_org ON request_log (org_id, at DESC, id DESC, status, model);
DROP INDEX request_log_key;
CREATE INDEX request_log_key ON request_log (key_id, at DESC, id DESC, status, model);
CREATE INDEX request_log_model ON request_log (model, at DESC, id DESC, status);
-- Most requests succeed, and those are found soon in the order of time.
CREATE INDEX request_log_status ON request_log (status, at DESC, id DESC) WHERE status <> 200;
CREATE INDEX request_log_paid_attempts ON request_log (at) WHERE jsonb_path_exists(attempts, '$[*].cost_nano');

-- The operator lists jobs of which no customer was told, too.
DROP INDEX videos_org;
CREATE INDEX videos_org ON videos (org_id, created_at DESC, id DESC, status, model, accepted_at);
CREATE INDEX videos_created ON videos (created_at DESC, id DESC);
CREATE INDEX videos_model ON videos (model, created_at DESC, id DESC, status);
CREATE INDEX videos_status ON videos (status, created_at DESC, id DESC) WHERE status <> 'completed';
