-- Destinations of webhooks whose last try took long, by `lane` of webhook_deliveries. They are sent fewer at a time, in places
-- of their own, and delay no others. A row that no try has renewed for a day is removed.
CREATE TABLE webhook_slow_lanes (
  lane     text PRIMARY KEY,
  org_id   text NOT NULL,
  tried_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX webhook_slow_lanes_org ON webhook_slow_lanes (org_id);
