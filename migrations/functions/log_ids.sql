-- Rows of the log have UUIDs of version 7, which are ordered by time. A list scans the ids, and a time range is a range
-- of ids. The id is made when the request arrives: in rare cases some minutes before the time in `at`, or some seconds
-- after it, because clocks differ. Statements also compare `at`, so these bounds may be too wide but never too narrow.
CREATE OR REPLACE FUNCTION log_id_at(at timestamptz, seconds integer) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN rpad(lpad(to_hex(floor(greatest(
    extract(epoch FROM least(greatest(at, 'epoch'), '9999-12-31Z')) + seconds, 0) * 1000
  )::bigint), 12, '0'), 32, '0')::uuid;

-- The smallest id of a request at that time or later.
CREATE OR REPLACE FUNCTION first_log_id(since timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN log_id_at(since, -300);

-- An id above those of all requests before that time.
CREATE OR REPLACE FUNCTION log_id_limit(until timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN log_id_at(until, 60);
