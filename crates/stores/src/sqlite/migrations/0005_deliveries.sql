-- The log of deliveries: how the events of a realm got to each of its sinks. One row per event and
-- sink; rows are listed by number, and the oldest go when there are too many.
CREATE TABLE deliveries (
    pk       INTEGER PRIMARY KEY,
    realm    TEXT NOT NULL,
    sink     TEXT NOT NULL,
    event    TEXT NOT NULL,
    kind     TEXT NOT NULL,
    session  BLOB NOT NULL,
    seq      INTEGER NOT NULL,
    status   TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at  INTEGER NOT NULL,
    next_at  INTEGER,
    code     INTEGER,
    error    TEXT,
    UNIQUE (realm, sink, event)
);

-- Every index ends in the row's pk: the oldest of a status are one step away.
CREATE INDEX deliveries_by_status ON deliveries (realm, sink, status);
