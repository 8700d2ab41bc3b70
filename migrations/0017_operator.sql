-- What was given back of each charge: refunds of the hold H are named refund:H, refund:H:2, refund:H:3 and so on. Reads
-- the ledger once; with 10 million entries charges wait for about two seconds.
CREATE INDEX ledger_entries_refunds ON ledger_entries (substr(ref, 8, 36))
  WHERE kind = 'adjustment' AND ref LIKE 'refund:%';

-- A deleted organization stays for its entries; its name is free again.
ALTER TABLE organizations ADD COLUMN deleted_at timestamptz;
