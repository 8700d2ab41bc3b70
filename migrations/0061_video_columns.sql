-- Three columns of videos get plain names. Gateways of the previous version still use the old columns, so a trigger copies
-- each change in both directions. The next release drops the old columns and the trigger.
ALTER TABLE videos
  ADD COLUMN attempted_routes text[] NOT NULL DEFAULT '{}',
  ADD COLUMN may_retry_route boolean NOT NULL DEFAULT true,
  ADD COLUMN uncertain_submits integer NOT NULL DEFAULT 0;
UPDATE videos SET attempted_routes = tried, may_retry_route = spare, uncertain_submits = doubts
WHERE tried <> '{}' OR NOT spare OR doubts <> 0;
