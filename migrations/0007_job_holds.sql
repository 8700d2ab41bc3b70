-- A hold without an instance belongs to a job, which outlives every process; nobody sweeps it.
ALTER TABLE holds ALTER COLUMN instance_id DROP NOT NULL;

-- What a key's jobs will cost counts towards its spending cap.
CREATE INDEX holds_open_jobs ON holds (key_id) INCLUDE (amount) WHERE state = 'open' AND instance_id IS NULL;
