-- Keys, endpoints and deliveries are listed by indexes that have the filter and the order, and what waits for an endpoint
-- is counted by one of its own. Nobody waits: each index is built beside the writes, in seconds with a million deliveries,
-- and built again where a stop has left it half done.
DROP INDEX CONCURRENTLY IF EXISTS webhook_deliveries_endpoint_listed;
CREATE INDEX CONCURRENTLY webhook_deliveries_endpoint_listed ON webhook_deliveries (endpoint_id, id DESC, state)
  WHERE endpoint_id IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS webhook_deliveries_org_listed;
CREATE INDEX CONCURRENTLY webhook_deliveries_org_listed ON webhook_deliveries (org_id, id DESC, state);

DROP INDEX CONCURRENTLY IF EXISTS webhook_deliveries_pending;
CREATE INDEX CONCURRENTLY webhook_deliveries_pending ON webhook_deliveries (endpoint_id) WHERE next_at IS NOT NULL;

DROP INDEX CONCURRENTLY IF EXISTS webhook_endpoints_org_listed;
CREATE INDEX CONCURRENTLY webhook_endpoints_org_listed ON webhook_endpoints (org_id, id DESC);

DROP INDEX CONCURRENTLY IF EXISTS api_keys_org_listed;
CREATE INDEX CONCURRENTLY api_keys_org_listed ON api_keys (org_id, id DESC);

DROP INDEX CONCURRENTLY IF EXISTS webhook_deliveries_endpoint;
DROP INDEX CONCURRENTLY IF EXISTS webhook_deliveries_org;
DROP INDEX CONCURRENTLY IF EXISTS webhook_endpoints_org;
