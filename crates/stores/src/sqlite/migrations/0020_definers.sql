-- Who stored a version of a definition. It is not known of those that are there already.
ALTER TABLE definitions ADD COLUMN stored_by TEXT;
