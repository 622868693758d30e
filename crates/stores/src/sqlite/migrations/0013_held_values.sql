-- Whether a session holds the blob as a value of its journal; else a text in it mentions the blob,
-- and that gives no right to read it. What was noted before counts as mentioned: nobody gains.
ALTER TABLE blob_holds ADD COLUMN is_value INTEGER NOT NULL DEFAULT 0;
