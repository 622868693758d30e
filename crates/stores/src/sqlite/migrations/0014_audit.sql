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
