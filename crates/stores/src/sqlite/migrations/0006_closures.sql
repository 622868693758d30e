-- Which closure a run pins: a closure goes with the last run that does.
ALTER TABLE runs ADD COLUMN closure TEXT;

-- Behind the closure the session: the runs of one plan are added at one place.
CREATE INDEX runs_by_closure ON runs (closure, session) WHERE closure IS NOT NULL;

-- Closures that no run pinned when closures began to go. Retention removes them, some at a time.
CREATE TABLE loose_closures (
    realm TEXT NOT NULL,
    hash  TEXT NOT NULL,
    PRIMARY KEY (realm, hash)
) WITHOUT ROWID;
