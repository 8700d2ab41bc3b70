-- Reports add up totals since 0024_usage_totals, so nothing looks for paid attempts in the log any more; the attempts of
-- every new row were searched for this index. Nobody waits, and no version that knows the totals reads it.
DROP INDEX CONCURRENTLY IF EXISTS request_log_paid_attempts;
