-- What is known of records beside the records themselves. Each type has tables of its own, which
-- are made from its definition: `t1` for its records, `k1` for their unique keys and `r1` for the
-- records that they refer to, where 1 is the number of the type.

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

-- The realm is empty for the types that realms without own ones share. A number is never used
-- again: who still reads a table that is gone finds none.
CREATE TABLE types (
    number     INTEGER PRIMARY KEY AUTOINCREMENT,
    realm      TEXT NOT NULL,
    name       TEXT NOT NULL,
    definition TEXT NOT NULL,
    UNIQUE (realm, name)
);

-- Realms that have types of their own.
CREATE TABLE own_types (
    realm TEXT PRIMARY KEY
) WITHOUT ROWID;

-- What writes did, by the ids of their calls.
CREATE TABLE outcomes (
    realm TEXT NOT NULL,
    call  BLOB NOT NULL,
    at    INTEGER NOT NULL,
    body  TEXT NOT NULL,
    PRIMARY KEY (realm, call)
) WITHOUT ROWID;

CREATE INDEX outcomes_by_time ON outcomes (at);

-- The types whose first records a realm has had.
CREATE TABLE seeded (
    realm TEXT NOT NULL,
    type  TEXT NOT NULL,
    PRIMARY KEY (realm, type)
) WITHOUT ROWID;

-- Written with the records that it counts.
CREATE TABLE usage (
    realm   TEXT NOT NULL,
    owner   TEXT NOT NULL,
    records INTEGER NOT NULL,
    bytes   INTEGER NOT NULL,
    PRIMARY KEY (realm, owner)
) WITHOUT ROWID;
