-- For how many organizations a route's circuit is not closed while it may be for all others.
ALTER TABLE route_health ADD COLUMN open_for_organizations integer NOT NULL DEFAULT 0;
