-- A plan that a connection made while the ledger had one page would read the whole of it for each hold until the next
-- ANALYZE: a minute of a busy new installation.
ALTER FUNCTION refuse_closed_holds() SET enable_seqscan = off;
