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
