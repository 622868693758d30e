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
    -- The process that drives the session, by the number of its start; 0 while nobody does.
    node       INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    -- When the oldest run ended that is not the session's newest: null for the many sessions that
    -- have one run, which therefore cost nothing when old runs are looked for.
    trim_at    INTEGER,
    -- Why a session that cannot be read is left alone for now, as JSON; null for all others.
    parked     TEXT,
    -- Whose it is: a subject. Null in local mode. There is no index: nothing is looked for by owner
    -- alone.
    owner      TEXT,
    -- The number of the session's latest change: whoever decided on an older one is refused.
    fence      INTEGER NOT NULL DEFAULT 1,
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
CREATE INDEX sessions_to_trim ON sessions (trim_at) WHERE trim_at IS NOT NULL;
CREATE INDEX sessions_parked ON sessions (realm) WHERE parked IS NOT NULL;

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
    ended_at   INTEGER,
    -- What the models of a run took, as JSON, and what stopped an agent of it before it was done:
    -- null for the many runs that asked no model.
    spent      TEXT,
    stopped    TEXT,
    -- The first 64 bits of the hash of the closure that a run pins. There is no index: it would
    -- cost every run a page, and only a closure whose run was removed is looked for.
    closure    INTEGER,
    -- Whose it is: a subject. Null in local mode.
    owner      TEXT,
    -- When something of a run changed last.
    changed_at INTEGER,
    -- The realm of a run of a context, else null: only runs of contexts are listed in the order of
    -- their changes, and all others stay out of the indexes for that.
    listed     TEXT,
    -- About how many bytes of journal and blobs a run stored.
    bytes      INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- By number: the first run that stays, and the newest, are one step away.
CREATE INDEX runs_in_session ON runs (session, no);

-- Every index ends in the run's id.
CREATE INDEX runs_by_change ON runs (listed, changed_at) WHERE listed IS NOT NULL;
CREATE INDEX runs_by_status ON runs (listed, status, changed_at) WHERE listed IS NOT NULL;
CREATE INDEX runs_by_owner ON runs (listed, owner, changed_at) WHERE listed IS NOT NULL;
CREATE INDEX runs_by_owner_and_status ON runs (listed, owner, status, changed_at)
    WHERE listed IS NOT NULL;
CREATE INDEX runs_of_context ON runs (session, changed_at) WHERE listed IS NOT NULL;

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

-- Closures that a removed run pinned, and that perhaps no other does. The stamp grows when it is
-- listed again, so that whoever looked at it before does not take it off.
CREATE TABLE loose_closures (
    realm TEXT NOT NULL,
    hash  TEXT NOT NULL,
    stamp INTEGER NOT NULL,
    PRIMARY KEY (realm, hash)
) WITHOUT ROWID;

-- The texts of the specs that calls pin of their tools, each once.
CREATE TABLE tool_specs (
    realm TEXT NOT NULL,
    hash  TEXT NOT NULL,
    body  TEXT NOT NULL,
    PRIMARY KEY (realm, hash)
);

-- The closures whose runs pinned a spec: it stays as long as one of them does. By closure, not by
-- run: a plan that runs again writes nothing here.
CREATE TABLE spec_pins (
    realm   TEXT NOT NULL,
    closure TEXT NOT NULL,
    spec    TEXT NOT NULL,
    PRIMARY KEY (realm, closure, spec)
) WITHOUT ROWID;

CREATE INDEX spec_pins_of_spec ON spec_pins (realm, spec);

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
    -- Who stored this version.
    stored_by  TEXT,
    PRIMARY KEY (realm, kind, name, version)
);

-- Requests under a key, with what came of each: a repeated one is recognised by its digest.
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

-- Blobs have holders of any kind: a session by its journal, with the last event of the newest row
-- that names the blob, and others by what they say. A session is named by its number (`pk`).
CREATE TABLE blob_holds (
    kind     TEXT NOT NULL,
    holder   NOT NULL,
    realm    TEXT NOT NULL,
    hash     TEXT NOT NULL,
    seq      INTEGER NOT NULL DEFAULT 0,
    -- Whether a session holds the blob as a value of its journal; else a text in it mentions the
    -- blob, and that gives no right to read it.
    is_value INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (kind, holder, realm, hash)
) WITHOUT ROWID;

CREATE INDEX blob_holds_of_blob ON blob_holds (hash, realm);

-- What a session holds goes with it, whoever removes it.
CREATE TRIGGER sessions_let_go AFTER DELETE ON sessions BEGIN
    DELETE FROM blob_holds WHERE kind = 'session' AND holder = old.pk;
END;

-- Blobs that nothing may name: put and not named yet, or named by what was removed; since when.
-- The sweep looks at these only, after a time of grace, and forgets those that it finds named.
CREATE TABLE loose_blobs (
    realm TEXT NOT NULL,
    hash  TEXT NOT NULL,
    since INTEGER NOT NULL,
    PRIMARY KEY (realm, hash)
) WITHOUT ROWID;

CREATE INDEX loose_blobs_by_age ON loose_blobs (since);

-- How often cases of a pipeline took which road, by reason. Written in the transaction of the run
-- that it counts; no session owns it, so it stays when sessions go.
CREATE TABLE tallies (
    realm         TEXT NOT NULL,
    pipeline      TEXT NOT NULL,
    deterministic INTEGER NOT NULL,
    reason        TEXT NOT NULL,
    count         INTEGER NOT NULL,
    last_at       INTEGER NOT NULL,
    PRIMARY KEY (realm, pipeline, deterministic, reason)
) WITHOUT ROWID;

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
-- The webhooks of a realm are listed by run and id.
CREATE INDEX webhooks_of_realm ON webhooks (realm, run, id);

-- API keys, of which the texts are known by their hashes alone. A key that was revoked stays. Its
-- last use is no part of the body: it changes often, and makes no new version.
CREATE TABLE api_keys (
    id      TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    body    TEXT NOT NULL,
    used_at INTEGER
) STRICT;

-- What the newest token of each subject claims: roles that count for later decisions too.
CREATE TABLE claims (
    subject TEXT PRIMARY KEY,
    body    TEXT NOT NULL
) STRICT;

-- Principals that no file brings, and which of all of them are disabled. One that was stored stays.
CREATE TABLE principals (
    id      TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    body    TEXT NOT NULL
) STRICT;

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

-- The audit: chains of rows, each with the entries of one append or of a batch. A row's mac covers
-- the mac of the row before it.
CREATE TABLE audit (
    chain TEXT NOT NULL,
    seq   INTEGER NOT NULL,
    at    INTEGER NOT NULL,
    key   TEXT NOT NULL,
    prev  BLOB NOT NULL,
    mac   BLOB NOT NULL,
    body  TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX audit_rows ON audit (chain, seq);

-- The last row of each chain, and what it begins with once its oldest rows were removed.
CREATE TABLE audit_heads (
    chain      TEXT PRIMARY KEY,
    seq        INTEGER NOT NULL,
    mac        BLOB NOT NULL,
    base_seq   INTEGER,
    base_mac   BLOB,
    base_key   TEXT,
    base_proof BLOB
) STRICT;
