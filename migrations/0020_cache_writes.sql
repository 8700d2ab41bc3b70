-- What else a chat is charged for: prompt tokens written to a provider's cache, those of them that it keeps for an hour,
-- and web searches. Columns without a default: no row is rewritten.
ALTER TABLE request_log
  ADD COLUMN cache_write_tokens bigint,
  ADD COLUMN cache_write_hour_tokens bigint,
  ADD COLUMN web_searches bigint;
