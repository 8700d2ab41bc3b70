-- What a refund or a dispute took in another currency than USD, and whether an operator has to enter what that is in USD.
ALTER TABLE payment_reversals
  ADD COLUMN foreign_amount text,
  ADD COLUMN needs_amount boolean NOT NULL DEFAULT false;
