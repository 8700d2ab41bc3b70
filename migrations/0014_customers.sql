-- What customers may do with their videos. With a million videos, writes to them wait for two seconds.
ALTER TABLE videos
  -- A deleted video is gone for its customer; its row stays for the operator.
  ADD COLUMN deleted_at timestamptz,
  -- In percent, as far as the provider tells; never falls.
  ADD COLUMN progress smallint NOT NULL DEFAULT 0;

-- What a customer can list and nothing else, so that a page reads as many entries as it has videos.
CREATE INDEX videos_listed ON videos (org_id, created_at DESC, id DESC)
  WHERE accepted_at IS NOT NULL AND deleted_at IS NULL;

-- Names in the media store to be removed. Listed by the transaction that gives them up, so that no crash forgets one.
CREATE TABLE media_removals (
  name      text PRIMARY KEY,
  listed_at timestamptz NOT NULL DEFAULT now()
);
