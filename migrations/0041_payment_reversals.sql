-- A refund or a dispute of a payment is an entry of its own kind. Refunds of requests stay adjustments with a reference
-- 'refund:...', by which the version before, which runs meanwhile, counts what is left to give back. No row is read: those
-- of before have passed narrower checks.
ALTER TABLE ledger_entries
  DROP CONSTRAINT ledger_entries_kind_check,
  ADD CONSTRAINT ledger_entries_kind_check CHECK (
    kind IN ('top_up', 'charge', 'adjustment', 'payment_reversal')
  ) NOT VALID,
  ADD CONSTRAINT ledger_entries_reversal_check CHECK (kind <> 'payment_reversal' OR ref IS NOT NULL) NOT VALID;
