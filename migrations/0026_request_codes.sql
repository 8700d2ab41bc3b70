-- Requests by their error's code, whatever else is asked for: the columns after the time let a filter pass over rows
-- without reading them. Nobody waits: it is built beside the writes, in seconds with 10 million rows of which one in
-- twenty has a code, and built again where a stop has left it half done.
DROP INDEX CONCURRENTLY IF EXISTS request_log_code;
CREATE INDEX CONCURRENTLY request_log_code ON request_log
  (code, at DESC, id DESC, status, model, route, surface, key_id, org_id) WHERE code IS NOT NULL;
