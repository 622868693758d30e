-- When something of a run changed last. Null in rows that came before: when it ended, or began.
ALTER TABLE runs ADD COLUMN changed_at INTEGER;
-- The realm of a run of a context, else null: only runs of contexts are listed in the order of their
-- changes, and all others stay out of these indexes. Every index ends in the run's id.
ALTER TABLE runs ADD COLUMN listed TEXT;

CREATE INDEX runs_by_change ON runs (listed, changed_at) WHERE listed IS NOT NULL;
CREATE INDEX runs_by_status ON runs (listed, status, changed_at) WHERE listed IS NOT NULL;
CREATE INDEX runs_by_owner ON runs (listed, owner, changed_at) WHERE listed IS NOT NULL;
CREATE INDEX runs_by_owner_and_status ON runs (listed, owner, status, changed_at)
    WHERE listed IS NOT NULL;
CREATE INDEX runs_of_context ON runs (session, changed_at) WHERE listed IS NOT NULL;
