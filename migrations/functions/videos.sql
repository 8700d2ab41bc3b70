-- A finished job does not change, except for the cancellation that the provider must still receive.
CREATE OR REPLACE FUNCTION keep_finished_videos() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.status, NEW.media, NEW.error_code, NEW.completed_at, NEW.price, NEW.hold_id)
    IS DISTINCT FROM (OLD.status, OLD.media, OLD.error_code, OLD.completed_at, OLD.price, OLD.hold_id) THEN
    RAISE EXCEPTION 'a finished video cannot change';
  END IF;
  RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER videos_finished_once BEFORE UPDATE ON videos
  FOR EACH ROW WHEN (old.status IN ('completed', 'failed')) EXECUTE FUNCTION keep_finished_videos();

-- Gateways of the previous version write the old columns, and this version the new ones. Each change is copied to the
-- other.
CREATE OR REPLACE FUNCTION copy_video_columns() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.tried IS DISTINCT FROM OLD.tried THEN NEW.attempted_routes := NEW.tried;
  ELSE NEW.tried := NEW.attempted_routes; END IF;
  IF NEW.spare IS DISTINCT FROM OLD.spare THEN NEW.may_retry_route := NEW.spare;
  ELSE NEW.spare := NEW.may_retry_route; END IF;
  IF NEW.doubts IS DISTINCT FROM OLD.doubts THEN NEW.uncertain_submits := NEW.doubts;
  ELSE NEW.doubts := NEW.uncertain_submits; END IF;
  RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER videos_columns BEFORE UPDATE ON videos
  FOR EACH ROW EXECUTE FUNCTION copy_video_columns();

-- Writes a job's charge to its row of the request log, with the length of the charged clip.
CREATE OR REPLACE FUNCTION log_charged_job() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  job record;
BEGIN
  SELECT request_id, created_at, model, seconds, cost, attempts, end_user, tag, route AS kept, NULL::text AS route,
    NULL::text AS provider INTO job
  FROM videos WHERE hold_id = NEW.id;
  BEGIN
    job.route := job.kept::json ->> 'id';
    job.provider := job.kept::json #>> '{provider,name}';
  EXCEPTION WHEN data_exception OR syntax_error_or_access_rule_violation THEN
    -- Options of a route may contain characters that PostgreSQL cannot store as text, such as NUL. They must not
    -- prevent the charge.
    NULL;
  END;
  UPDATE request_log AS r SET charge = NEW.charged, seconds = job.seconds, cost = coalesce(job.cost, r.cost),
    route = coalesce(job.route, r.route), provider = coalesce(job.provider, r.provider)
  WHERE r.id = NEW.id AND r.hold_id = NEW.id;
  IF NOT FOUND THEN
    INSERT INTO request_log AS r (id, request_id, at, surface, status, org_id, key_id, model, route, provider, attempts,
      hold_id, charge, cost, total_ms, end_user, tag, seconds)
    VALUES (NEW.id, coalesce(job.request_id, NEW.id::text), coalesce(job.created_at, NEW.created_at), 'video', 202,
      NEW.org_id, NEW.key_id, job.model, job.route, job.provider, coalesce(job.attempts, '[]'), NEW.id, NEW.charged,
      job.cost, 0, job.end_user, job.tag, job.seconds)
    ON CONFLICT (id) DO UPDATE SET charge = excluded.charge, seconds = excluded.seconds,
      cost = coalesce(excluded.cost, r.cost), route = coalesce(excluded.route, r.route),
      provider = coalesce(excluded.provider, r.provider);
  END IF;
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER holds_logged AFTER UPDATE ON holds
  FOR EACH ROW WHEN (new.instance_id IS NULL AND new.state = 'settled') EXECUTE FUNCTION log_charged_job();
