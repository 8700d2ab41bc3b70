-- Why a render failed: when its attempt began, so that the attempt says how long it took, and what the last step towards its
-- end failed with, which a deadline reports. Columns without a default: no row is rewritten.
ALTER TABLE videos ADD COLUMN rendering_since timestamptz, ADD COLUMN last_error text;
