-- Who called, and the id under which a provider can look a request up. Columns without a default: no row is rewritten.
ALTER TABLE request_log
  ADD COLUMN address text,
  ADD COLUMN user_agent text,
  ADD COLUMN provider_request_id text;
