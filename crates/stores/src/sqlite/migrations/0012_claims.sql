-- What the newest token of each subject claims: roles that count for later decisions too.
CREATE TABLE claims (
    subject TEXT PRIMARY KEY,
    body    TEXT NOT NULL
) STRICT;
