-- The route that has the conversation's prompt cache. A column without a default: no row is rewritten.
ALTER TABLE request_log ADD COLUMN preferred_route text;
