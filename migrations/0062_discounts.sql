-- A discount in percent on the prices of an organization. A negative one raises its prices.
ALTER TABLE organizations
  ADD COLUMN discount_percent double precision NOT NULL DEFAULT 0 CHECK (discount_percent BETWEEN -100 AND 100);
