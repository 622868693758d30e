-- Whose a session and a run are: a subject. Null in local mode, and for all that came before. There
-- is no index: it would cost every run a page, and nothing is looked for by owner alone.
ALTER TABLE sessions ADD COLUMN owner TEXT;
ALTER TABLE runs ADD COLUMN owner TEXT;

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
