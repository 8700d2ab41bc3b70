-- Whether an instance has not stopped and had a heartbeat within the duration.
CREATE OR REPLACE FUNCTION is_alive(instance instances, within interval) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT instance.stopped_at IS NULL AND instance.swept_at IS NULL AND instance.beat_at > now() - within
$$;
