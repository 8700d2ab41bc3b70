-- Most holds live as long as a request. They have a small table of their own, which a charge leaves again: its entry is
-- all that is kept of it. In holds are those of jobs, those released, and those of before.

CREATE TABLE open_holds (
  id          uuid PRIMARY KEY,
  org_id      text NOT NULL,
  key_id      text NOT NULL,
  amount      bigint NOT NULL CHECK (amount >= 0),
  instance_id uuid NOT NULL,
  created_at  timestamptz NOT NULL DEFAULT now(),
  -- Kept for as long as a statement may still try to place or to settle it; then it moves to holds.
  released_at timestamptz
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, vacuum_truncate = off);

-- A statement that comes late, when another one has placed the hold already and it is closed, must not place it again. It
-- has waited for the organization's lock, so only a new snapshot shows what is closed.
CREATE FUNCTION refuse_closed_holds() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM placed WHERE id IN (SELECT hold_id FROM ledger_entries WHERE hold_id = placed.id)
      OR id IN (SELECT holds.id FROM holds WHERE holds.id = placed.id)) THEN
    RAISE unique_violation USING MESSAGE = 'a closed hold cannot be placed again';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER open_holds_placed_once AFTER INSERT ON open_holds REFERENCING NEW TABLE AS placed
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_closed_holds();

CREATE TRIGGER open_holds_released_once BEFORE UPDATE ON open_holds
  FOR EACH ROW WHEN (OLD.released_at IS NOT NULL) EXECUTE FUNCTION keep_closed_holds();
CREATE TRIGGER open_holds_untruncated BEFORE TRUNCATE ON open_holds
  FOR EACH STATEMENT EXECUTE FUNCTION keep_referenced();

-- Of a charge whose hold has no row any more. Columns without a default: no row is rewritten, nor read.
ALTER TABLE ledger_entries
  ADD COLUMN held bigint,
  ADD COLUMN held_at timestamptz,
  ADD CONSTRAINT ledger_entries_held CHECK (
    (held IS NULL) = (held_at IS NULL) AND (held IS NULL OR kind = 'charge' AND amount BETWEEN -held AND 0)
  ) NOT VALID;

-- Each hold once, wherever it is.
CREATE VIEW all_holds AS
  SELECT id, org_id, key_id, amount, state, charged, instance_id, created_at, closed_at, instance_id IS NULL AS is_job
  FROM holds
  UNION ALL
  SELECT id, org_id, key_id, amount, CASE WHEN released_at IS NULL THEN 'open' ELSE 'released' END, NULL, instance_id,
    created_at, released_at, false
  FROM open_holds
  UNION ALL
  SELECT hold_id, org_id, key_id, held, 'settled', -amount, NULL, held_at, at, false
  FROM ledger_entries WHERE held IS NOT NULL;
