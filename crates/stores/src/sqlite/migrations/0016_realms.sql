-- Realms that were made at run time. One that was removed stays, so that its name is not given
-- again; until it is purged, something of what it owned is left.
CREATE TABLE realms (
    name       TEXT PRIMARY KEY,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    removed_by TEXT,
    removed_at INTEGER,
    purged     INTEGER NOT NULL DEFAULT 0
) STRICT;
