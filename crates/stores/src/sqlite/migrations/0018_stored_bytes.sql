-- About how many bytes of journal and blobs a run stored. What came before is counted by its journal
-- alone, as its session's newest run's.
ALTER TABLE runs ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;

UPDATE runs SET bytes = (
    SELECT coalesce(sum(octet_length(body)), 0) FROM journal WHERE session = runs.session
) WHERE no = (SELECT max(no) FROM runs AS newest WHERE newest.session = runs.session);
