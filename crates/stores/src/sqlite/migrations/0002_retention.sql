-- Retention of single runs, and of blobs.

-- When the oldest run ended that is not the session's newest: null for the many sessions that have
-- one run, which therefore cost nothing when old runs are looked for.
ALTER TABLE sessions ADD COLUMN trim_at INTEGER;

-- By number: the first run that stays, and the newest, are one step away.
DROP INDEX runs_of_session;
CREATE INDEX runs_in_session ON runs (session, no);

UPDATE sessions SET trim_at = (
    SELECT min(ended_at) FROM runs
    WHERE session = sessions.pk
      AND no < (SELECT max(no) FROM runs WHERE session = sessions.pk)
);

CREATE INDEX sessions_to_trim ON sessions (trim_at) WHERE trim_at IS NOT NULL;

-- Which blobs a session's journal names, and the last event of the newest row that does.
CREATE TABLE blob_refs (
    session INTEGER NOT NULL REFERENCES sessions (pk) ON DELETE CASCADE,
    hash    TEXT NOT NULL,
    seq     INTEGER NOT NULL,
    PRIMARY KEY (session, hash)
) WITHOUT ROWID;

CREATE INDEX blob_refs_of_blob ON blob_refs (hash);

-- Blobs that nothing may name: put and not named yet, or named by what was removed; since when.
-- The sweep looks at these only, after a time of grace, and forgets those that it finds named.
CREATE TABLE loose_blobs (
    realm TEXT NOT NULL,
    hash  TEXT NOT NULL,
    since INTEGER NOT NULL,
    PRIMARY KEY (realm, hash)
) WITHOUT ROWID;

CREATE INDEX loose_blobs_by_age ON loose_blobs (since);
