-- Fixed 60 s windows, one a key. Losing them in a crash only starts new windows, so no WAL is spent on them.
CREATE UNLOGGED TABLE rate_windows (
  key_id     text PRIMARY KEY,
  started_at timestamptz NOT NULL,
  used       bigint NOT NULL
) WITH (fillfactor = 50);
