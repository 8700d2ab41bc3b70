-- Why a request was refused, as its client was told: param, message and hint. A column without a default: no row is
-- rewritten. What the version before writes has none.
ALTER TABLE request_log ADD COLUMN error jsonb;
