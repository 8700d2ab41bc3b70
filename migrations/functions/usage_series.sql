-- Models that are not on sale are counted as 'unknown'.
CREATE OR REPLACE FUNCTION usage_model(model text, is_sold boolean) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT CASE
    WHEN is_sold OR model = '' OR EXISTS (SELECT FROM usage_series AS s WHERE s.model = usage_model.model AND s.is_sold) THEN model
    ELSE 'unknown'
  END
$$;

CREATE OR REPLACE FUNCTION usage_series_of(p usage_part) RETURNS integer LANGUAGE sql STABLE AS $$
  SELECT id FROM usage_series AS s
  WHERE s.org_id = p.org_id AND s.key_id = p.key_id AND s.model = usage_model(p.model, p.is_sold) AND s.route = p.route
    AND s.provider = p.provider AND s.surface = p.surface AND s.status = p.status AND s.is_sold = p.is_sold
$$;

CREATE OR REPLACE FUNCTION usage_day(at timestamptz) RETURNS date LANGUAGE sql IMMUTABLE AS $$ SELECT (at AT TIME ZONE 'UTC')::date $$;

-- The tag under which a part of a row is added: 'other' if the organization had used up the day's tags before. This tag
-- never changes, so a row is always subtracted from the total to which it was added.
CREATE OR REPLACE FUNCTION usage_tag_of(p usage_part) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT coalesce((
    SELECT t.tag FROM usage_tags AS t WHERE t.day = usage_day(p.hour) AND t.org_id = p.org_id AND t.tag = p.tag
  ), 'other')
$$;

-- Numbers the new tags of a day, up to 1000 per organization. Concurrent writers wait for each other.
CREATE OR REPLACE FUNCTION admit_tags(tagged usage_part[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (
    SELECT FROM unnest(tagged) AS p WHERE p.tag <> 'other' AND NOT EXISTS (
      SELECT FROM usage_tags AS t WHERE t.day = usage_day(p.hour) AND t.org_id = p.org_id AND t.tag = p.tag
    ) AND NOT EXISTS (
      SELECT FROM usage_tags AS t WHERE t.day = usage_day(p.hour) AND t.org_id = p.org_id AND t.number = 1000
    )
  ) THEN
    RETURN;
  END IF;
  PERFORM pg_advisory_xact_lock(7025102617);
  INSERT INTO usage_tags (day, org_id, tag, number)
  SELECT day, org_id, tag, number FROM (
    SELECT new.*, row_number() OVER (PARTITION BY day, org_id ORDER BY tag) + (
      SELECT coalesce(max(t.number), 0) FROM usage_tags AS t WHERE t.day = new.day AND t.org_id = new.org_id
    ) AS number
    FROM (
      SELECT DISTINCT usage_day(p.hour) AS day, p.org_id, p.tag FROM unnest(tagged) AS p
      WHERE p.tag <> 'other' AND NOT EXISTS (
        SELECT FROM usage_tags AS t WHERE t.day = usage_day(p.hour) AND t.org_id = p.org_id AND t.tag = p.tag
      )
    ) AS new
  ) AS numbered
  WHERE number <= 1000;
END $$;
