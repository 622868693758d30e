-- The journal is the truth; sessions, runs, asks and history are projections of it, written in the
-- same transaction. Ids are 16 bytes, moments are milliseconds, bodies are JSON.

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE sessions (
    pk         INTEGER PRIMARY KEY,
    realm      TEXT NOT NULL,
    space      TEXT NOT NULL,
    key        TEXT NOT NULL,
    id         BLOB NOT NULL UNIQUE,
    status     TEXT NOT NULL,
    run        BLOB,
    plan       TEXT,
    step       TEXT,
    last_error TEXT,
    seq        INTEGER NOT NULL,
    wake_at    INTEGER,
    -- The epoch of the process that wrote last: another one means that its driver is dead.
    epoch      INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    -- The space last: a key is also looked up in whatever space it is.
    UNIQUE (realm, key, space)
);

-- Every index ends in the row's pk, so this one lists a realm newest first.
CREATE INDEX sessions_of_realm ON sessions (realm);
-- Most sessions are completed: they stay out, and a session that completes in its first append
-- never enters.
CREATE INDEX sessions_by_status ON sessions (realm, status) WHERE status <> 'completed';
-- Sessions that wait for someone cost nothing here.
CREATE INDEX sessions_to_wake ON sessions (wake_at) WHERE wake_at IS NOT NULL;

CREATE TABLE runs (
    id         BLOB PRIMARY KEY,
    session    INTEGER NOT NULL REFERENCES sessions (pk) ON DELETE CASCADE,
    no         INTEGER NOT NULL,
    plan       TEXT NOT NULL,
    status     TEXT NOT NULL,
    step       TEXT,
    answer     TEXT,
    last_error TEXT,
    started_at INTEGER NOT NULL,
    ended_at   INTEGER
) WITHOUT ROWID;

CREATE INDEX runs_of_session ON runs (session);

CREATE TABLE asks (
    pk         INTEGER PRIMARY KEY,
    id         BLOB NOT NULL UNIQUE,
    session    INTEGER NOT NULL REFERENCES sessions (pk) ON DELETE CASCADE,
    realm      TEXT NOT NULL,
    run        BLOB NOT NULL,
    step       TEXT NOT NULL,
    kind       TEXT NOT NULL,
    status     TEXT NOT NULL,
    body       TEXT NOT NULL,
    decision   TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER
);

CREATE INDEX asks_of_session ON asks (session);
CREATE INDEX asks_of_realm ON asks (realm);
CREATE INDEX asks_open ON asks (realm) WHERE status = 'open';

CREATE TABLE history (
    session       INTEGER NOT NULL REFERENCES sessions (pk) ON DELETE CASCADE,
    position      BLOB NOT NULL,
    -- A step that is tried again stands at the same position.
    finished_seq  INTEGER NOT NULL,
    requested_seq INTEGER NOT NULL,
    run           BLOB NOT NULL,
    step          TEXT NOT NULL,
    tool          TEXT NOT NULL,
    success       INTEGER NOT NULL,
    PRIMARY KEY (session, position, finished_seq)
) WITHOUT ROWID;

-- One row holds all events of one append, from seq to last_seq. Its number is the feed's cursor:
-- AUTOINCREMENT never gives the number of a removed row again, so no reader skips a row.
CREATE TABLE journal (
    row      INTEGER PRIMARY KEY AUTOINCREMENT,
    session  INTEGER NOT NULL REFERENCES sessions (pk) ON DELETE CASCADE,
    seq      INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    body     TEXT NOT NULL,
    UNIQUE (session, seq)
);

CREATE TABLE snapshots (
    session INTEGER PRIMARY KEY REFERENCES sessions (pk) ON DELETE CASCADE,
    seq     INTEGER NOT NULL,
    body    TEXT NOT NULL
);

CREATE TABLE closures (
    realm TEXT NOT NULL,
    hash  TEXT NOT NULL,
    body  TEXT NOT NULL,
    PRIMARY KEY (realm, hash)
);

CREATE TABLE consumers (
    realm  TEXT NOT NULL,
    name   TEXT NOT NULL,
    cursor INTEGER NOT NULL,
    PRIMARY KEY (realm, name)
) WITHOUT ROWID;

CREATE TABLE definitions (
    realm      TEXT NOT NULL,
    kind       TEXT NOT NULL,
    name       TEXT NOT NULL,
    version    INTEGER NOT NULL,
    body       TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (realm, kind, name, version)
);

-- Not read or written yet: the shape that a repeated request will be recognised by.
CREATE TABLE idempotency (
    realm       TEXT NOT NULL,
    subject     TEXT NOT NULL,
    route       TEXT NOT NULL,
    key         TEXT NOT NULL,
    body_digest TEXT NOT NULL,
    run         BLOB,
    ask         BLOB,
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (realm, subject, route, key)
) WITHOUT ROWID;

-- Not read or written yet: what another node would hand to a session's owner.
CREATE TABLE inbox (
    pk         INTEGER PRIMARY KEY,
    session    INTEGER NOT NULL REFERENCES sessions (pk) ON DELETE CASCADE,
    kind       TEXT NOT NULL,
    body       TEXT NOT NULL,
    created_at INTEGER NOT NULL
);

CREATE INDEX inbox_of_session ON inbox (session);
