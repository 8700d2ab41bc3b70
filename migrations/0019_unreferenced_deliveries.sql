-- A reference locks its endpoint for each delivery, so a removal in the same moment would delay charges or fail them. What
-- is written for an endpoint that is gone is dropped when it is due.
ALTER TABLE webhook_deliveries DROP CONSTRAINT webhook_deliveries_endpoint_id_fkey;
