-- API keys, of which the texts are known by their hashes alone. A key that was revoked stays. Its
-- last use is no part of the body: it changes often, and makes no new version.
CREATE TABLE api_keys (
    id      TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    body    TEXT NOT NULL,
    used_at INTEGER
) STRICT;
