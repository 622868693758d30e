-- The first 64 bits of the hash of the closure that a run pins. There is no index: it would cost
-- every run a page, and only a closure whose run was removed is looked for.
ALTER TABLE runs ADD COLUMN closure INTEGER;

-- Closures that a removed run pinned, and that perhaps no other does. The stamp grows when it is
-- listed again, so that whoever looked at it before does not take it off.
CREATE TABLE loose_closures (
    realm TEXT NOT NULL,
    hash  TEXT NOT NULL,
    stamp INTEGER NOT NULL,
    PRIMARY KEY (realm, hash)
) WITHOUT ROWID;
