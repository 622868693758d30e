-- Principals that no file brings, and which of all of them are disabled. One that was stored stays.
CREATE TABLE principals (
    id      TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    body    TEXT NOT NULL
) STRICT;
