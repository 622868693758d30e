-- The number of a session's latest change: whoever decided on an older one is refused.
ALTER TABLE sessions ADD COLUMN fence INTEGER NOT NULL DEFAULT 1;

-- The process that drives the session, by the number of its start; 0 while nobody does.
ALTER TABLE sessions RENAME COLUMN epoch TO node;

-- The newest row of the feed that was removed: the feed's end does not go back with it.
INSERT INTO meta (name, value) SELECT 'feed_removed', seq FROM sqlite_sequence
WHERE name = 'journal';
