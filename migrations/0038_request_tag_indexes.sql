-- Requests by their tag and by their end user, whatever else is asked for: the columns after the time let a filter pass over
-- rows without reading them. Requests that have neither are in no index. Nobody waits: both are built beside the writes, and
-- built again where a stop has left one half done.
DROP INDEX CONCURRENTLY IF EXISTS request_log_tag;
CREATE INDEX CONCURRENTLY request_log_tag ON request_log
  (tag, at DESC, id DESC, status, code, model, route, surface, key_id, org_id) WHERE tag IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS request_log_end_user;
CREATE INDEX CONCURRENTLY request_log_end_user ON request_log
  (end_user, at DESC, id DESC, tag, status, code, model, route, surface, key_id, org_id) WHERE end_user IS NOT NULL;
