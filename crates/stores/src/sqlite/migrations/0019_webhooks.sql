-- Webhooks of tasks: whom each notifies, sealed, and how far it has got. One goes with its run, by
-- whatever way that goes. The stamp tells one apart from those that had its name before.
CREATE TABLE webhooks (
    run      BLOB NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    id       TEXT NOT NULL,
    realm    TEXT NOT NULL,
    stamp    INTEGER NOT NULL,
    body     TEXT NOT NULL,
    place    INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    next_at  INTEGER,
    live     INTEGER NOT NULL,
    error    TEXT,
    PRIMARY KEY (run, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX webhooks_live ON webhooks (realm) WHERE live;
