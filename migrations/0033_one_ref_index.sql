-- Its successor holds every reference.
ALTER TABLE ledger_entries DROP CONSTRAINT ledger_entries_ref_key;
