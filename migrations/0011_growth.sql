-- Every listing finds its rows by an index, however many rows there are. With 10 million rows of the request log and a
-- million videos, writes to the log wait for a minute and writes to videos for 5 seconds; reads go on until the end,
-- where the old indexes go.

-- The columns after the time let a filter pass over rows without reading them.
CREATE INDEX request_log_org_at ON request_log (org_id, at DESC, id DESC, status, model);
CREATE INDEX request_log_key_at ON request_log (key_id, at DESC, id DESC, status, model);
CREATE INDEX request_log_model ON request_log (model, at DESC, id DESC, status);
-- Most requests succeed, and those are found soon in the order of time.
CREATE INDEX request_log_status ON request_log (status, at DESC, id DESC) WHERE status <> 200;
CREATE INDEX request_log_paid_attempts ON request_log (at) WHERE jsonb_path_exists(attempts, '$[*].cost_nano');

-- The operator lists jobs of which no customer was told, too.
CREATE INDEX videos_org_created ON videos (org_id, created_at DESC, id DESC, status, model, accepted_at);
CREATE INDEX videos_created ON videos (created_at DESC, id DESC);
CREATE INDEX videos_model ON videos (model, created_at DESC, id DESC, status);
CREATE INDEX videos_status ON videos (status, created_at DESC, id DESC) WHERE status <> 'completed';

DROP INDEX request_log_org;
DROP INDEX request_log_key;
DROP INDEX videos_org;

-- An entry for one row can be dropped as soon as its hold is closed; one for many rows stays, and is gone through by
-- every statement that looks for open holds, until the last of them is closed.
ALTER INDEX holds_open SET (deduplicate_items = off);
ALTER INDEX holds_open_org SET (deduplicate_items = off);
ALTER INDEX holds_open_jobs SET (deduplicate_items = off);
