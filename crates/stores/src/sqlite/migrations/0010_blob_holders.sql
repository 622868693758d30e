-- Blobs have holders of any kind: a session by its journal, with the last event of the newest row
-- that names the blob, and others by what they say. A session is named by its number (`pk`).
CREATE TABLE blob_holds (
    kind   TEXT NOT NULL,
    holder NOT NULL,
    realm  TEXT NOT NULL,
    hash   TEXT NOT NULL,
    seq    INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (kind, holder, realm, hash)
) WITHOUT ROWID;

INSERT INTO blob_holds (kind, holder, realm, hash, seq)
    SELECT 'session', r.session, s.realm, r.hash, r.seq
    FROM blob_refs AS r JOIN sessions AS s ON s.pk = r.session;

DROP TABLE blob_refs;

CREATE INDEX blob_holds_of_blob ON blob_holds (hash, realm);

-- What a session holds goes with it, whoever removes it.
CREATE TRIGGER sessions_let_go AFTER DELETE ON sessions BEGIN
    DELETE FROM blob_holds WHERE kind = 'session' AND holder = old.pk;
END;
