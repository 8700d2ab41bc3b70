-- Whichever instance ends a render continues the trace of the request that created it. Null: it is not traced.
ALTER TABLE videos ADD COLUMN trace text;
